"""Settlement: what gateways told becomes orders, units, books and events, in one transaction (O3).

A batch of stored webhooks shares one commit. The decision on each is pure (``rules``); this module
carries the decisions of a batch out in a fixed number of statements, however many orders there
are, and tells the store after the commit. If telling the store fails, its sweep finds the
confirmed order and tells it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import structlog

from fairdrop import ledger
from fairdrop.drivers.database import Queries
from fairdrop.errors import StoreUnavailable
from fairdrop.ids import SaleRef, is_uuid, uuid7
from fairdrop.inventory import ReserveOutcome
from fairdrop.outbox import Event, insert_events

from . import records
from .rules import (
    CAUSES,
    Cause,
    Facts,
    OrderState,
    Verdict,
    judge_decline,
    judge_success,
    transition,
)

if TYPE_CHECKING:
    import asyncpg

    from fairdrop.drivers.database import Connection, Database
    from fairdrop.inventory import Inventory, Lines
    from fairdrop.waiting_room import WaitingRoom

_log = structlog.get_logger(__name__)
SQL = Queries("fairdrop.checkout", "settlement")
BATCH = 500
"""Events that share a commit: beyond this the time of a commit is no longer what bounds us."""


class LateUnits(NamedTuple):
    """New units that the store has set aside for an order whose money came late (O7)."""

    sale: SaleRef
    lines: Lines


class Ended(NamedTuple):
    """An order about which the store has to be told."""

    order: str
    sale: SaleRef
    buyer: str
    admission: str | None


class _Order:
    """One locked row, and what the batch has decided about it so far."""

    __slots__ = ("changed", "declines", "facts", "received", "refunded", "row", "state")

    def __init__(self, row: asyncpg.Record) -> None:
        self.row = row
        self.state = OrderState(row["state"])
        self.declines: int = row["declines"]
        self.received: int = row["received_minor"]
        self.refunded: int = row["refunded_minor"]
        self.changed = False

    def judged_by(self) -> Facts:
        row = self.row
        return Facts(
            self.state,
            row["currency"],
            row["total_minor"],
            self.declines,
            row["payment_attempts"],
            self.received,
        )

    def ended(self) -> Ended:
        row = self.row
        return Ended(
            str(row["id"]), SaleRef(str(row["sale_id"]), row["epoch"]), row["buyer"], row["admission"]
        )


class _Batch:
    """The effects of one batch, gathered before they are written."""

    def __init__(self, late: dict[UUID, LateUnits]) -> None:
        self.late = late
        self.settled: list[tuple[int, str]] = []
        self.put_off: list[int] = []
        self.transitions: list[tuple[UUID, str, str, str]] = []
        self.events: list[Event] = []
        self.entries: list[ledger.Entry] = []
        self.sold: list[UUID] = []
        self.sold_late: list[UUID] = []
        self.freed: list[UUID] = []
        self.received: list[tuple[UUID, int, str]] = []
        self.declined: list[tuple[UUID, str, bool]] = []
        self.closed: list[UUID] = []
        self.refunds: list[tuple[UUID, UUID, str, str, int, str, str]] = []
        self.refunds_done: list[UUID] = []
        self.tell_sold: list[Ended] = []
        self.tell_free: list[Ended] = []

    def step(self, order: _Order, cause: Cause) -> bool:
        """Move the order on by the table; False (and nothing done) when the table refuses."""
        to = transition(order.state, cause)
        if to is None:
            return False
        key = order.row["id"]
        self.transitions.append((key, order.state, to, cause))
        self.events.append(
            Event(
                str(key),
                f"order.{to.value.lower()}",
                {
                    "order": str(key),
                    "sale": str(order.row["sale_id"]),
                    "total_minor": order.row["total_minor"],
                    "currency": order.row["currency"],
                },
            )
        )
        order.state = to
        order.changed = True
        return True


def _decide(batch: _Batch, event: asyncpg.Record, order: _Order) -> Verdict:
    """One payment event against one locked order; the effects go into the batch."""
    kind = event["kind"]
    facts = order.judged_by()
    if kind == "SUCCEEDED":
        verdict = judge_success(
            facts,
            event["amount_minor"],
            event["currency"],
            late_units=order.row["id"] in batch.late,
        )
    elif kind == "FAILED":
        verdict = judge_decline(facts)
    elif kind == "CANCELED" and facts.state is OrderState.PAYMENT_PENDING:
        verdict = Verdict.CLOSE
    else:
        verdict = Verdict.NOTHING
    before = order.state
    cause = CAUSES.get(verdict)
    if cause is not None and not batch.step(order, cause):
        return Verdict.NOTHING
    _EFFECTS[verdict](batch, event, order, before)
    return verdict


def _confirm(batch: _Batch, event: asyncpg.Record, order: _Order, _before: OrderState) -> None:
    row = order.row
    key = row["id"]
    order.received = event["amount_minor"]
    batch.received.append((key, event["amount_minor"], event["intent_id"]))
    batch.entries += ledger.payment(
        key, row["sale_id"], row["currency"], row["subtotal_minor"], row["fee_minor"]
    )
    (batch.sold_late if key in batch.late else batch.sold).append(key)
    batch.tell_sold.append(order.ended())


def _return_money(
    batch: _Batch, event: asyncpg.Record, order: _Order, before: OrderState
) -> None:
    row = order.row
    refund_id, amount, currency = uuid7(), event["amount_minor"], event["currency"]
    order.received = amount
    batch.received.append((row["id"], amount, event["intent_id"]))
    reason = "wrong_amount" if (amount, currency) != (row["total_minor"], row["currency"]) else "late"
    batch.refunds.append(
        (refund_id, row["id"], event["gateway"], event["intent_id"], amount, currency, reason)
    )
    batch.entries += ledger.unearned(refund_id, row["id"], row["sale_id"], currency, amount)
    if before in (OrderState.RESERVED, OrderState.PAYMENT_PENDING):
        batch.freed.append(row["id"])
    batch.tell_free.append(order.ended())


def _count_decline(
    batch: _Batch, event: asyncpg.Record, order: _Order, _before: OrderState
) -> None:
    order.declines += 1
    order.changed = True
    batch.declined.append((order.row["id"], event["detail"] or "declined", False))


def _fail(batch: _Batch, event: asyncpg.Record, order: _Order, _before: OrderState) -> None:
    order.declines += 1
    batch.declined.append((order.row["id"], event["detail"] or "declined", True))
    batch.freed.append(order.row["id"])
    batch.tell_free.append(order.ended())


def _close(batch: _Batch, _event: asyncpg.Record, order: _Order, _before: OrderState) -> None:
    batch.closed.append(order.row["id"])
    batch.freed.append(order.row["id"])
    batch.tell_free.append(order.ended())


def _nothing(batch: _Batch, event: asyncpg.Record, order: _Order, _before: OrderState) -> None:
    if event["kind"] == "CANCELED":
        batch.closed.append(order.row["id"])


_EFFECTS = {
    Verdict.CONFIRM: _confirm,
    Verdict.CONFIRM_LATE: _confirm,
    Verdict.RETURN_MONEY: _return_money,
    Verdict.RETURN_WRONG: _return_money,
    Verdict.COUNT_DECLINE: _count_decline,
    Verdict.FAIL: _fail,
    Verdict.CLOSE: _close,
    Verdict.NOTHING: _nothing,
}


class Settlement:
    """Settles stored events; any number of processes may do so side by side."""

    def __init__(
        self, database: Database, inventory: Inventory, waiting_room: WaitingRoom
    ) -> None:
        """Take the database, and the store's two services that are told afterwards."""
        self._database = database
        self._inventory = inventory
        self._waiting_room = waiting_room

    async def settle(self, limit: int = BATCH) -> int:
        """Settle one batch of due events; returns how many there were. One commit.

        Raises DatabaseUnavailable: then nothing of the batch happened, or all of it did, and the
        next run finds out from the marks in the inbox.
        """
        late = await self._take_late_units(limit)
        # If the commit's end is unknown, late units stay set aside: the sweep asks the orders' rows.
        batch, events = await self._commit(limit, late)
        unused = [key for key in late if key not in batch.sold_late]
        await self._tell_store(batch, {key: late[key] for key in unused})
        return events

    async def _take_late_units(self, limit: int) -> dict[UUID, LateUnits]:
        """Set new units aside, in the store, for late payments of orders that gave theirs up."""
        async with self._database.connection() as connection:
            rows = await connection.fetch(SQL["late_payments"], limit)
        late: dict[UUID, LateUnits] = {}
        for row in rows:
            sale = SaleRef(str(row["sale_id"]), row["epoch"])
            wanted = dict(zip(row["variants"], row["quantities"], strict=True))
            try:
                taken = await self._inventory.take_late(
                    sale, row["buyer"], str(row["id"]), wanted
                )
            except StoreUnavailable:
                continue  # no units from a store that does not answer: the money goes back
            if taken.outcome in (ReserveOutcome.RESERVED, ReserveOutcome.REPLAYED):
                late[row["id"]] = LateUnits(sale, taken.lines)
        return late

    async def _commit(self, limit: int, late: dict[UUID, LateUnits]) -> tuple[_Batch, int]:
        batch = _Batch(late)
        async with self._database.transaction() as connection:
            events = await connection.fetch(SQL["take_due"], limit)
            if not events:
                return batch, 0
            rows = await connection.fetch(
                SQL["lock_orders"], list({e["order_id"] for e in events if e["order_id"]})
            )
            orders = {row["id"]: _Order(row) for row in rows}
            await self._secure_late_units(connection, batch, orders)
            for event in events:
                order = orders.get(event["order_id"])
                if order is None:
                    batch.put_off.append(event["id"])
                elif event["kind"] != "REFUND_SUCCEEDED":
                    batch.settled.append((event["id"], _decide(batch, event, order)))
            await _decide_refunds(connection, batch, events, orders)
            await _write(connection, batch, orders)
        return batch, len(events)

    async def _secure_late_units(
        self, connection: Connection, batch: _Batch, orders: dict[UUID, _Order]
    ) -> None:
        """Write the unit rows of late units; an order that does not get all of them gets none."""
        wanted = [
            (key, variant, serial)
            for key, late in batch.late.items()
            if key in orders
            for variant, serials in late.lines
            for serial in serials
        ]
        batch.late = {key: late for key, late in batch.late.items() if key in orders}
        if not wanted:
            return
        keys, variants, serials = zip(*wanted, strict=True)
        rows = await connection.fetch(
            records.SQL["insert_units"], variants, serials, keys, "SOLD"
        )
        got = {(row["order_id"], str(row["variant_id"]), row["serial"]) for row in rows}
        short = {entry[0] for entry in wanted if entry not in got}
        useless = short | {
            key for key in batch.late if orders[key].received or not _second_chance(orders[key])
        }
        if useless:
            await connection.execute(
                records.SQL["delete_units_of_dropped"], variants, serials, list(useless)
            )
            batch.late = {key: late for key, late in batch.late.items() if key not in useless}

    async def _tell_store(self, batch: _Batch, unused: dict[UUID, LateUnits]) -> None:
        """After the commit: sold is sold, free is free, the place inside is free (W13)."""
        try:
            futures = []
            for ended in batch.tell_sold:
                if ended.admission:
                    futures.append(
                        self._waiting_room.complete(ended.sale, ended.buyer, ended.admission)
                    )
                futures.append(self._inventory.commit(ended.sale, ended.order))
            futures += [self._inventory.free(ended.sale, ended.order) for ended in batch.tell_free]
            futures += [self._inventory.free(late.sale, str(key)) for key, late in unused.items()]
            for future in futures:
                await future
        except StoreUnavailable as error:
            _log.warning("store_not_told", step="settle", error=str(error))


