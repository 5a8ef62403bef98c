"""Holding a draw: from the lobby's shut door to the filled line, in steps that any worker can resume.

What cannot be taken back is committed to PostgreSQL before anybody can see it: the list with its
root, then the beacon's value with the seed. Everything after that is arithmetic: a worker that
begins again reads the same list from the store, computes the same order and fills on from where the
line ends. The hashing runs in a thread, so that the worker's other loops go on.
"""

from __future__ import annotations

import asyncio
import functools
from array import array
from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import structlog

from fairdrop import lottery
from fairdrop.waiting_room import FILL_LIMIT

from . import records
from .model import DrawState, EnterOutcome, Inclusion, Step
from .publication import ENTRIES_FILE, ORDER_FILE, entries_text, order_text
from .records import SQL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from fairdrop.drivers.database import Database
    from fairdrop.ids import SaleRef
    from fairdrop.waiting_room import WaitingRoom

    from .beacon import Beacons
    from .model import BeaconValue, DrawRecord

_log = structlog.get_logger(__name__)
KEPT = 2_000_000
"""Entries of trees that are kept: who asks about two sales in turn does not have both hashed each time."""
_LINE = lottery.ENTRY_LENGTH + 1
"""Bytes of each line of ``entries.txt``."""


class _Lobby(NamedTuple):
    """The list of a lobby that is shut: entry ids and visitors in order of arrival."""

    entries: list[str]
    visitors: list[str]
    filled: int


class _DrawnNumbers(NamedTuple):
    """The lottery numbers of a sale, the lowest first."""

    sale_id: str
    key: bytes
    numbers: list[bytes]


class _Tree(NamedTuple):
    """A published list with all hashes above it."""

    entries: int
    levels: list[bytes]
    text: bytes
    by_beginning: dict[bytes, array[int]]
    """Where the entries stand that begin with these two characters."""

    @classmethod
    def of(cls, entries: Sequence[str]) -> _Tree:
        """The tree of a list; for a thread of its own."""
        text, levels = entries_text(entries), lottery.merkle_levels(entries)
        by_beginning: dict[bytes, array[int]] = defaultdict(functools.partial(array, "I"))
        for index in range(len(entries)):
            by_beginning[text[index * _LINE : index * _LINE + 2]].append(index)
        return cls(len(entries), levels, text, by_beginning)

    def index_of(self, entry: str) -> int | None:
        """Where the entry stands; None when it does not."""
        line = f"{entry}\n".encode()
        for index in self.by_beginning.get(line[:2], ()):
            if self.text[index * _LINE : (index + 1) * _LINE] == line:
                return index
        return None


