"""Money: integers, the currency's real exponent, one rounding."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from iso4217 import Currency

from fairdrop.money import BPS, EXPONENTS, exponent, fee_minor, format_minor, is_currency

amounts = st.integers(0, 10**12)
rates = st.integers(0, 10 * BPS)


@pytest.mark.parametrize(
    ("currency", "decimals"),
    [
        ("EUR", 2),
        ("USD", 2),
        ("JPY", 0),
        ("KRW", 0),
        ("ISK", 0),
        ("KWD", 3),
        ("TND", 3),
        ("CLF", 4),
    ],
)
def test_a_currency_has_its_real_exponent(currency: str, decimals: int) -> None:
    assert exponent(currency) == decimals


@pytest.mark.parametrize(
    ("subtotal", "bps", "fee"),
    [
        (1995, 1000, 200),  # 199.5 is rounded up
        (1994, 1000, 199),  # 199.4 is rounded down
        (5, 1000, 1),  # 0.5 is rounded up
        (4, 1000, 0),
        (80, 1000, 8),  # yen: no hidden hundred
        (0, 1000, 0),
        (1995, 0, 0),
        (1, BPS, 1),
        (3, 3333, 1),
    ],
)
def test_a_fee_is_rounded_half_up_to_a_whole_minor_unit(subtotal: int, bps: int, fee: int) -> None:
    assert fee_minor(subtotal, bps) == fee


@given(subtotal=amounts, bps=rates)
def test_a_fee_is_never_further_than_half_a_minor_unit_from_the_exact_share(
    subtotal: int, bps: int
) -> None:
    exact = Fraction(subtotal * bps, BPS)
    assert Fraction(-1, 2) < fee_minor(subtotal, bps) - exact <= Fraction(1, 2)


@given(subtotal=amounts, bps=rates, step=st.sampled_from([1, 10, 100]))
def test_a_fee_is_what_the_gateway_can_charge_and_no_further_than_half_a_step_off(
    subtotal: int, bps: int, step: int
) -> None:
    """Case 24."""
    fee = fee_minor(subtotal, bps, step)
    assert fee % step == 0
    assert abs(fee - Fraction(subtotal * bps, BPS)) <= Fraction(step, 2)


@given(subtotal=amounts, more=amounts, bps=rates)
def test_a_larger_subtotal_never_has_a_smaller_fee(subtotal: int, more: int, bps: int) -> None:
    assert 0 <= fee_minor(subtotal, bps) <= fee_minor(subtotal + more, bps)


@pytest.mark.parametrize(("subtotal", "bps"), [(-1, 1000), (100, -1)])
def test_a_fee_on_a_negative_amount_or_rate_is_a_callers_bug(subtotal: int, bps: int) -> None:
    with pytest.raises(ValueError, match="never negative"):
        fee_minor(subtotal, bps)


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        (1995, "EUR", "19.95 EUR"),
        (5, "EUR", "0.05 EUR"),
        (-5, "EUR", "-0.05 EUR"),
        (80, "JPY", "80 JPY"),
        (-80, "JPY", "-80 JPY"),
        (1500, "KWD", "1.500 KWD"),
        (-1500, "KWD", "-1.500 KWD"),
        (0, "KWD", "0.000 KWD"),
        (10**15, "USD", "10000000000000.00 USD"),
    ],
)
def test_an_amount_is_shown_with_the_decimals_of_its_currency(
    amount: int, currency: str, text: str
) -> None:
    assert format_minor(amount, currency) == text


@given(
    amount=st.integers(-(10**15), 10**15), currency=st.sampled_from(["EUR", "JPY", "KWD", "CLF"])
)
def test_what_is_shown_reads_back_as_the_same_amount(amount: int, currency: str) -> None:
    shown, code = format_minor(amount, currency).split(" ")
    assert code == currency
    assert Fraction(shown) * 10 ** exponent(currency) == amount


def test_the_table_of_currencies_is_the_published_list() -> None:
    """ISO 4217, list one, as a package of its own carries it."""
    published = {each.code: each.exponent for each in Currency if each.exponent is not None}
    assert {code: EXPONENTS.get(code) for code in published} == published


@pytest.mark.parametrize("code", ["EUR", "JPY", "KWD", "CLF"])
def test_a_currency_of_the_list_is_one(code: str) -> None:
    assert is_currency(code)


@pytest.mark.parametrize(
    "code", ["", "eur", "EU", "EURO", "EUR\n", " EUR", "E€R", "ÄÖÜ", "123", "EUX", "XXX", "XAU"]
)
def test_anything_else_is_none(code: str) -> None:
    assert not is_currency(code)
