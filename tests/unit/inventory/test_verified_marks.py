"""A phone number is told apart by a keyed hash, and by nothing that could be tried out (H6)."""

from __future__ import annotations

import pytest

from fairdrop.inventory import Unverifiable, VerifiedMarks

SALE, SECRET = "a sale", b"s" * 40


def mark(phone: str | None = None, card: str | None = None, sale: str = SALE) -> list[str]:
    return VerifiedMarks(SECRET).of(sale, phone=phone, payment_method=card)


def test_one_number_has_one_mark_however_it_is_written() -> None:
    assert mark("+41 79 123 45 67") == mark("+41-79/123.45(67)") == mark("+41791234567")
    assert mark("+41791234567") != mark("+41791234568")


def test_a_mark_shows_nothing_without_the_sites_secret_and_does_not_follow_from_sale_to_sale() -> (
    None
):
    (found,) = mark("+41791234567")
    assert len(found) == 22
    assert "791234567" not in found
    other = VerifiedMarks(b"t" * 40).of(SALE, phone="+41791234567", payment_method=None)
    assert other != [found]
    assert mark("+41791234567", sale="another") != [found]


def test_a_phone_and_a_payment_method_of_the_same_name_are_two_things() -> None:
    assert mark("+41791234567") != mark(card="+41791234567")
    assert len(mark("+41791234567", "card_1")) == 2
    assert mark() == []


@pytest.mark.parametrize(
    "phone", ["", "079 123 45 67", "+0791234567", "+1", "+" + "9" * 16, "+41x"]
)
def test_what_is_no_international_number_is_refused(phone: str) -> None:
    with pytest.raises(Unverifiable):
        mark(phone)


def test_a_nameless_payment_method_is_refused() -> None:
    with pytest.raises(Unverifiable):
        mark(card="  ")
