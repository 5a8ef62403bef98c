"""A receipt says which place somebody had, and only we can have said so (W4, W15)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairdrop.waiting_room import EntryReceipt, PositionReceipt, Receipt, Receipts

SECRET = b"s" * 32
ENTERED = EntryReceipt("sale", "visitor", 3, "AAAAAAAAAAAAAAAAAAAAAA")
STANDING = PositionReceipt("sale", "visitor", 3, 41)

texts = st.text(max_size=64)
receipts = st.one_of(
    st.builds(EntryReceipt, texts, texts, st.integers(0, 2**31), texts),
    st.builds(PositionReceipt, texts, texts, st.integers(0, 2**31), st.integers(1, 2**53)),
)


@given(receipts)
def test_what_was_issued_is_read_in_every_process(receipt: Receipt) -> None:
    """Names of any script and length (case 31)."""
    text = Receipts(SECRET).issue(receipt)
    assert Receipts(SECRET).read(text) == receipt
    assert Receipts(SECRET).issue(receipt) == text


@pytest.mark.parametrize("receipt", [ENTERED, STANDING])
def test_a_receipt_with_any_one_character_changed_is_none(receipt: Receipt) -> None:
    text = Receipts(SECRET).issue(receipt)
    for at in range(len(text)):
        for other in "A_.":
            changed = text[:at] + other + text[at + 1 :]
            assert changed == text or Receipts(SECRET).read(changed) is None


def test_another_installation_s_receipt_is_none() -> None:
    assert Receipts(b"o" * 32).read(Receipts(SECRET).issue(STANDING)) is None


@given(st.text())
def test_nothing_made_up_is_a_receipt(text: str) -> None:
    for made_up in (text, f"fdr1.{text}", f"fdr1.{text}.", f"fdr1.{text}.AAAA"):
        assert Receipts(SECRET).read(made_up) is None


def test_a_text_without_end_is_refused_before_it_is_looked_at() -> None:
    long = EntryReceipt("sale", "v" * 10_000, 1, "e")
    assert Receipts(SECRET).read(Receipts(SECRET).issue(long)) is None


def test_a_secret_that_could_be_guessed_is_refused() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Receipts(b"short")
