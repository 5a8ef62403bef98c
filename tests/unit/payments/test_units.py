"""What a gateway is told is what the buyer was shown, in the gateway's own units (cases 23, 24)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairdrop.checkout import price_of
from fairdrop.money import EXPONENTS
from fairdrop.payments import charge_step_minor, from_stripe, stripe_amount

currencies = st.sampled_from(sorted(EXPONENTS))


@pytest.mark.parametrize(
    ("amount", "currency", "theirs"),
    [
        (80, "JPY", 80),  # case 23: not 8000
        (1_995, "EUR", 1_995),
        (80, "KRW", 80),
        (80, "ISK", 8_000),  # no decimals any more, still written with two
        (80, "UGX", 8_000),
        (8_000, "MGA", 80),  # two decimals in ISO 4217, none at Stripe
        (1_990, "KWD", 1_990),  # three decimals, the last one always 0
        (12_300, "HUF", 12_300),  # two decimals: only payouts have none
        (0, "JPY", 0),
    ],
)
def test_an_amount_is_sent_in_stripe_s_units(amount: int, currency: str, theirs: int) -> None:
    assert stripe_amount(amount, currency) == theirs
    assert from_stripe(theirs, currency) == amount


@pytest.mark.parametrize(("amount", "currency"), [(1_995, "KWD"), (1, "BHD"), (150, "MGA")])
def test_what_stripe_cannot_charge_is_refused_and_never_rounded(amount: int, currency: str) -> None:
    with pytest.raises(ValueError, match="cannot charge"):
        stripe_amount(amount, currency)


@given(currency=currencies, steps=st.integers(0, 10**9))
def test_every_amount_that_can_be_charged_comes_back_as_it_was(currency: str, steps: int) -> None:
    amount = steps * charge_step_minor("stripe", currency)
    assert from_stripe(stripe_amount(amount, currency), currency) == amount


@given(
    currency=currencies,
    gateway=st.sampled_from(["stripe", "sandbox"]),
    bps=st.integers(0, 10_000),
    lines=st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 10)), min_size=1, max_size=5),
)
def test_the_total_of_any_order_is_one_that_its_gateway_can_charge(
    currency: str, gateway: str, bps: int, lines: list[tuple[int, int]]
) -> None:
    """Case 24: neither negative nor off by a minor unit, however prices and fees fall."""
    step = charge_step_minor(gateway, currency)
    sale: Any = SimpleNamespace(gateway=gateway, currency=currency, fee_bps=bps)
    price = price_of(sale, sum(amount * step * quantity for amount, quantity in lines))
    assert price.total_minor == price.subtotal_minor + price.fee_minor >= price.subtotal_minor
    assert price.total_minor % step == 0
    if gateway == "stripe":
        assert (
            from_stripe(stripe_amount(price.total_minor, currency), currency) == price.total_minor
        )
