"""The adaptive pace (W10): how many people a second the checkout can serve, found by trying.

Additive increase, multiplicative decrease (Chiu and Jain, 1989), as TCP does: while the checkout is
well and people wait, the pace grows by the same small step each time; as soon as the checkout fails,
slows down or stops completing orders, the pace shrinks by a factor. What it finds follows the
checkout, and several sales that share one checkout drift towards equal shares.

Pure: measures in, a pace and its reason out. The store takes one step an interval, whoever asks.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .model import Measures

STEPS = 50
"""The way from the lowest to the highest pace takes so many healthy intervals."""
FAILING_SHARE = 0.02
"""More failures than this share of the answers (and more than one) halve the pace."""
SLOW_SHARE = 0.05
"""More slow answers than this share (and more than one), so a 95th percentile above the target."""
HALVE = 0.5
EASE = 0.8
ENOUGH_ORDERS = 10
"""Fewer completed orders in the interval before say nothing about this one."""


class Reason(StrEnum):
    """Why the pace changed, or why it did not; what stands before the colon is counted."""

    HEALTHY = "up:healthy"
    FAILING = "down:failing"
    SLOW = "down:slow"
    STALLED = "down:stalled"
    STALLING = "kept:stalling"
    QUIET = "kept:quiet"
    NOT_WAITED_FOR = "kept:nobody_waits"
    CAP = "kept:cap"


class Step(NamedTuple):
    """The pace from now on, in thousandths of a person per second, and why."""

    rate_milli: int
    reason: Reason


def next_step(seen: Measures, *, lowest_milli: int, highest_milli: int, cap: int) -> Step:
    """What the measures of one interval make of the pace.

    Trouble is looked at first, in the order of its weight. Without trouble the pace grows only if it
    is what holds people up: not while nobody waits, nor while the cap is reached.
    """
    reason = _judge(seen, cap)
    rate = seen.rate_milli
    if reason is Reason.HEALTHY:
        rate += max(1, (highest_milli - lowest_milli) // STEPS)
    elif reason is Reason.FAILING:
        rate = int(rate * HALVE)
    elif reason in (Reason.SLOW, Reason.STALLED):
        rate = int(rate * EASE)
    return Step(max(lowest_milli, min(highest_milli, rate)), reason)


def _judge(seen: Measures, cap: int) -> Reason:
    if seen.failed > max(1.0, FAILING_SHARE * seen.requests):
        return Reason.FAILING
    if seen.slow > max(1.0, SLOW_SHARE * seen.requests):
        return Reason.SLOW
    if seen.inside and seen.waiting and seen.completed_before >= ENOUGH_ORDERS:
        if seen.completed == 0:
            return Reason.STALLED
        if seen.completed < seen.completed_before / 2:
            return Reason.STALLING
    if seen.requests == 0:
        return Reason.QUIET
    if seen.waiting == 0:
        return Reason.NOT_WAITED_FOR
    if seen.inside >= cap:
        return Reason.CAP
    return Reason.HEALTHY
