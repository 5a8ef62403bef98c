"""Pure decisions of the waiting room: when to poll again, how long a wait may be."""

from __future__ import annotations

NEAR = 100
MIDDLE = 1_000


def poll_after_ms(rank: int, jitter: float) -> int:
    """When to ask again (W6): 1 s below 100 ahead, 3 s below 1,000, else 5 s, each +-20 %.

    ``jitter`` is a number from 0 to 1, drawn by the caller, so that a crowd does not ask in step.
    """
    base = 1_000 if rank < NEAR else 3_000 if rank < MIDDLE else 5_000
    return int(base * (0.8 + 0.4 * jitter))


def wait_range_s(rank: int, outflow_milli: int, rate_milli: int) -> tuple[int, int] | None:
    """The estimated wait as a range in seconds, from the measured outflow.

    ``rank`` people are ahead; rates are in thousandths of a person per second. Before anything was
    measured (-1) the set pace counts. None when nothing moves, since no number would be honest.
    While the outflow is steady the range never rises: it falls with the people ahead, and the store
    tells another outflow only once it is far off the one told before (``tick.lua``).
    """
    rate = rate_milli if outflow_milli < 0 else outflow_milli
    if rate <= 0:
        return None
    middle = (rank + 1) * 1_000 / rate
    return int(middle * 0.8), int(middle * 1.3) + 2
