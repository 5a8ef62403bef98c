"""The price of units: one function for what is shown, what is written down and what is charged (O10).

A total is what its gateway can charge to the minor unit, or the sale is refused when it is set up:
prices and fees are multiples of the gateway's smallest step (case 24).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from fairdrop.money import fee_minor
from fairdrop.payments import charge_step_minor

if TYPE_CHECKING:
    from fairdrop.catalog import Sale


class Price(NamedTuple):
    """What a buyer pays, in minor units of the sale's currency."""

    subtotal_minor: int
    fee_minor: int
    total_minor: int
    """Units and fee together."""


def step_minor(sale: Sale) -> int:
    """The smallest amount that the sale's gateway can charge."""
    return charge_step_minor(sale.gateway, sale.currency)


def price_of(sale: Sale, subtotal: int) -> Price:
    """The price of units that come to ``subtotal`` minor units, the fee rounded once."""
    return _price(subtotal, sale.fee_bps, sale.gateway, sale.currency)


@lru_cache(maxsize=1_024)
def _price(subtotal: int, fee_bps: int, gateway: str, currency: str) -> Price:
    """Most of a crowd take the same, so it is worked out once for all."""
    fee = fee_minor(subtotal, fee_bps, charge_step_minor(gateway, currency))
    return Price(subtotal, fee, subtotal + fee)
