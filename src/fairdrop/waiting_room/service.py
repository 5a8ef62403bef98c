"""The waiting room's use cases: join, status, claim, leave, tick."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

from fairdrop.drivers.sale_scripts import CoalescedScript, SaleScript
from fairdrop.ids import new_secret_id

from .model import (
    REVOKED_CHARS,
    Adapted,
    Called,
    Entrants,
    Filled,
    Fronted,
    FrontOutcome,
    Grace,
    LeaveOutcome,
    Left,
    Line,
    Measures,
    Observed,
    Presented,
    Restored,
    RestoreOutcome,
    RevokedPage,
    Standing,
    Ticked,
)
from .pacing import Step, next_step

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    from fairdrop.drivers.store import Store
    from fairdrop.ids import SaleRef

_PACKAGE = "fairdrop.waiting_room"
JOIN_LIMIT = 96
"""Joins of one script call: about 0.6 ms of the store's time (case 37). One call is under way at a time:
with two and three a crowd of 256 was all in the store, and the web worker idle for a tenth of the time."""
TICK_LIMIT = 250
"""People moved in one run of the script: about 0.6 ms of the store's time (case 37)."""
LEAVE_LIMIT = 256
"""Admissions ended in one run of ``leave``: well under 1 ms of the store's time (case 37)."""
ENTRANTS_PIECE = 2_000
"""Entrants read in one run of ``entrants``: about 1 ms of the store's time."""
FILL_LIMIT = 500
"""People put into the line in one run of ``fill``: about 1 ms of the store's time (case 37)."""
CALLED_PAGE = 1_000
"""People read in one run of ``called``: under 1 ms of the store's time (case 37)."""
STATUS_LIMIT = 250
"""Visitors that one run of ``status`` may be for: under 1 ms of the store's time (case 37)."""
REVOKED_PAGE = 10_000
"""Ids read in one run of ``revocations``: about 2 ms of the store's time (case 37)."""
REVOKED_MOST = 100_000
"""Ids that the list of revoked tokens has at the most: about 1 MB as a document."""


