"""The price of units: one function for what is shown, what is written down and what is charged (O10).

A total is what its gateway can charge to the minor unit, or the sale is refused when it is set up:
prices and fees are multiples of the gateway's smallest step (case 24).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fairdrop.money import fee_minor
from fairdrop.payments import charge_step_minor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairdrop.catalog import Sale


class Price(NamedTuple):
    """What a buyer pays, in minor units of the sale's currency."""

    subtotal_minor: int
    fee_minor: int

    @property
    def total_minor(self) -> int:
        """Units and fee together."""
        return self.subtotal_minor + self.fee_minor


def step_minor(sale: Sale) -> int:
    """The smallest amount that the sale's gateway can charge."""
    return charge_step_minor(sale.gateway, sale.currency)


def price_of(sale: Sale, lines: Iterable[tuple[int, int]]) -> Price:
    """The price of lines (price of one unit in minor units, quantity), the fee rounded once."""
    subtotal = 0
    for price, quantity in lines:
        subtotal += price * quantity
    return Price(subtotal, fee_minor(subtotal, sale.fee_bps, step_minor(sale)))
