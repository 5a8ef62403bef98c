"""The rows of orders: written, read and ended in batches.

Law of locks: rows of orders are locked in the order of their ids, units in the order of
(variant, serial), and never an order's row after a unit's. Nothing here calls out while it holds
a lock.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any
from uuid import UUID

import asyncpg

from fairdrop.drivers.database import Queries
from fairdrop.ids import new_id
from fairdrop.outbox import Event, insert_events

from .model import Inserted, InsertOutcome, NewOrder, Order, OrderLine, Payment
from .rules import Cause, OrderState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from fairdrop.drivers.database import Connection, Database

SQL = Queries("fairdrop.checkout", "orders")
CHECK_AFTER_MS = 5_000
"""How long a payment's webhook may take before the gateway is asked (O8)."""


async def insert_orders(database: Database, orders: Sequence[NewOrder]) -> list[Inserted]:
    """Write the orders with their units in one transaction; each stands or falls alone.

    An order whose unit belongs to another order is left out whole, and told which units those were
    (H8). Running it again with the same orders answers EXISTS for what was written before. Cost: one
    statement, unless units were lost.
    """
    # A double click: the same order twice in one batch is written once, and the second one finds it.
    first = {order.id: order for order in reversed(orders)}
    ordered = sorted(first.values(), key=lambda order: order.id)
    lost: dict[str, list[str | int]] = {}
    async with database.connection() as connection:
        try:
            rows = await connection.fetch(SQL["write_orders"], *_order_columns(ordered))
        except asyncpg.UniqueViolationError:
            lost = await _units_of_others(connection, ordered)
            rest = [order for order in ordered if order.id not in lost]
            # What is taken just now lets the batch fail: each order is then tried alone.
            rows = (
                await connection.fetch(SQL["write_orders"], *_order_columns(rest)) if rest else []
            )
    written = {str(row["id"]): row["created_at"] for row in rows}
    return [_inserted(order, written if first[order.id] is order else {}, lost) for order in orders]


def _inserted(
    order: NewOrder, written: Mapping[str, datetime], lost: Mapping[str, list[str | int]]
) -> Inserted:
    if order.id in lost:
        return Inserted(InsertOutcome.UNITS_TAKEN, lost[order.id])
    if order.id in written:
        return Inserted(InsertOutcome.WRITTEN, created_at=written[order.id])
    return Inserted(InsertOutcome.EXISTS)


async def _units_of_others(
    connection: Connection, orders: Sequence[NewOrder]
) -> dict[str, list[str | int]]:
    """For new orders that want units of others, also of one another: these, as variants and serials."""
    known = {
        str(row["id"])
        for row in await connection.fetch(SQL["known_orders"], [order.id for order in orders])
    }
    wanted = [
        (variant, serial, order.id)
        for order in orders
        if order.id not in known
        for variant, serials, _ in order.lines
        for serial in serials
    ]
    variants = [variant for variant, _, _ in wanted]
    serials = [serial for _, serial, _ in wanted]
    owners = {
        (str(row["variant_id"]), row["serial"]): str(row["order_id"])
        for row in await connection.fetch(SQL["owners_of_units"], variants, serials)
    }
    lost: dict[str, list[str | int]] = defaultdict(list)
    for variant, serial, order in wanted:
        if owners.setdefault((variant, serial), order) != order:
            lost[order] += [variant, serial]
    return dict(lost)


def _order_columns(orders: Sequence[NewOrder]) -> Iterator[Sequence[object]]:
    """What ``write_orders`` takes: the orders' columns, then their lines'."""
    yield from zip(
        *(
            (
                order.id,
                order.sale,
                order.buyer,
                order.admission,
                order.currency,
                order.subtotal_minor,
                order.fee_minor,
                order.email,
                order.name,
                order.deadline,
                ",".join(order.verified),
                new_id(),
            )
            for order in orders
        ),
        strict=True,
    )
    yield from zip(
        *(
            (order.id, variant, ",".join(map(str, serials)), price_minor)
            for order in orders
            for variant, serials, price_minor in order.lines
        ),
        strict=True,
    )


async def insert_units(
    connection: Connection, wanted: Sequence[tuple[UUID, int, UUID]], state: str
) -> dict[UUID, list[str | int]]:
    """Write units as (variant, serial, order); each order gets all of its units or none.

    Returns, for orders that got none, the units that belong to somebody else, as variants and
    serials in turn.
    """
    if not wanted:
        return {}
    variants, serials, keys = zip(*wanted, strict=True)
    rows = await connection.fetch(SQL["insert_units"], variants, serials, keys, state)
    if len(rows) == len(wanted):
        return {}
    got = {(row["variant_id"], row["serial"], row["order_id"]) for row in rows}
    lost: dict[UUID, list[str | int]] = defaultdict(list)
    for variant, serial, key in wanted:
        if (variant, serial, key) not in got:
            lost[key] += [str(variant), serial]
    await connection.execute(SQL["delete_units"], list(lost))
    return dict(lost)


async def note_transitions(
    connection: Connection,
    steps: Iterable[tuple[UUID, str | None, str, str]],
) -> None:
    """Audit rows: (order, from, to, cause) (O2)."""
    await connection.copy_records_to_table(
        "order_transitions",
        records=list(steps),
        columns=("order_id", "from_state", "to_state", "cause"),
    )


