"""Plain numbers about answers: what the hot path adds to, and metrics are made of."""

from __future__ import annotations

from bisect import bisect_left

BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
"""Upper bounds of the histogram's buckets, in seconds; one more is for all that took longer."""
SUCCESS = 0
"""Stands for any status that is no error: a hot endpoint does not see which one it sent."""


class Tally:
    """Answers of one kind: how many took how long."""

    __slots__ = ("counts", "seconds")

    def __init__(self) -> None:
        """No answers yet."""
        self.seconds = 0.0
        self.counts = [0] * (len(BOUNDS_S) + 1)

    def add(self, seconds: float) -> None:
        """One more, which took so long."""
        self.seconds += seconds
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1


class Tallies(dict[int, Tally]):
    """A tally for each status; those that were not there are made when they are asked for."""

    def __missing__(self, status: int) -> Tally:
        """The first answer with this status."""
        return self.setdefault(status, Tally())

    def take(self) -> dict[int, Tally]:
        """What was counted since the last time."""
        taken = dict(self)
        self.clear()
        return taken