def _second_chance(order: _Order) -> bool:
    return transition(order.state, Cause.PAID_LATE) is not None


async def _decide_refunds(
    connection: Connection,
    batch: _Batch,
    events: list[asyncpg.Record],
    orders: dict[UUID, _Order],
) -> None:
    """Refunds that a gateway has confirmed: once each, by the refund's own row."""
    told = [
        event
        for event in events
        if event["kind"] == "REFUND_SUCCEEDED" and event["order_id"] in orders
    ]
    if not told:
        return
    ids = {event["refund_id"] for event in told if is_uuid(event["refund_id"] or "")}
    rows = await connection.fetch(SQL["lock_refunds"], [UUID(refund_id) for refund_id in ids])
    known = {str(row["id"]): row for row in rows}
    for event in told:
        refund = known.get(event["refund_id"])
        if refund is None:
            batch.settled.append((event["id"], "unknown_refund"))
            continue
        if refund["state"] != "PENDING" or refund["id"] in batch.refunds_done:
            batch.settled.append((event["id"], Verdict.NOTHING))
            continue
        order = orders[event["order_id"]]
        order.refunded += refund["amount_minor"]
        order.changed = True
        batch.refunds_done.append(refund["id"])
        batch.entries += ledger.refund_paid(
            refund["id"],
            order.row["id"],
            order.row["sale_id"],
            refund["currency"],
            refund["amount_minor"],
        )
        whole = order.refunded >= order.received
        batch.step(order, Cause.REFUNDED_FULLY if whole else Cause.REFUNDED_PARTLY)
        batch.settled.append((event["id"], "refunded"))


async def _write(connection: Connection, batch: _Batch, orders: dict[UUID, _Order]) -> None:
    """All effects of the batch, a statement each, in the order that the law of locks asks for."""
    changed = [
        (key, order.state, order.declines, order.refunded)
        for key, order in sorted(orders.items())
        if order.changed
    ]
    if changed:
        await connection.execute(SQL["update_orders"], *zip(*changed, strict=True))
    if batch.received:
        await connection.execute(SQL["payments_received"], *zip(*batch.received, strict=True))
    if batch.declined:
        await connection.execute(SQL["payments_declined"], *zip(*batch.declined, strict=True))
    if batch.closed:
        await connection.execute(SQL["payments_closed"], batch.closed)
    if batch.refunds:
        await connection.execute(SQL["insert_refunds"], *zip(*batch.refunds, strict=True))
    if batch.refunds_done:
        await connection.execute(SQL["refunds_succeeded"], batch.refunds_done)
    if batch.sold:
        await connection.execute(SQL["sell_units"], batch.sold)
    if batch.sold_late:
        lines = [
            (key, variant, ",".join(map(str, serials)))
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
        await connection.execute(SQL["put_off_inbox"], batch.put_off)
