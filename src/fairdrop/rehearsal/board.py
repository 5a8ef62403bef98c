"""The public document, read once for the whole crowd, as a CDN would read it (W6).

Buyers do not poll: they wait here until the document shows what they wait for. Somebody in the line
waits until the serving number has reached their own, by subtraction; somebody inside who found
everything taken waits for units to come back. When units do come back, not everybody looks at the
same moment: only some of those who watch notice, chosen at random, a few for each unit.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
from collections.abc import Collection
from http import HTTPStatus
from typing import NamedTuple

import msgspec
from yarl import URL

from .client import Client

INTERVAL_S = 0.25
NOTICED_BY = 3
"""Of those who watch, how many notice each unit that comes back."""
_SELLING = frozenset({"open", "paused", "draining"})


class Variant(msgspec.Struct, frozen=True):
    """A variant's live stock."""

    id: str
    price_minor: int
    total: int
    held: int
    sold: int
    free: int


class Document(msgspec.Struct, frozen=True):
    """What the crowd reads of the public document."""

    id: str
    mode: str
    served: int
    tail: int
    waiting: int
    called: int
    inside: int
    measured_rate_per_s: float
    server_time_ms: int
    variants: tuple[Variant, ...]

    def all_sold(self, wishes: tuple[int, ...]) -> bool:
        """Whether every unit of these variants (by number) is sold: none can come back."""
        return all(self.variants[wish].sold >= self.variants[wish].total for wish in wishes)


_decode = msgspec.json.Decoder(Document).decode


class _Watcher(NamedTuple):
    wishes: tuple[int, ...]
    least: int
    news: asyncio.Future[bool]


class Board:
    """What the public document shows, and who waits for what in it."""

    def __init__(self, client: Client, url: URL, *, seed: int = 0) -> None:
        """``url`` is the address of the public document; :meth:`keep_reading` reads it."""
        self._client = client
        self._url = url
        self._etag = ""
        self._dice = random.Random(seed)
        self._turns: list[tuple[int, int, tuple[int, ...], asyncio.Future[bool]]] = []
        self._ties = itertools.count()
        self._watchers: list[_Watcher] = []
        self._opened = asyncio.Event()
        self._sold_out: frozenset[int] = frozenset()
        self.document: Document | None = None
        self.has_lost_line = False
        """The serving number went back: the store had to be filled anew."""

    async def keep_reading(self) -> None:
        """Read the document again and again, until cancelled."""
        while True:
            await self.read()
            await asyncio.sleep(INTERVAL_S)

    async def read(self) -> None:
        """Read the document once and tell those who wait for what it shows."""
        headers = {"If-None-Match": self._etag} if self._etag else None
        answer = await self._client.call("document", "GET", self._url, headers)
        if answer.status == HTTPStatus.OK:
            self._etag = answer.etag
            self.show(_decode(answer.body))
        elif self.document is not None:
            self.show(self.document)

    def show(self, document: Document) -> None:
        """Take this document, and tell those who wait for what it shows."""
        before, self.document = self.document, document
        if document.mode in _SELLING:
            self._opened.set()
        sold_out = frozenset(
            number for number in range(len(document.variants)) if document.all_sold((number,))
        )
        if sold_out != self._sold_out:
            self._sold_out = sold_out
            self._tell_sold_out()
        if before is not None and (document.served < before.served or document.tail < before.tail):
            # The store has lost the line: whoever stood in it has to ask where they are now.
            self.has_lost_line = True
            self._call_up_to(max(before.tail, before.served))
        self._call_up_to(document.served)
        self._tell_of_stock(document)

    async def opened(self) -> None:
        """Wait until the sale has opened."""
        await self._opened.wait()

    def has_sold(self, wishes: tuple[int, ...]) -> bool:
        """Whether every unit of these variants is sold."""
        return self._sold_out.issuperset(wishes)

    def ms_until(self, server_ms: int) -> int:
        """How long until this time by the server's clock, from the newest document."""
        return 0 if self.document is None else server_ms - self.document.server_time_ms

    def find(
        self, wishes: tuple[int, ...], quantity: int, least: int, *, among: Collection[int]
    ) -> tuple[int, int] | None:
        """The first wish (and how many of it) of which the document shows enough; None without."""
        document = self.document
        if document is None:
            return None
        for number in wishes:
            if number in among and document.variants[number].free >= least:
                return number, min(quantity, document.variants[number].free)
        return None

    async def turn(self, position: int, wishes: tuple[int, ...]) -> bool:
        """Wait for the serving number to reach ``position``: True; False once all wishes are sold."""
        if self.has_sold(wishes):
            return False
        if self.document is not None and position <= self.document.served:
            return True
        called: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._turns, (position, next(self._ties), wishes, called))
        return await called

    async def stock(self, wishes: tuple[int, ...], least: int) -> bool:
        """Wait for ``least`` units of a wish to come back: True; False once all wishes are sold."""
        if self.has_sold(wishes):
            return False
        news: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        watchers = self._watchers
        watchers.append(_Watcher(wishes, least, news))
        # A random place among the others, so that taking from the end takes at random.
        other = self._dice.randrange(len(watchers))
        watchers[other], watchers[-1] = watchers[-1], watchers[other]
        return await news

    def _call_up_to(self, position: int) -> None:
        while self._turns and self._turns[0][0] <= position:
            called = heapq.heappop(self._turns)[3]
            if not called.done():
                called.set_result(True)

    def _tell_sold_out(self) -> None:
        kept = []
        for entry in self._turns:
            if entry[3].done():
                continue
            if self.has_sold(entry[2]):
                entry[3].set_result(False)
            else:
                kept.append(entry)
        heapq.heapify(kept)
        self._turns = kept
        staying = []
        for watcher in self._watchers:
            if watcher.news.done():
                continue
            if self.has_sold(watcher.wishes):
                watcher.news.set_result(False)
            else:
                staying.append(watcher)
        self._watchers = staying

    def _tell_of_stock(self, document: Document) -> None:
        unseen = {
            number: NOTICED_BY * variant.free
            for number, variant in enumerate(document.variants)
            if variant.free > 0
        }
        if not unseen:
            return
        staying = []
        watchers = self._watchers
        while watchers and any(left > 0 for left in unseen.values()):
            watcher = watchers.pop()
            if watcher.news.done():
                continue
            for number in watcher.wishes:
                if unseen.get(number, 0) > 0 and document.variants[number].free >= watcher.least:
                    unseen[number] -= 1
                    watcher.news.set_result(True)
                    break
            else:
                staying.append(watcher)
        watchers.extend(staying)
