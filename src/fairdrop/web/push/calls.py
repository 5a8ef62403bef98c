"""Who was called since the last look, without a mark in the store for each reader (W7).

The called set is sorted by claim deadline, and everybody called gets the same time to claim: whoever
is called later has the later deadline. So a reader needs to remember one number. A look that failed,
or a process that was away, loses nobody: the next one goes on from the same number, and a new process
begins with all who are invited at the moment.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fairdrop.waiting_room import CALLED_PAGE

if TYPE_CHECKING:
    from fairdrop.ids import SaleRef
    from fairdrop.waiting_room import Called, WaitingRoom

OVERLAP_MS = 500
"""Looked at again each time: the store's clock may be set back a little."""
WHOLE_EVERY_S = 5.0
"""How often everybody invited is looked at, whatever clocks and settings did in between."""


class Calls:
    """The reader of one sale's called set."""

    def __init__(self, waiting_room: WaitingRoom) -> None:
        """Begin with all who are invited."""
        self._waiting_room = waiting_room
        self._sale: SaleRef | None = None
        self._claim_ttl_ms = 0
        self._latest_ms = 0
        self._whole_at = 0.0
        self._known: dict[str, int] = {}

    async def since_last(self, sale: SaleRef) -> list[str]:
        """Visitors called since the last time. Raises StoreUnavailable, and then loses nobody.

        Cost: one read a thousand people; one a tick, as long as fewer are called in half a second.
        """
        if sale != self._sale:
            self._sale, self._latest_ms, self._known = sale, 0, {}
        whole = self._latest_ms == 0 or time.monotonic() >= self._whole_at
        page = await self._page(sale, 0 if whole else self._latest_ms - OVERLAP_MS)
        if page.claim_ttl_ms != self._claim_ttl_ms and not whole:
            # Deadlines may lie before those given out under the longer time.
            whole, page = True, await self._page(sale, 0)
        people, limit = dict(page.people), CALLED_PAGE
        while page.more:
            known = len(people)
            page = await self._page(sale, page.people[-1][1], limit)
            people.update(page.people)
            if (
                len(people) == known
            ):  # More were called in one millisecond than a page has room for.
                limit *= 2
        found = [name for name, until in people.items() if self._known.get(name) != until]
        if whole:
            self._known = people
            self._whole_at = time.monotonic() + WHOLE_EVERY_S
        else:
            self._known.update(people)
        self._claim_ttl_ms = page.claim_ttl_ms
        self._latest_ms = max(people.values(), default=self._latest_ms)
        return found

    async def _page(self, sale: SaleRef, from_ms: int, limit: int = CALLED_PAGE) -> Called:
        return await self._waiting_room.called(sale, max(0, from_ms), limit=limit)
