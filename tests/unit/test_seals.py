"""What we sealed we open, and nobody else's: receipts, tickets and visitor tokens rest on it (W15, S2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairdrop.seals import Seals, same

SECRET = b"s" * 32
Value = tuple[str, int]
SEALS: Seals[Value] = Seals("t1.", SECRET, b"tests", Value)


@given(st.text(max_size=40), st.integers(0, 2**53))
def test_what_was_sealed_is_opened_and_is_the_same_text_each_time(text: str, number: int) -> None:
    sealed = SEALS.seal((text, number))
    assert SEALS.open(sealed) == (text, number)
    assert SEALS.seal((text, number)) == sealed


@given(st.data())
def test_a_change_anywhere_is_seen(data: st.DataObject) -> None:
    sealed = SEALS.seal(("visitor", 7))
    at = data.draw(st.integers(0, len(sealed) - 1))
    other = data.draw(st.characters(exclude_characters=sealed[at], exclude_categories=["Cs"]))
    assert SEALS.open(sealed[:at] + other + sealed[at + 1 :]) is None
    assert SEALS.open(sealed[:at]) is None
    assert SEALS.open(sealed + other) is None


def test_a_seal_of_another_use_or_another_secret_opens_nothing() -> None:
    for other in (
        Seals[Value]("t1.", SECRET, b"other use", Value),
        Seals[Value]("t1.", b"o" * 32, b"tests", Value),
        Seals[Value]("t2.", SECRET, b"tests", Value),
    ):
        assert SEALS.open(other.seal(("visitor", 7))) is None


def test_a_value_of_another_kind_and_a_text_too_long_are_none_of_ours() -> None:
    loose = Seals[str]("t1.", SECRET, b"tests", str)
    assert SEALS.open(loose.seal("no pair")) is None
    assert SEALS.open(SEALS.seal(("x" * 4_000, 1))) is None


def test_texts_that_people_hold_already_stay_good() -> None:
    assert SEALS.seal(("visitor", 7)) == "t1.kqd2aXNpdG9yBw.WXmFEJ5yWG5FdJ6_Ly_hTg"


def test_a_mac_is_compared_as_text_of_any_kind() -> None:
    assert same("é", "é")
    assert not same("é", "e")


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Seals("t1.", b"short", b"tests", Value)
