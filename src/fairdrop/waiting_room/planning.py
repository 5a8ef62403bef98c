"""What a pace means: people inside, the cap for it, and how long a crowd takes (Little's law). Pure.

Little's law (1961): in a system that is in balance, the people inside are the arrivals per second
times the seconds that each of them stays. It asks nothing of how arrivals or stays are distributed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

HEADROOM = 1.25
"""The cap above the people expected inside: a quarter more, since stays vary."""


class Pace(NamedTuple):
    """What follows from a crowd, a pace and a checkout."""

    inside: int
    """People inside at the pace, on average: those called and those admitted."""
    cap: int
    """A cap that does not hold the pace up while things are as expected."""
    outflow_per_s: float
    """People who get their turn per second: the pace, or less if the cap given holds it up."""
    drain_s: int
    """Until the last of the crowd has had their turn."""
    sold_out_s: int | None
    """Until the units are sold; None when they outlast the crowd, or when none were named."""


def plan_pace(  # noqa: PLR0913 - a crowd, a pace and a checkout, most of it with defaults
    people: int,
    rate_per_s: float,
    checkout_s: float,
    *,
    no_show: float = 0.0,
    claim_s: float = 60.0,
    cap: int | None = None,
    units: int | None = None,
    units_each: float = 1.0,
) -> Pace:
    """What a crowd of ``people`` experiences at a pace.

    ``checkout_s`` is how long somebody is inside on average, from the claim to the end of the order
    or of the lease. ``no_show`` is the share of people who do not come when they are called: each of
    them keeps a place for the whole claim window of ``claim_s`` seconds. ``units_each`` is what a
    person who is called buys on average. Raises ValueError for what cannot be.

    A crowd of 50,000, 50 a second, three minutes inside, one in ten absent:

    >>> plan_pace(50_000, 50, 180, no_show=0.1)
    Pace(inside=8400, cap=10500, outflow_per_s=50.0, drain_s=1000, sold_out_s=None)

    With room for 1,000 inside, the cap is what counts, and the pace is never reached:

    >>> plan_pace(50_000, 50, 180, no_show=0.1, cap=1_000)
    Pace(inside=1000, cap=1000, outflow_per_s=5.95, drain_s=8400, sold_out_s=None)

    2,000 units, of which one in three people buys one:

    >>> plan_pace(50_000, 50, 180, units=2_000, units_each=1 / 3).sold_out_s
    300
    """
    if people < 0 or rate_per_s <= 0 or checkout_s <= 0 or not 0 <= no_show <= 1:
        raise ValueError("a crowd, a pace and a checkout are positive, absent people a share of 1")
    stay_s = (1 - no_show) * checkout_s + no_show * claim_s
    inside = math.ceil(rate_per_s * stay_s - 1e-9)
    outflow = float(rate_per_s)
    if cap is not None and cap < inside:
        inside, outflow = cap, cap / stay_s
    drain_s = math.ceil(people / outflow - 1e-9)
    sold_out_s = None
    if units is not None:
        needed_s = math.ceil(units / (outflow * (1 - no_show) * units_each) - 1e-9 + checkout_s)
        sold_out_s = needed_s if needed_s - checkout_s <= drain_s else None
    return Pace(
        inside=inside,
        cap=cap if cap is not None else math.ceil(inside * HEADROOM),
        outflow_per_s=round(outflow, 2),
        drain_s=drain_s,
        sold_out_s=sold_out_s,
    )