class WaitingRoom:
    """The line of every sale. All calls are coalesced; each raises StoreUnavailable (W14)."""

    def __init__(self, store: Store) -> None:
        """Load the scripts; nothing is sent yet."""
        self._tick = SaleScript(store, _PACKAGE, "tick", Ticked)
        self._called = SaleScript(store, _PACKAGE, "called", Called)
        self._join: CoalescedScript[tuple[str, str], Standing] = CoalescedScript(
            SaleScript(store, _PACKAGE, "join", Line),
            _standings,
            max_batch=JOIN_LIMIT,
            max_in_flight=1,
        )
        self._statuses = SaleScript(store, _PACKAGE, "status", Line)
        self._status: CoalescedScript[str, Standing] = CoalescedScript(self._statuses, _standings)
        self._claim: CoalescedScript[tuple[str, str], Standing] = CoalescedScript(
            SaleScript(store, _PACKAGE, "claim", Line), _standings
        )
        self._front: CoalescedScript[tuple[str, int, bool], FrontOutcome] = CoalescedScript(
            SaleScript(store, _PACKAGE, "front", Fronted), lambda fronted: fronted.outcomes
        )
        self._revocations = SaleScript(store, _PACKAGE, "revocations", RevokedPage)
        self._entrants = SaleScript(store, _PACKAGE, "entrants", Entrants)
        self._fill = SaleScript(store, _PACKAGE, "fill", Filled)
        self._observe = SaleScript(store, _PACKAGE, "observe", Observed)
        self._measures = SaleScript(store, _PACKAGE, "measures", Measures)
        self._adapt = SaleScript(store, _PACKAGE, "adapt", Adapted)
        self._grace = SaleScript(store, _PACKAGE, "grace", Grace)
        self._restore: CoalescedScript[Presented, RestoreOutcome] = CoalescedScript(
            SaleScript(store, _PACKAGE, "restore", Restored), lambda restored: restored.outcomes
        )
        self._leave_many = SaleScript(store, _PACKAGE, "leave", Left)
        self._leave: CoalescedScript[tuple[str, str | None, bool], LeaveOutcome] = CoalescedScript(
            self._leave_many, lambda left: left.outcomes
        )

    def join(self, sale: SaleRef, visitor: str) -> asyncio.Future[Standing]:
        """One place for the visitor, however often and from wherever they join (W1).

        In the lobby the place is an entry of the draw, under a random id (W3).
        """
        return self._join.submit(sale, (visitor, new_secret_id()))

    def status(self, sale: SaleRef, visitor: str) -> asyncio.Future[Standing]:
        """Where the visitor stands; changes nothing (W5)."""
        return self._status.submit(sale, visitor)

    async def statuses(self, sale: SaleRef, visitors: Sequence[str]) -> Line:
        """Where at most ``STATUS_LIMIT`` visitors stand, in order: one read, without a future each."""
        return await self._statuses(sale, list(visitors))

    def claim(self, sale: SaleRef, visitor: str) -> asyncio.Future[Standing]:
        """Turn the visitor's call into an admission; a repeated claim gives the same one (W11)."""
        return self._claim.submit(sale, (visitor, new_secret_id()))

    def leave(self, sale: SaleRef, visitor: str) -> asyncio.Future[LeaveOutcome]:
        """Give the visitor's place up, wherever it is; a place inside is free at once (W9)."""
        return self._leave.submit(sale, (visitor, None, False))

    def complete(self, sale: SaleRef, visitor: str, admission: str) -> asyncio.Future[LeaveOutcome]:
        """End the admission whose order is confirmed: the token is dead at once (W13)."""
        return self._leave.submit(sale, (visitor, admission, True))

    async def complete_many(self, sale: SaleRef, admissions: Sequence[tuple[str, str]]) -> None:
        """The same for a caller that has many (visitor, admission), without a future each."""
        for at in range(0, len(admissions), LEAVE_LIMIT):
            batch = [(*admission, True) for admission in admissions[at : at + LEAVE_LIMIT]]
            await self._leave_many(sale, batch)

    def front(
        self, sale: SaleRef, visitor: str, *, first: bool, early: bool
    ) -> asyncio.Future[FrontOutcome]:
        """Give an invited visitor a place ahead of the line (W19); again it changes nothing.

        ``first`` stands ahead of the others at the front; ``early`` also before the lobby opens.
        """
        return self._front.submit(sale, (visitor, 1 if first else 2, early))

    def end(
        self, sale: SaleRef, visitor: str, admission: str, *, completed: bool
    ) -> asyncio.Future[LeaveOutcome]:
        """End one admission, as done or as left; a newer one of the same visitor stays."""
        return self._leave.submit(sale, (visitor, admission, completed))

    async def called(
        self, sale: SaleRef, from_ms: int, *, limit: int = CALLED_PAGE, now_ms: int = 0
    ) -> Called:
        """Who is invited, with claim deadlines of ``from_ms`` and later: a page, the earliest first."""
        return await self._called(sale, [from_ms, limit], now_ms=now_ms)

    async def revocations(self, sale: SaleRef) -> list[str]:
        """How the ids of admissions begin that ended before their token's expiry (W12).

        Those whose tokens live longest come first; beyond ``REVOKED_MOST`` the rest is left out.
        """
        found: list[str] = []
        for offset in range(0, REVOKED_MOST, REVOKED_PAGE):
            page = await self._revocations(sale, [offset, REVOKED_PAGE, REVOKED_CHARS])
            found += page.ids
            if not page.more:
                break
        return found

    async def entrants(self, sale: SaleRef, first: int) -> Entrants:
        """A piece of the lobby's list from ``first`` (counted from 0) on: entry id, then visitor."""
        return await self._entrants(sale, [first, ENTRANTS_PIECE])

    async def fill(self, sale: SaleRef, first: int, visitors: Sequence[str]) -> Filled:
        """Put the next people of the draw into the line, from position ``first`` (from 1) on (W3).

        At most ``FILL_LIMIT`` people. Each piece counts once, whoever calls it and how often.
        """
        return await self._fill(sale, [first, list(visitors)])

    def restore(self, sale: SaleRef, presented: Presented) -> asyncio.Future[RestoreOutcome]:
        """Give back a place that a receipt proves; at most once, and never above the cap (W15).

        Whether the receipt proves it, the caller has checked.
        """
        return self._restore.submit(sale, presented)

    async def grace(self, sale: SaleRef, milliseconds: int) -> int:
        """Call nobody for so long, while people come back; 0 ends it. Returns until when (ms)."""
        return (await self._grace(sale, [milliseconds])).restoring_until_ms

    async def observe(self, sale: SaleRef, requests: int, slow: int, failed: int) -> None:
        """Add up what a web worker saw of the checkout since it last told (W10)."""
        await self._observe(sale, [requests, slow, failed])

    async def adapt(  # noqa: PLR0913 - the bounds that the operator set
        self,
        sale: SaleRef,
        interval_ms: int,
        *,
        lowest_milli: int,
        highest_milli: int,
        cap: int,
        now_ms: int = 0,
    ) -> Step | None:
        """One step of the adaptive pace, once an interval however many workers ask (W10).

        None when it is not due, or when another worker took this step.
        """
        seen = await self._measures(sale, [interval_ms], now_ms=now_ms)
        if seen.status != "DUE":
            return None
        step = next_step(seen, lowest_milli=lowest_milli, highest_milli=highest_milli, cap=cap)
        counted = (seen.requests, seen.slow, seen.failed)
        adapted = await self._adapt(
            sale,
            [seen.step, interval_ms, step.rate_milli, step.reason, *counted],
            now_ms=now_ms,
        )
        return Step(adapted.rate_milli, step.reason) if adapted.status == "ADAPTED" else None

    async def tick(self, sale: SaleRef, *, now_ms: int = 0) -> Ticked:
        """One bounded step of the line; safe to run in any number of places at once (W8)."""
        return await self._tick(sale, [TICK_LIMIT], now_ms=now_ms)


def _standings(line: Line) -> list[Standing]:
    # What Standing() does, in a third of its time: a join and a status are one each.
    return [tuple.__new__(Standing, pair) for pair in zip(line.places, repeat(line))]
