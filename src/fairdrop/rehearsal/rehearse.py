"""One rehearsal from the creation of its sale to the verdict."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .client import Client, percentile, raise_if_cancelled
from .control import Control, Figures
from .crowd import Crowd, CrowdReport
from .drop import Drop, time_limit_s
from .ending import wait_for_the_end
from .plan import EARLY_MS, Manners, draw_crowd

if TYPE_CHECKING:
    from fairdrop.app import Parts

OPENS_IN_S = EARLY_MS / 1_000 + 0.5
OBSERVE_EVERY_S = 1.0
END_LIMIT_S = 60.0
RECENT = 2_000
"""Reservations whose latency is shown while the sale runs: the newest ones."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to rehearse."""

    drop: Drop
    buyers: int
    seed: int
    manners: Manners = field(default_factory=Manners)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One moment of a rehearsal, for those who watch."""

    seconds: float
    """Since the opening; negative before it."""
    buyers: int
    arrived: int
    gone: int
    figures: Figures
    admitted_per_s: float
    confirmed_per_s: float
    reserve_p50_ms: float | None
    reserve_p99_ms: float | None


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """What a rehearsal came to. Only ``crowd`` is from the buyers' own memory."""

    sale_id: str
    crowd: CrowdReport
    peak_confirmed_per_s: float
    unfinished: dict[str, int]
    wall_s: float
    """From the opening until nothing was under way any more."""


Watch = Callable[[Snapshot], None]


async def rehearse(  # noqa: PLR0913 - what a rehearsal needs
    wanted: Wanted,
    parts: Parts,
    *,
    url: str,
    admin_key: str,
    watch: Watch = lambda _: None,
    opens_in_s: float = OPENS_IN_S,
    observe_every_s: float = OBSERVE_EVERY_S,
) -> Rehearsed:
    """Create the sale, send the crowd, wait for the end of everything.

    ``url`` and ``admin_key`` are the site's; ``parts`` are only read, at the end. Raises
    ControlRefused when the sale cannot be created.
    """
    opens_at_s = time.time() + opens_in_s
    async with Control(url, admin_key) as control, Client() as client:
        body = wanted.drop.body(opens_at_s)
        sale_id = await control.create(body)
        plans = draw_crowd(
            wanted.seed, wanted.buyers, variants=len(body["variants"]), manners=wanted.manners
        )
        crowd = Crowd(client, plans, url, sale_id, seed=wanted.seed)
        observer = _Observer(control, crowd, sale_id, opens_at_s, watch)
        observing = asyncio.create_task(observer.run(observe_every_s))
        try:
            limit_s = time_limit_s(wanted.buyers, wanted.drop.rate_per_s)
            report = await crowd.run(max(0.0, opens_at_s - time.time()), limit_s)
            left = await wait_for_the_end(parts, sale_id, END_LIMIT_S)
        finally:
            observing.cancel()
            await asyncio.wait([observing])
        await observer.look()
    return Rehearsed(
        sale_id=sale_id,
        crowd=report,
        peak_confirmed_per_s=round(observer.peak_confirmed_per_s, 1),
        unfinished=left,
        wall_s=round(time.time() - opens_at_s, 3),
    )


class _Observer:
    """Looks at the sale's figures once a second, and tells who watches."""

    def __init__(
        self, control: Control, crowd: Crowd, sale_id: str, opens_at_s: float, watch: Watch
    ) -> None:
        self._control = control
        self._crowd = crowd
        self._sale_id = sale_id
        self._opens_at_s = opens_at_s
        self._watch = watch
        self._before: tuple[float, Figures] | None = None
        self.peak_confirmed_per_s = 0.0

    async def run(self, every_s: float) -> None:
        while True:
            await self.look()
            raise_if_cancelled()
            await asyncio.sleep(every_s)

    async def look(self) -> None:
        figures = await self._control.figures(self._sale_id)
        if figures is not None:
            self._watch(self._snapshot(figures, time.time()))

    def _snapshot(self, figures: Figures, now_s: float) -> Snapshot:
        admitted_per_s = confirmed_per_s = 0.0
        if self._before is not None:
            seconds = now_s - self._before[0]
            earlier = self._before[1]
            admitted_per_s = max(0.0, (figures.admitted - earlier.admitted) / seconds)
            confirmed = figures.orders.get("CONFIRMED", 0) - earlier.orders.get("CONFIRMED", 0)
            confirmed_per_s = max(0.0, confirmed / seconds)
            self.peak_confirmed_per_s = max(self.peak_confirmed_per_s, confirmed_per_s)
        self._before = (now_s, figures)
        recent = self._crowd.client.latencies_ms.get("reserve", [])[-RECENT:]
        return Snapshot(
            seconds=now_s - self._opens_at_s,
            buyers=len(self._crowd.plans),
            arrived=self._crowd.arrived,
            gone=self._crowd.results.total(),
            figures=figures,
            admitted_per_s=admitted_per_s,
            confirmed_per_s=confirmed_per_s,
            reserve_p50_ms=percentile(recent, 0.50),
            reserve_p99_ms=percentile(recent, 0.99),
        )
