"""How much goes back, and which part of it was fee: pure arithmetic (O9, O10).

**Policy.** A refund returns price and booking fee in the proportion in which they were paid, unless the
operator keeps the fee. A unit's share of the fee is that of its price in the subtotal. Only the fee of
everything given back so far is rounded (half up), and each refund has the difference to the one before:
so any sequence of refunds that returns everything returns exactly what was paid.
"""

from __future__ import annotations

from typing import NamedTuple


class Sums(NamedTuple):
    """An order's amounts in minor units, and what of them refunds have been granted for."""

    subtotal_minor: int
    fee_minor: int
    received_minor: int
    granted_minor: int = 0
    granted_fee_minor: int = 0
    units_minor: int = 0
    """The prices of the units whose money was given back."""

    @property
    def left_minor(self) -> int:
        """What came in and was not given back; refunds on their way count as given."""
        return self.received_minor - self.granted_minor

    @property
    def price_left_minor(self) -> int:
        """What of the price was not given back."""
        return self.subtotal_minor - (self.granted_minor - self.granted_fee_minor)

    @property
    def fee_left_minor(self) -> int:
        """What of the fee was not given back."""
        return self.fee_minor - self.granted_fee_minor


class Share(NamedTuple):
    """A refund, and which part of it is taken back from fees; the rest is taken back from sales."""

    amount_minor: int
    fee_minor: int


def share_of_amount(sums: Sums, amount_minor: int | None, *, keep_fee: bool) -> Share | None:
    """A refund of an amount, or of all that is left (None). None: that is more than is left.

    >>> share_of_amount(Sums(1995, 200, 2195), 1000, keep_fee=False)
    Share(amount_minor=1000, fee_minor=91)
    >>> share_of_amount(Sums(1995, 200, 2195), None, keep_fee=True)
    Share(amount_minor=1995, fee_minor=0)
    """
    most = min(sums.left_minor, sums.price_left_minor) if keep_fee else sums.left_minor
    amount = most if amount_minor is None else amount_minor
    if not 0 < amount <= most:
        return None
    if keep_fee:
        return Share(amount, 0)
    total = sums.subtotal_minor + sums.fee_minor
    fee_so_far = _share(sums.granted_minor + amount, sums.fee_minor, total, 1)
    return Share(amount, _possible(sums, amount, fee_so_far - sums.granted_fee_minor))


def share_of_units(
    sums: Sums, units_minor: int, *, keep_fee: bool, step_minor: int = 1
) -> Share | None:
    """A refund of units of this price. None: together with refunds before, that is too much.

    ``step_minor`` is the smallest amount that the gateway can pay.

    >>> share_of_units(Sums(9000, 900, 9900), 4500, keep_fee=False)
    Share(amount_minor=4950, fee_minor=450)
    """
    fee = 0
    if not keep_fee and sums.subtotal_minor:
        before = _share(sums.units_minor, sums.fee_minor, sums.subtotal_minor, step_minor)
        after = _share(
            sums.units_minor + units_minor, sums.fee_minor, sums.subtotal_minor, step_minor
        )
        fee = after - before
    amount = units_minor + fee
    if not 0 < amount <= sums.left_minor:
        return None
    return Share(amount, _possible(sums, amount, fee))


def _share(part: int, fee: int, whole: int, step: int) -> int:
    """The fee's share of a part, rounded half up to a step."""
    return (2 * part * fee + whole * step) // (2 * whole * step) * step


def _possible(sums: Sums, amount_minor: int, fee_minor: int) -> int:
    """The fee nearest to the one wished that leaves neither price nor fee below nothing."""
    least = max(0, amount_minor - sums.price_left_minor)
    return max(least, min(fee_minor, sums.fee_left_minor))
