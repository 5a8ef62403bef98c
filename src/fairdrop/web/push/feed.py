"""One sale, for all who listen to it in this process: one look at the store a tick (W7, H10)."""

from __future__ import annotations

import asyncio
import time
from itertools import islice
from typing import TYPE_CHECKING, Any

import structlog

from fairdrop.drivers.sale_scripts import SaleNotLoaded
from fairdrop.errors import FairdropError
from fairdrop.waiting_room import STATUS_LIMIT
from fairdrop.web.data_plane.line import status_body

from .calls import Calls
from .listener import Broadcast, Message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairdrop.app import Parts
    from fairdrop.catalog import Sale
    from fairdrop.web.live import Live, LiveDocument

    from .counts import Counts
    from .listener import Listener

_log = structlog.get_logger(__name__)

TICK_S = 0.25
SPACING_S = 0.35
"""The least time between two documents, so that a busy sale costs a client three a second at most."""
LEISURE_S = 2.0
"""How long news may wait that are neither stock nor the serving number nor the mode."""
HEARTBEAT_S = 4.5
"""A document is sent at least this often: it keeps the clock, and tells both sides of a dead line."""
SLOW_S = 10.0
"""How long one message may take to go into a socket before its reader is dropped."""
TELLING_S = 0.5
"""How long a tick tells places before it tells everybody the stock; the rest is told by the next."""


class Feed:
    """The listeners of one sale, and the task that keeps them informed."""

    def __init__(self, parts: Parts, live: Live, sale_id: str, counts: Counts) -> None:
        """Nobody listens yet; the task starts with the first who does."""
        self._parts = parts
        self._live = live
        self.sale_id = sale_id
        self._counts = counts
        self._calls = Calls(parts.waiting_room)
        self._persons: dict[str, tuple[Listener, ...]] = {}
        self._unread: dict[str, None] = {}
        """Visitors whose place has to be told, in the order in which they came."""
        self._newest: Broadcast | None = None
        self._urgent: Any = None
        self._etag = b""
        self._sent_at = 0.0
        self._task: asyncio.Task[None] | None = None
        self._failing = False
        self.listeners: set[Listener] = set()

    def add(self, listener: Listener) -> None:
        """Tell the listener everything from now on, the present state first."""
        self.listeners.add(listener)
        if self._newest is not None:
            # A copy, since the time to reach everybody is not to be measured by who comes later.
            listener.offer(Broadcast(self._newest.message, 0.0))
        if listener.visitor is not None:
            self._persons[listener.visitor] = (*self._persons.get(listener.visitor, ()), listener)
            self._unread[listener.visitor] = None
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def remove(self, listener: Listener) -> None:
        """Forget the listener."""
        self.listeners.discard(listener)
        visitor = listener.visitor
        if visitor is not None:
            left = tuple(each for each in self._persons.get(visitor, ()) if each is not listener)
            if left:
                self._persons[visitor] = left
            else:
                self._persons.pop(visitor, None)
                self._unread.pop(visitor, None)
        if not self.listeners:
            self.stop()

    def stop(self) -> None:
        """End the task; who still listens is told nothing more."""
        if self._task is not None:
            self._task.cancel()
        # A document from before a pause is no news for whoever comes after it.
        self._task, self._newest, self._urgent = None, None, None

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            try:
                await self._tick()
                self._failing = False
            except SaleNotLoaded:
                # The store has been emptied or is being filled: look up the sale's epoch anew.
                self._parts.catalog.forget(self.sale_id)
                self._failing = True
            except FairdropError as error:
                # Nothing is sent: clients that hear nothing ask, and are told the truth (W14).
                if not self._failing:
                    _log.warning("feed_waits", sale=self.sale_id, error=str(error))
                self._failing = True
            except Exception:  # noqa: BLE001 - a bug in one tick ends no feed
                _log.exception("feed_failed", sale=self.sale_id)
                self._failing = True
            self._drop_slow()
            if self._unread and not self._failing:  # There was no time to tell all of them.
                await asyncio.sleep(0)
            else:
                await asyncio.sleep(max(0.05, TICK_S - (clock() - began)))

    async def _tick(self) -> None:
        sale = self._parts.catalog.known(self.sale_id) or await self._parts.catalog.sale(
            self.sale_id
        )
        if sale is None:
            return
        document = await self._live.fresh(sale)
        if self._persons:
            called = [
                visitor
                for visitor in await self._calls.since_last(sale.ref)
                if visitor in self._persons
            ]
            if called:  # They hear it before those who have just come hear where they stand.
                self._unread = dict.fromkeys(called) | self._unread
        figures = document.figures
        # What everybody is to know within a second.
        urgent = (sale.epoch, sale.version, figures.mode, figures.served, figures.variants)
        broadcast = self._due(document, urgent)
        # Whose turn it is hears it before everybody hears how many units are left.
        await self._tell_places(sale, broadcast)
        if broadcast is not None:
            self._newest, self._sent_at = broadcast, broadcast.began
            self._urgent, self._etag = urgent, document.etag
            self._announce(broadcast)

    async def _tell_places(self, sale: Sale, due: Broadcast | None) -> None:
        """A read for each piece of them; while the next is read, the one before goes out."""
        public = None if due is None else due.message
        until = time.monotonic() + TELLING_S
        while self._unread and time.monotonic() < until:
            visitors = list(islice(self._unread, STATUS_LIMIT))
            line = await self._parts.waiting_room.statuses(sale.ref, visitors)
            for visitor, place in zip(visitors, line.places, strict=True):
                self._unread.pop(visitor, None)
                listeners = self._persons.get(visitor)
                if listeners:
                    message = Message("place", status_body(self._parts, sale, visitor, place, line))
                    self._drop(each for each in listeners if not each.tell(message, public))

    def _due(self, document: LiveDocument, urgent: object) -> Broadcast | None:
        """The document for everybody, if it is time to tell it."""
        waited_s = time.monotonic() - self._sent_at
        due = (
            self._newest is None
            or waited_s >= HEARTBEAT_S
            or (urgent != self._urgent and waited_s >= SPACING_S)
            or (document.etag != self._etag and waited_s >= LEISURE_S)
        )
        return Broadcast.of(document.body) if due else None

    def _announce(self, broadcast: Broadcast) -> None:
        """To all who have not got it with their place."""
        rest = [each for each in self.listeners if each.shown is not broadcast.message]
        broadcast.left = len(rest)
        for listener in rest:
            self._counts.replaced += listener.offer(broadcast)

    def _drop_slow(self) -> None:
        before = time.monotonic() - SLOW_S
        self._drop(each for each in self.listeners if 0 < each.busy_since < before)

    def _drop(self, slow: Iterable[Listener]) -> None:
        for listener in list(slow):
            self._counts.dropped += 1
            self.remove(listener)
            listener.close()
            if listener.connection is not None:
                listener.connection.abort()
