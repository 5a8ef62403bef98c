"""Whether units will last until somebody's turn (W16). Pure: figures in, a forecast out."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

ENOUGH_ADMISSIONS = 20
"""Before so many people were inside, what one of them takes is reckoned from the order limit."""
LEAST_EACH = 0.1
"""Units that a person inside takes on average, at the least: most of them might buy nothing."""


class Forecast(StrEnum):
    """What somebody in the line may expect."""

    LIKELY = "likely"
    UNLIKELY = "unlikely"
    SOLD_OUT_MAY_RETURN = "sold_out_may_return"
    SOLD_OUT = "sold_out"


class Outlook(NamedTuple):
    """The stock of all variants together, and who is ahead of the line, as of the last tick."""

    free: int
    held: int
    quantity: int
    undecided: int
    """People called or inside who have not reserved yet."""
    admitted: int
    """Admissions given out so far."""

    def each(self, order_limit: int) -> float:
        """Units that a person inside takes on average: as measured, or half of what they may."""
        if self.admitted < ENOUGH_ADMISSIONS:
            return (1 + order_limit) / 2
        taken = (self.quantity - self.free) / self.admitted
        return min(max(taken, LEAST_EACH), float(order_limit))

    def lasts_for(self, order_limit: int) -> int:
        """How many people of the line will probably find units."""
        each = self.each(order_limit)
        return max(0, int((self.free - self.undecided * each) / each))


def read_outlook(text: str) -> Outlook | None:
    """The outlook as the store writes it; None before there is one, and for a sale without stock.

    >>> read_outlook("70:20:100:5:9")
    Outlook(free=70, held=20, quantity=100, undecided=5, admitted=9)
    """
    parts = [int(part) for part in text.split(":")] if text else []
    if len(parts) != len(Outlook._fields) or parts[2] <= 0:
        return None
    return Outlook(*parts)


class Prospects(NamedTuple):
    """What everybody in a line may expect: those ahead of ``likely_below``, and the others."""

    likely_below: int
    others: Forecast | None

    def of(self, ahead: int) -> Forecast | None:
        """What somebody with ``ahead`` people before them may expect; None while nothing is known."""
        return Forecast.LIKELY if ahead < self.likely_below else self.others


@lru_cache(maxsize=256)
def prospects(outlook: str, order_limit: int) -> Prospects:
    """The prospects from the outlook as the store writes it; the same text for all of a second.

    >>> prospects("70:0:100:0:0", 4).of(10)
    <Forecast.LIKELY: 'likely'>
    """
    known = read_outlook(outlook)
    if known is None:
        return Prospects(0, None)
    if known.free <= 0:
        return Prospects(0, Forecast.SOLD_OUT_MAY_RETURN if known.held > 0 else Forecast.SOLD_OUT)
    return Prospects(known.lasts_for(order_limit), Forecast.UNLIKELY)
