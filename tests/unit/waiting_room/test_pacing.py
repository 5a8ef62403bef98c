"""The adaptive pace: its decisions, and what they do to a checkout that is simulated (W10)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairdrop.waiting_room.model import Measures
from fairdrop.waiting_room.pacing import Reason, Step, next_step

LOWEST, HIGHEST, CAP = 1_000, 101_000, 10_000


def seen(**of: float) -> Measures:
    """A healthy interval of a busy sale, but for what is given."""
    healthy = {
        "rate_milli": 50_000,
        "requests": 500,
        "completed": 100,
        "completed_before": 100.0,
        "inside": 200,
        "waiting": 1_000,
    }
    return Measures("DUE", **{**healthy, **of})  # type: ignore[arg-type]


def step(measures: Measures) -> Step:
    return next_step(measures, lowest_milli=LOWEST, highest_milli=HIGHEST, cap=CAP)


@pytest.mark.parametrize(
    ("measures", "rate_milli", "reason"),
    [
        (seen(), 52_000, Reason.HEALTHY),
        (seen(rate_milli=100_500), 101_000, Reason.HEALTHY),  # the operator's bound
        (seen(failed=11), 25_000, Reason.FAILING),
        (seen(failed=10), 52_000, Reason.HEALTHY),  # 2 % is no trouble
        (seen(failed=1, requests=3), 52_000, Reason.HEALTHY),  # nor is a single one
        (seen(failed=3, requests=3), 25_000, Reason.FAILING),
        (seen(slow=26), 40_000, Reason.SLOW),
        (seen(slow=25), 52_000, Reason.HEALTHY),
        (seen(slow=500, failed=500), 25_000, Reason.FAILING),  # the heavier trouble counts
        (seen(completed=0), 40_000, Reason.STALLED),
        (seen(completed=49), 50_000, Reason.STALLING),
        (seen(completed=0, completed_before=9.0), 52_000, Reason.HEALTHY),  # too few to tell
        (seen(requests=0), 50_000, Reason.QUIET),
        (seen(waiting=0), 50_000, Reason.NOT_WAITED_FOR),
        (seen(inside=CAP), 50_000, Reason.CAP),
        (seen(rate_milli=1_500, failed=400), 1_000, Reason.FAILING),
        (seen(rate_milli=500_000), 101_000, Reason.HEALTHY),  # set higher before
    ],
)
def test_a_step_follows_from_what_was_measured(
    measures: Measures, rate_milli: int, reason: Reason
) -> None:
    assert step(measures) == (rate_milli, reason)


@given(
    st.builds(
        Measures,
        status=st.just("DUE"),
        rate_milli=st.integers(0, 10**9),
        requests=st.integers(0, 10**6),
        slow=st.integers(0, 10**6),
        failed=st.integers(0, 10**6),
        completed=st.integers(-10, 10**6),
        completed_before=st.floats(0, 10**6),
        inside=st.integers(0, 10**6),
        waiting=st.integers(0, 10**6),
    ),
    st.integers(1, 10**6),
    st.integers(0, 10**6),
)
def test_the_pace_never_leaves_the_bounds(measures: Measures, lowest: int, more: int) -> None:
    taken = next_step(measures, lowest_milli=lowest, highest_milli=lowest + more, cap=100)
    assert lowest <= taken.rate_milli <= lowest + more
    assert taken.reason.value.partition(":")[0] in {"up", "down", "kept"}


@dataclass
class Checkout:
    """A queue with one server: so many people a second, slower answers the longer the queue.

    Whoever has to wait longer than ``patience_s`` gets an error.
    """

    capacity_per_s: float
    patience_s: float = 10.0
    queue: float = 0.0
    history: list[float] = field(default_factory=list)

    def interval(self, rate_milli: int, seconds: float = 5.0) -> Measures:
        came = rate_milli / 1_000 * seconds
        served = min(self.queue + came, self.capacity_per_s * seconds)
        self.queue += came - served
        limit = self.patience_s * self.capacity_per_s
        failed = max(0.0, self.queue - limit) if self.capacity_per_s else came
        self.queue = min(self.queue, limit)
        delay_s = self.queue / self.capacity_per_s if self.capacity_per_s else self.patience_s
        before = self.history[-1] if self.history else 0.0
        self.history.append(served)
        return Measures(
            "DUE",
            rate_milli=rate_milli,
            requests=round(came),
            slow=round(came) if delay_s > 0.5 else 0,
            failed=round(failed),
            completed=round(served),
            completed_before=before,
            inside=round(self.queue + came),
            waiting=10_000,
        )


def run(checkout: Checkout, intervals: int, rate_milli: int = 10_000) -> list[int]:
    rates = []
    for _ in range(intervals):
        rate_milli = step(checkout.interval(rate_milli)).rate_milli
        rates.append(rate_milli)
    return rates


def test_the_pace_finds_what_the_checkout_can_serve_and_stays_near_it() -> None:
    rates = run(Checkout(capacity_per_s=40), 200)
    settled = rates[60:]
    # The saw of additive increase and multiplicative decrease: around the capacity, not at it.
    assert 0.6 * 40_000 < sum(settled) / len(settled) <= 40_000
    assert max(settled) <= 46_000


Trouble = Callable[[Checkout], None]


def slows_down(checkout: Checkout) -> None:
    checkout.capacity_per_s = 8


def fails(checkout: Checkout) -> None:
    checkout.capacity_per_s = 0


@pytest.mark.parametrize(
    ("trouble", "within", "below_milli"), [(slows_down, 15, 10_000), (fails, 8, LOWEST)]
)
def test_a_checkout_in_trouble_is_relieved_quickly_and_found_again_afterwards(
    trouble: Trouble, within: int, below_milli: int
) -> None:
    checkout = Checkout(capacity_per_s=40)
    before = run(checkout, 100)
    trouble(checkout)
    during = run(checkout, within, before[-1])
    assert during[-1] <= below_milli
    # It never grows while the trouble is there and a queue stands.
    assert all(later <= earlier for earlier, later in pairwise(during[:5]))
    checkout.capacity_per_s = 40
    after = run(checkout, 60, during[-1])
    assert max(after[-20:]) >= 30_000
    assert max(after) <= 46_000


def test_two_sales_that_share_a_checkout_drift_towards_equal_shares() -> None:
    checkout = Checkout(capacity_per_s=60)
    fast, slow = 50_000, 5_000
    for _ in range(300):
        measures = checkout.interval(fast + slow)
        fast = step(_of(measures, fast)).rate_milli
        slow = step(_of(measures, slow)).rate_milli
    assert slow > 0.7 * fast


def _of(measures: Measures, rate_milli: int) -> Measures:
    fields = {name: getattr(measures, name) for name in measures.__struct_fields__}
    return Measures(**{**fields, "rate_milli": rate_milli})