class Draws:
    """The draws of all sales. Any number of workers may hold one; one at a time does."""

    def __init__(self, database: Database, waiting_room: WaitingRoom, beacons: Beacons) -> None:
        """Take the parts; nothing is asked yet."""
        self._database = database
        self._room = waiting_room
        self._beacons = beacons
        self._drawn: _DrawnNumbers | None = None
        self._looking_up = asyncio.Lock()
        self._trees: dict[str, _Tree] = {}
        """By sale, the last one asked about last."""
        self._growing = asyncio.Lock()

    async def record(self, sale_id: str) -> DrawRecord | None:
        """What is on record; None for a sale that has no draw. The seed in it may be secret still."""
        async with self._database.connection() as connection:
            return await records.draw_of(connection, sale_id)

    async def file_size(self, sale_id: str, name: str) -> int | None:
        """Bytes of a public file; None before it is published."""
        return await records.file_size(self._database, sale_id, name)

    def file_parts(self, sale_id: str, name: str) -> AsyncIterator[bytes]:
        """The bytes of a public file, in pieces of a megabyte."""
        return records.file_parts(self._database, sale_id, name)

    async def enter_beacon(self, sale_id: str, value: str, actor: str) -> EnterOutcome:
        """Enter the beacon's value by hand, once the list is closed and before the draw (W4)."""
        async with self._database.transaction() as connection:
            record = await records.draw_of(connection, sale_id)
            if record is None or record.beacon == "none":
                return EnterOutcome.NOT_ASKED
            if record.state is DrawState.COMMITTED:
                return EnterOutcome.LIST_OPEN
            if await connection.fetchval(SQL["enter_beacon"], UUID(sale_id), value) is None:
                return EnterOutcome.DRAWN
            await connection.execute(
                SQL["insert_audit"], actor, "enter_beacon", UUID(sale_id), {"value": value}
            )
        return EnterOutcome.ENTERED

    async def places(self, sale_id: str) -> dict[str, int]:
        """The position in the line that the draw gave to each entry id; empty before it is drawn.

        Costs about 4 us an entry. For whoever restores a line from receipts (W15).
        """
        record = await self.record(sale_id)
        if record is None or not record.revealed:
            return {}
        entries = await self._published(sale_id)
        order = await asyncio.to_thread(lambda: lottery.order(_numbers(record, entries)))
        return {entries[index]: place for place, index in enumerate(order, start=1)}

    async def place(self, sale_id: str, entry: str) -> int | None:
        """The position that the draw gave to one entry; None before it is drawn, or for none of it.

        The first question about a sale costs as much as :meth:`places`, the next ones some
        microseconds: the numbers of the last sale asked about are kept, 75 bytes each.
        """
        async with self._looking_up:
            if self._drawn is None or self._drawn.sale_id != sale_id:
                record = await self.record(sale_id)
                if record is None or not record.revealed:
                    return None
                entries = await self._published(sale_id)
                numbers = await asyncio.to_thread(lambda: sorted(_numbers(record, entries)))
                self._drawn = _DrawnNumbers(sale_id, _key(record), numbers)
            drawn = self._drawn
        number = lottery.number(drawn.key, entry)
        index = bisect_left(drawn.numbers, number)
        found = index < len(drawn.numbers) and drawn.numbers[index] == number
        return index + 1 if found else None

    async def inclusion(self, sale_id: str, entry: str) -> Inclusion | None:
        """The short proof of one entry; None before the list is closed, or for none of it.

        The first question about a sale costs about 2 us an entry, the next ones below 0.1 ms in a
        list of a million: trees of the last sales asked about are kept, 91 bytes an entry.
        """
        async with self._growing:
            tree = self._trees.pop(sale_id, None)
            if tree is None:
                record = await self.record(sale_id)
                if record is None or record.root is None:
                    return None
                entries = await self._published(sale_id)
                tree = await asyncio.to_thread(_Tree.of, entries)
            self._trees[sale_id] = tree
            while (
                len(self._trees) > 1 and sum(each.entries for each in self._trees.values()) > KEPT
            ):
                del self._trees[next(iter(self._trees))]
        index = tree.index_of(entry)
        if index is None:
            return None
        path = [each.hex() for each in lottery.inclusion_path(tree.levels, index)]
        return Inclusion(sale_id, entry, index, tree.entries, tree.levels[-1].hex(), path)

    async def unfinished(self) -> set[str]:
        """Sales whose list is closed, but whose files are not all published yet."""
        async with self._database.connection() as connection:
            rows = await connection.fetch(SQL["unfinished"])
        return {str(row["sale_id"]) for row in rows}

    async def hold(self, sale: SaleRef) -> Step:
        """Bring the sale's draw to its end, or to where it has to wait; safe to repeat at any time.

        Raises StoreUnavailable or DatabaseUnavailable; nothing is lost by trying again. A million
        entrants take some 3 s to the first chunk of the line, and 3 s more to the last.
        """
        async with self._database.transaction() as lock:
            if not await lock.fetchval(SQL["try_lock"], sale.id):
                return Step.ELSEWHERE
            return await self._hold(sale)

    async def _hold(self, sale: SaleRef) -> Step:
        record = await self.record(sale.id)
        beacon = None
        if record is not None and record.state is DrawState.FIXED:
            # Asked for before the list is read, so that waiting costs the store nothing.
            beacon = await self._beacons.value_for(record)
            if beacon is None:
                return Step.AWAITS_BEACON
        lobby = await self._read(sale)
        if lobby is None:
            return Step.NOT_SHUT
        if not lobby.entries:
            return await self._finish(record, beacon)
        if record is None or record.epoch not in {None, sale.epoch}:
            # This list is not the one that was published: one sale has one draw, and its people come
            # back by their receipts. Those who are here stand in order of arrival.
            _log.error("draw_spent", sale=sale.id, entrants=len(lobby.entries))
            await self._fill(sale, lobby, [list(range(len(lobby.entries)))])
            return Step.FILLED
        if record.state is DrawState.COMMITTED:
            record = await self._fix(sale, lobby)
        if record.state is DrawState.FIXED:
            beacon = beacon or await self._beacons.value_for(record)
            if beacon is None:
                return Step.AWAITS_BEACON
            record = await self._reveal(record, beacon)
        drawn = await asyncio.to_thread(_numbers, record, lobby.entries)
        order = await self._fill(sale, lobby, lottery.order_in_parts(drawn))
        await self._publish(record, lobby.entries, drawn, order)
        return Step.FILLED

    async def _finish(self, record: DrawRecord | None, beacon: BeaconValue | None) -> Step:
        """The store has nothing left to fill: what is missing is the publication.

        So it is after a worker died between the last chunk and the files, and after the store lost
        a list that was fixed already: its order is what receipts are good for.
        """
        if record is None or record.state in {DrawState.COMMITTED, DrawState.FILLED}:
            return Step.NO_DRAW
        if record.state is DrawState.FIXED and beacon is not None:
            record = await self._reveal(record, beacon)
        entries = await self._published(record.sale_id)
        drawn = await asyncio.to_thread(_numbers, record, entries)
        await self._publish(record, entries, drawn, await asyncio.to_thread(lottery.order, drawn))
        return Step.FILLED

    async def _published(self, sale_id: str) -> list[str]:
        text = b"".join([part async for part in self.file_parts(sale_id, ENTRIES_FILE)])
        return text.decode().split()

    async def _read(self, sale: SaleRef) -> _Lobby | None:
        entries: list[str] = []
        visitors: list[str] = []
        filled = 0
        while True:
            reply = await self._room.entrants(sale, len(entries))
            if reply.status == "NOT_SHUT":
                return None
            filled = reply.filled
            if filled >= reply.drawn:
                return _Lobby([], [], filled)
            entries += [item[: lottery.ENTRY_LENGTH] for item in reply.piece]
            visitors += [item[lottery.ENTRY_LENGTH :] for item in reply.piece]
            if len(entries) >= reply.drawn:
                return _Lobby(entries, visitors, filled)
            if not reply.piece:
                raise RuntimeError(f"the lobby of sale {sale.id} is shorter than it was")

    async def _fix(self, sale: SaleRef, lobby: _Lobby) -> DrawRecord:
        """Close the list: it and its root are public from here on."""
        root = (await asyncio.to_thread(lottery.merkle_root, lobby.entries)).hex()
        text = entries_text(lobby.entries)
        async with self._database.transaction() as connection:
            fixed = await connection.fetchval(
                SQL["fix"], UUID(sale.id), sale.epoch, len(lobby.entries), root
            )
            if fixed is not None:
                await records.add_file(connection, sale.id, ENTRIES_FILE, text)
        _log.info("draw_fixed", sale=sale.id, entries=len(lobby.entries), root=root)
        return await self._known(sale.id)

    async def _reveal(self, record: DrawRecord, beacon: BeaconValue) -> DrawRecord:
        """Fix the order for ever, and publish the seed."""
        async with self._database.transaction() as connection:
            await connection.fetchval(
                SQL["reveal"],
                UUID(record.sale_id),
                beacon.value,
                beacon.proof,
                beacon.problem,
            )
        if beacon.problem is not None:
            _log.warning("draw_without_beacon", sale=record.sale_id, problem=beacon.problem)
        return await self._known(record.sale_id)

    async def _known(self, sale_id: str) -> DrawRecord:
        record = await self.record(sale_id)
        if record is None:
            raise RuntimeError(f"the draw of sale {sale_id} is gone")
        return record

    async def _fill(
        self, sale: SaleRef, lobby: _Lobby, parts: Iterable[list[int]]
    ) -> Sequence[int]:
        """Fill the line with what is not in it yet; returns the whole order.

        The parts are sorted one by one between two calls of the store, some 2 ms each.
        """
        order: list[int] = []
        filled = lobby.filled
        for part in parts:
            order += part
            while len(order) - filled >= FILL_LIMIT:
                filled = await self._fill_piece(sale, lobby, order, filled)
        while filled < len(order):
            filled = await self._fill_piece(sale, lobby, order, filled)
        return order

    async def _fill_piece(
        self, sale: SaleRef, lobby: _Lobby, order: Sequence[int], filled: int
    ) -> int:
        visitors = [lobby.visitors[index] for index in order[filled : filled + FILL_LIMIT]]
        reply = await self._room.fill(sale, filled + 1, visitors)
        if reply.status == "ELSEWHERE" and reply.filled == filled:
            raise RuntimeError(f"the lobby of sale {sale.id} is not the one that was drawn")
        return reply.filled

    async def _publish(
        self,
        record: DrawRecord,
        entries: Sequence[str],
        drawn: Sequence[bytes],
        order: Sequence[int],
    ) -> None:
        text = await asyncio.to_thread(order_text, entries, drawn, order)
        async with self._database.transaction() as connection:
            if await connection.fetchval(SQL["filled"], UUID(record.sale_id)) is not None:
                await records.add_file(connection, record.sale_id, ORDER_FILE, text)
        _log.info("draw_filled", sale=record.sale_id, entries=len(entries))


def _key(record: DrawRecord) -> bytes:
    return lottery.draw_key(
        bytes.fromhex(record.seed),
        record.sale_id,
        bytes.fromhex(record.root or ""),
        record.beacon_value or "",
    )


def _numbers(record: DrawRecord, entries: Sequence[str]) -> list[bytes]:
    return lottery.numbers(_key(record), entries)
