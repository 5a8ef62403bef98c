"""The crowd: everybody's visit, at the same time, in one event loop."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from yarl import URL

from .board import Board
from .buyer import Buyer
from .client import Client, percentile
from .plan import BuyerPlan
from .result import Result
from .visitor import Shop

_COMPLAINTS_KEPT = 1_000


@dataclass(frozen=True, slots=True)
class Latency:
    """How long the answers to one step took, as the crowd measured it."""

    answers: int
    p50_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True, slots=True)
class CrowdReport:
    """What the crowd knows: nothing of this counts as proof of what was sold."""

    buyers: int
    results: dict[str, int]
    complaints: dict[str, int]
    """Answers that must not be, in words, and how often each came."""
    requests: int
    repeats: int
    latencies: dict[str, Latency]
    wall_s: float
    """From the opening to the end of the last visit."""

    @property
    def still_wanting(self) -> int:
        """Buyers who were still there, without a unit, when the time limit passed."""
        return self.results.get(Result.OUT_OF_TIME, 0)


@dataclass(slots=True)
class Crowd:
    """All buyers of a rehearsal. One use: :meth:`run`."""

    client: Client
    plans: Sequence[BuyerPlan]
    """In order of arrival."""
    url: str
    sale: str
    seed: int = 0
    board: Board = field(init=False)
    results: Counter[Result] = field(default_factory=Counter)
    complaints: Counter[str] = field(default_factory=Counter)
    arrived: int = 0
    _shop: Shop = field(init=False)
    _left: asyncio.Event = field(default_factory=asyncio.Event)
    _opened_at: float = 0.0
    _ended_at: float = 0.0

    def __post_init__(self) -> None:
        """Make what all buyers share."""
        document = URL(f"{self.url}/v1/sales/{self.sale}", encoded=True)
        self.board = Board(self.client, document, seed=self.seed)
        self._shop = Shop(self.client, self.board, self.url, self.sale, self._complain)

    async def run(self, opens_in_s: float, time_limit_s: float) -> CrowdReport:
        """Let everybody come and go; return when all are gone, or the time limit has passed.

        ``opens_in_s`` is when the sale opens, from now. An exception in a buyer's code is a bug of
        ours and ends the run.
        """
        clock = asyncio.get_running_loop().time
        self._opened_at = clock() + opens_in_s
        try:
            async with asyncio.timeout(opens_in_s + time_limit_s):
                with _rare_collections():
                    await self._come_and_go()
        except TimeoutError:
            self.results[Result.OUT_OF_TIME] += len(self.plans) - self.results.total()
        self._ended_at = clock()
        return self.report()

    async def _come_and_go(self) -> None:
        clock = asyncio.get_running_loop().time
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(self.board.keep_reading())
            for plan in self.plans:
                pause_s = self._opened_at + plan.arrives_ms / 1_000 - clock()
                if pause_s > 0:
                    await asyncio.sleep(pause_s)
                group.create_task(self._visit(plan))
                self.arrived += 1
            if self.plans:
                await self._left.wait()
            reading.cancel()

    def report(self) -> CrowdReport:
        """What the crowd knows now."""
        ended_at = self._ended_at or asyncio.get_running_loop().time()
        return CrowdReport(
            buyers=len(self.plans),
            results={
                result.value: self.results[result] for result in Result if self.results[result]
            },
            complaints=dict(self.complaints.most_common()),
            requests=self.client.requests,
            repeats=self.client.repeats,
            latencies={step: self.latency(step) for step in sorted(self.client.latencies_ms)},
            wall_s=round(max(0.0, ended_at - self._opened_at), 3),
        )

    def latency(self, step: str) -> Latency:
        """How long the answers to a step have taken so far."""
        samples = self.client.latencies_ms.get(step, [])
        p50, p99 = percentile(samples, 0.50), percentile(samples, 0.99)
        return Latency(
            len(samples),
            None if p50 is None else round(p50, 1),
            None if p99 is None else round(p99, 1),
        )

    async def _visit(self, plan: BuyerPlan) -> None:
        self.results[await Buyer(plan, self._shop).visit()] += 1
        if self.results.total() == len(self.plans):
            self._left.set()

    def _complain(self, words: str) -> None:
        if words in self.complaints or len(self.complaints) < _COMPLAINTS_KEPT:
            self.complaints[words] += 1


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Have the cyclic garbage collector run rarely.

    A crowd is a million living objects, and next to no garbage that only the collector can find:
    at its usual pace it took a third of the simulator's time.
    """
    usual = gc.get_threshold()
    gc.set_threshold(50_000, 20, 1_000)
    try:
        yield
    finally:
        gc.set_threshold(*usual)
