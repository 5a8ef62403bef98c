"""Settlement: what gateways told becomes orders, units, books and events, in one transaction (O3).

A batch of stored webhooks shares one commit. The decision on each is pure (``rules``, ``effects``);
this module carries the decisions of a batch out in a fixed number of statements, however many
orders there are, and tells the store after the commit. If telling the store fails, its sweep finds
the confirmed order and tells it again.

Money for an order that has given up its units takes a second step (O7): the first transaction
leaves the event for a while, new units are set aside in the store, under a name of their own, and a
second transaction decides. Whatever dies in between, the event is due again, and the sweep gives
units back that nobody used.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Any
from uuid import UUID

import structlog

from fairdrop import faults, ledger
from fairdrop.drivers.database import Queries
from fairdrop.errors import FairdropError, Overloaded, StoreUnavailable
from fairdrop.ids import SaleRef, is_uuid
from fairdrop.outbox import insert_events

from . import records
from .effects import Batch, LateEvent, LateUnits, LockedOrder
from .model import late_hold
from .rules import Verdict
from .telling import tell_store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator, Mapping, Sequence

    import asyncpg

    from fairdrop.drivers.database import Connection, Database
    from fairdrop.inventory import Inventory
    from fairdrop.waiting_room import WaitingRoom

_log = structlog.get_logger(__name__)
SQL = Queries("fairdrop.checkout", "settlement")
BATCH = 500
"""Events that share a commit: beyond this the time of a commit is no longer what bounds us."""
IN_FLIGHT = 3
"""Batches at once in one process: some decide or tell the store while PostgreSQL has the others.
Measured on two cores: 10,300 orders a second with one, 12,500 with two, 16,000 with three."""
LATE_LEASE_MS = 5_000
"""How long an order that needs new units is left to the settler that looks for them."""
CAPTURE_WITHIN_MS = 6 * 86_400_000
"""How long money that is set aside may wait to be taken: banks let it go after seven days."""
LATE_ATTEMPTS = 12
"""Looks for new units while the store does not answer (about a minute); then the money goes back."""


class Settlement:
    """Settles stored events; any number of processes may do so side by side."""

    def __init__(
        self,
        database: Database,
        inventory: Inventory,
        waiting_room: WaitingRoom,
        *,
        mails: bool = False,
    ) -> None:
        """Take the database, and the store's two services that are told afterwards.

        With ``mails`` a confirmation is due, by the same commit, for each order with an address.
        """
        self._database = database
        self._mails = mails
        self._inventory = inventory
        self._waiting_room = waiting_room

    async def drain(self, limit: int = BATCH) -> int:
        """Settle until less than a batch is due; returns how many events there were.

        ``IN_FLIGHT`` batches are under way at a time. Raises what :meth:`settle` raises.
        """

        async def one_after_the_other() -> int:
            total = settled = await self.settle(limit)
            while settled == limit:
                settled = await self.settle(limit)
                total += settled
            return total

        first = await self.settle(limit)
        if first < limit:
            return first
        return first + sum(await asyncio.gather(*(one_after_the_other() for _ in range(IN_FLIGHT))))

    async def settle(self, limit: int = BATCH) -> int:
        """Settle one batch of due events; returns how many there were. One commit.

        An event that cannot be settled fails alone: it is kept, and tried again later. Raises
        DatabaseUnavailable: then nothing of the batch happened, or all of it did, and the next run
        finds out from the marks in the inbox.
        """
        try:
            batch, events = await self._commit("take_due", limit)
        except FairdropError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it was, it is one event's fault
            _log.warning("batch_failed", step="settle", error=repr(error))
            return await self._settle_singly(limit)
        await self._tell_store(batch)
        await self._settle_late(batch.look_for_units)
        return events

    async def _settle_singly(self, limit: int) -> int:
        async with self._database.connection() as connection:
            due = [row["id"] for row in await connection.fetch(SQL["due_now"], limit)]
        for event in due:
            try:
                batch, _ = await self._commit("take_these", [event])
            except FairdropError:
                raise
            except Exception as error:  # noqa: BLE001 - whatever it was, the others go on
                _log.exception("event_not_settled", inbox_id=event)
                await self._note_failure(event, error)
            else:
                await self._tell_store(batch)
                await self._settle_late(batch.look_for_units)
        return len(due)

    async def _note_failure(self, event: int, error: Exception) -> None:
        async with self._database.connection() as connection:
            await connection.execute(
                SQL["put_off_inbox"], [event], f"failed: {type(error).__name__}"
            )

    # ------------------------------------------------------------ late payments

    async def _settle_late(self, waiting: Sequence[LateEvent]) -> None:
        """Look for new units, then decide about the events that wait for them."""
        if not waiting:
            return
        oldest: dict[UUID, LateEvent] = {}
        for event in waiting:
            oldest.setdefault(event.order, event)
        late = await self._take_late_units(oldest)
        faults.passing(faults.Point.LATE_UNITS_TAKEN)
        events = [event.event for event in waiting if event.order in late]
        if not events:
            return
        try:
            batch, _ = await self._commit("take_these", events, late)
        except FairdropError:
            raise  # units stay set aside: the next run finds them, or the sweep gives them back
        except Exception as error:  # noqa: BLE001 - whatever it was, it is one event's fault
            if len(events) == 1:
                _log.warning("event_not_settled", inbox_id=events[0], error=repr(error))
                return  # due again when its lease is over
            for event in waiting:
                await self._settle_late([event])
            return
        await self._tell_store(batch)

    async def _take_late_units(self, waiting: Mapping[UUID, LateEvent]) -> dict[UUID, LateUnits]:
        """Set new units aside, for the oldest payment first.

        An order is left out while nobody knows whether there are any for it.
        """
        async with self._database.connection() as connection:
            used = await connection.fetch(SQL["admissions_used"], list(waiting))
            again = {row["id"] for row in used}
            rows = await connection.fetch(SQL["late_orders"], list(waiting), list(again))
        wanted = {
            row["id"]: dict(zip(row["variants"], row["quantities"], strict=True)) for row in rows
        }
        late = {key: LateUnits(waiting[key].sale, []) for key in again}

        async def take(event: LateEvent) -> None:
            try:
                taken = await self._inventory.take_late(
                    event.sale, event.buyer, late_hold(str(event.order)), wanted[event.order]
                )
            except (StoreUnavailable, Overloaded) as error:
                _log.warning("store_not_asked", step="late", error=str(error))
                if event.attempts >= LATE_ATTEMPTS:
                    late[event.order] = LateUnits(event.sale, [])
            else:
                late[event.order] = LateUnits(event.sale, taken.lines)

        await asyncio.gather(*(take(event) for event in waiting.values() if event.order in wanted))
        return late

    async def _secure_late_units(
        self, connection: Connection, batch: Batch, events: Sequence[asyncpg.Record]
    ) -> None:
        """Write the unit rows of orders that will be confirmed late.

        An order that does not get all of its units gets none, and waits for another look: the store
        had forgotten whose they are, and now learns it (H8).
        """
        buying = {
            event["order_id"]
            for event in events
            if event["order_id"] in batch.late
            and batch.judge(event, batch.orders[event["order_id"]]) is Verdict.CONFIRM_LATE
        }
        wanted = [
            (UUID(variant), serial, key)
            for key in buying
            for variant, serials in batch.late[key].lines
            for serial in serials
        ]
        missing = await records.insert_units(connection, wanted, "SOLD")
        batch.late = {key: units for key, units in batch.late.items() if key not in missing}
        batch.units_lost = missing

    # ------------------------------------------------------------ one transaction

    async def _commit(
        self, statement: str, which: Any, late: Mapping[UUID, LateUnits] | None = None
    ) -> tuple[Batch, int]:
        async with self._database.transaction() as connection:
            events = await connection.fetch(SQL[statement], which)
            if not events:
                return Batch({}, {}), 0
            keys = list({event["order_id"] for event in events if event["order_id"]})
            rows = await connection.fetch(SQL["lock_orders"], keys)
            orders = {row["id"]: LockedOrder(row) for row in rows}
            batch = Batch(orders, late or {})
            if late:
                used = await connection.fetch(SQL["admissions_used"], list(orders))
                batch.admissions_used = frozenset(row["id"] for row in used)
                await self._secure_late_units(connection, batch, events)
            await _decide(connection, batch, events)
            await _write(connection, batch)
            sold = batch.sold + batch.sold_late if self._mails else []
            if mails := [key for key in sold if orders[key].row["has_address"]]:
                await connection.execute(SQL["insert_mails"], mails)
            faults.passing(faults.Point.SETTLING)
        return batch, len(events)

    async def _tell_store(self, batch: Batch) -> None:
        """After the commit: sold is sold, free is free, the place inside is free (W13)."""
        if batch.settled:
            faults.passing(faults.Point.SETTLED)
        await tell_store("settle", self._to_tell(batch))
        if batch.settled:
            faults.passing(faults.Point.STORE_TOLD)

    def _to_tell(self, batch: Batch) -> Iterator[Awaitable[object]]:
        stock, line = self._inventory, self._waiting_room
        sold: defaultdict[SaleRef, list[str]] = defaultdict(list)
        completed: defaultdict[SaleRef, list[tuple[str, str]]] = defaultdict(list)
        for key in batch.sold:
            order = batch.orders[key]
            sold[order.sale].append(str(key))
        for key in batch.sold_late:
            sold[batch.late[key].sale].append(late_hold(str(key)))
        for key in batch.sold + batch.sold_late:
            order = batch.orders[key]
            if order.row["admission"]:
                completed[order.sale].append((order.row["buyer"], order.row["admission"]))
        for sale, holds in sold.items():
            yield stock.commit_many(sale, holds)
        for sale, admissions in completed.items():
            yield line.complete_many(sale, admissions)
        for key in batch.sold_late:
            yield stock.free(batch.orders[key].sale, str(key))
        for key in batch.ended:
            yield stock.free(batch.orders[key].sale, str(key))
            if key in batch.late:
                yield stock.free(batch.late[key].sale, late_hold(str(key)))
        for key, lost in batch.units_lost.items():
            yield stock.free(batch.orders[key].sale, late_hold(str(key)), lost)


async def _decide(connection: Connection, batch: Batch, events: Sequence[asyncpg.Record]) -> None:
    refunds = []
    for event in events:
        order = batch.orders.get(event["order_id"])
        if order is None:
            batch.put_off.append(event["id"])
        elif event["kind"] == "REFUND_SUCCEEDED":
            refunds.append(event)
        else:
            batch.decide(event, order)
    if refunds:
        ids = {event["refund_id"] for event in refunds if is_uuid(event["refund_id"] or "")}
        rows = await connection.fetch(SQL["lock_refunds"], [UUID(refund) for refund in ids])
        known = {str(row["id"]): row for row in rows}
        for event in refunds:
            batch.decide_refund(event, known.get(event["refund_id"]))


async def _write(connection: Connection, batch: Batch) -> None:  # noqa: C901, PLR0912 - a list
    """All effects of the batch, a statement each, in the order that the law of locks asks for."""
    changed = [
        (key, order.state, order.declines, order.refunded)
        for key, order in sorted(batch.orders.items())
        if order.changed
    ]
    if changed:
        await connection.execute(SQL["update_orders"], *zip(*changed, strict=True))
    if batch.received:
        await connection.execute(SQL["payments_received"], *zip(*batch.received, strict=True))
    if batch.unasked:
        await connection.execute(SQL["insert_received"], *zip(*batch.unasked, strict=True))
    if batch.authorised:
        await connection.execute(
            SQL["payments_authorised"], *zip(*batch.authorised, strict=True), CAPTURE_WITHIN_MS
        )
    if batch.declined:
        await connection.execute(
            SQL["payments_declined"], list(batch.declined), list(batch.declined.values())
        )
    if batch.closed:
        await connection.execute(SQL["payments_closed"], batch.closed)
    over = [row[0] for row in batch.received] + batch.closed
    if over:
        await connection.execute(SQL["delete_timers"], over)
    if batch.failed:
        await connection.execute(records.SQL["end_deadlines"], batch.failed)
    if batch.voided:
        await connection.execute(SQL["payments_to_void"], *zip(*batch.voided, strict=True))
    if batch.refunds:
        await connection.execute(SQL["insert_refunds"], *zip(*batch.refunds, strict=True))
    if batch.refunds_done:
        await connection.execute(SQL["refunds_succeeded"], batch.refunds_done)
    if batch.sold:
        await connection.execute(SQL["sell_units"], batch.sold)
    if batch.sold_late:
        lines = [
            (key, UUID(variant), ",".join(map(str, serials)))
            for key in batch.sold_late
            for variant, serials in batch.late[key].lines
        ]
        await connection.execute(SQL["replace_serials"], *zip(*lines, strict=True))
    if batch.freed:
        await connection.execute(records.SQL["delete_units"], batch.freed)
    await ledger.insert_entries(connection, batch.entries)
    await records.note_transitions(connection, batch.transitions)
    await insert_events(connection, batch.events)
    if batch.settled:
        await connection.execute(SQL["settle_inbox"], *zip(*batch.settled, strict=True))
    if batch.put_off:
        await connection.execute(SQL["put_off_inbox"], batch.put_off, "unknown_order")
    looking = batch.look_for_units
    if looking or batch.wait_for_units:
        events = [late.event for late in looking] + batch.wait_for_units
        await connection.execute(SQL["put_off_late"], events, LATE_LEASE_MS)
        await connection.execute(
            SQL["lease_orders"], [late.order for late in looking], LATE_LEASE_MS
        )