async def begin_payments(
    database: Database, items: Sequence[tuple[str, str]]
) -> list[Order | None]:
    """RESERVED -> PAYMENT_PENDING for (order, buyer) whose deadline has not passed, else None.

    The orders are those of after the step, with a payment that has no page yet. One statement.
    """
    orders, buyers = zip(*sorted(set(items)), strict=True)
    async with database.connection() as connection:
        rows = await connection.fetch(SQL["begin_payments"], orders, buyers, CHECK_AFTER_MS)
    begun = {(str(row["id"]), row["buyer"]): _order(row, _lines(row)) for row in rows}
    # Of two calls with the same order in one batch, the second finds the payment begun.
    return [begun.pop(item, None) for item in items]


def _lines(row: asyncpg.Record) -> list[OrderLine]:
    """The lines of an order whose row has them as arrays, in the order of the sale's variants."""
    columns = (row[name] for name in ("variants", "products", "variant_names", "serials", "prices"))
    lines = []
    for variant, product, name, text, price_minor in zip(*columns, strict=True):
        serials = [int(serial) for serial in text.split(",")]
        lines.append(OrderLine(str(variant), product, name, len(serials), serials, price_minor))
    return lines


async def payments_opened(database: Database, opened: Sequence[tuple[str, str, str]]) -> list[bool]:
    """Record the intents that the gateway has made: (order, intent, page). One statement.

    Returns for each whether this is where the order is paid from here on: False when it had a payment
    before, or is over in the meantime.
    """
    async with database.connection() as connection:
        rows = await connection.fetch(
            SQL["payments_opened"], *zip(*sorted(set(opened)), strict=True)
        )
    payable = {str(row["order_id"]): row["payable"] for row in rows}
    return [payable.get(order, False) for order, _, _ in opened]


async def cancel(database: Database, order_id: str, buyer: str) -> OrderState | None:
    """LIVE -> CANCELLED, with its units given back. Returns the state before, None if refused."""
    key = UUID(order_id)
    async with database.transaction() as connection:
        before = await connection.fetchrow(SQL["lock_order"], key, buyer)
        if before is None:
            return None
        row = await connection.fetchrow(SQL["cancel_order"], key, buyer)
        if row is None:
            return None
        await end_orders(
            connection,
            [(key, before["state"], OrderState.CANCELLED, Cause.CANCEL, str(row["sale_id"]))],
        )
    return OrderState(before["state"])


async def end_orders(
    connection: Connection, ended: Sequence[tuple[UUID, str, OrderState, Cause, str]]
) -> None:
    """What goes with orders that end unpaid: units, audit, event, a last look at the payment.

    Each is (order, from, to, cause, sale); the caller has changed and locked the rows.
    """
    keys = [step[0] for step in ended]
    await connection.execute(SQL["delete_units"], keys)
    await note_transitions(connection, (step[:4] for step in ended))
    await insert_events(
        connection,
        [
            Event(str(key), f"order.{to.value.lower()}", {"order": str(key), "sale": sale})
            for key, _, to, _, sale in ended
        ],
    )
    await connection.execute(SQL["end_deadlines"], keys)


async def orders(database: Database, order_ids: Sequence[str]) -> list[Order | None]:
    """The orders, each with its lines and payment; None for ids that are not there."""
    async with database.connection() as connection:
        keys = [UUID(order_id) for order_id in order_ids]
        rows = await connection.fetch(SQL["order"], keys)
        found = {order.id: order for order in await with_lines(connection, rows)}
    return [found.get(order_id) for order_id in order_ids]


async def with_lines(connection: Connection, rows: Sequence[asyncpg.Record]) -> list[Order]:
    """Orders from rows that carry an order's and its payment's columns."""
    lines: dict[UUID, list[OrderLine]] = defaultdict(list)
    for row in await connection.fetch(SQL["lines_of"], [row["id"] for row in rows]):
        lines[row["order_id"]].append(
            OrderLine(
                variant=str(row["variant_id"]),
                product=row["product"],
                name=row["name"],
                quantity=len(row["serials"]),
                serials=row["serials"],
                price_minor=row["price_minor"],
            )
        )
    return [_order(row, lines[row["id"]]) for row in rows]


def _order(row: Any, lines: list[OrderLine]) -> Order:
    payment = None
    if row["payment_state"] is not None:
        payment = Payment(
            url=row["pay_url"],
            state=row["payment_state"],
            declines=row["declines"],
            attempts_left=max(0, row["payment_attempts"] - row["declines"]),
            last_decline=row["last_decline"],
        )
    return Order(
        id=str(row["id"]),
        sale=str(row["sale_id"]),
        buyer=row["buyer"],
        state=OrderState(row["state"]),
        currency=row["currency"],
        subtotal_minor=row["subtotal_minor"],
        fee_minor=row["fee_minor"],
        total_minor=row["total_minor"],
        refunded_minor=row["refunded_minor"],
        deadline=row["deadline"],
        created_at=row["created_at"],
        lines=lines,
        payment=payment,
        email=row["email"],
        name=row["name"],
        gateway=row["gateway"],
        capture=row["capture"],
        epoch=row["epoch"],
    )
