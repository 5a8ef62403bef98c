"""The rows of orders: written, read and ended in batches.

Law of locks: rows of orders are locked in the order of their ids, units in the order of
(variant, serial), and never an order's row after a unit's. Nothing here calls out while it holds
a lock.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any
from uuid import UUID

from fairdrop.drivers.database import Queries
from fairdrop.outbox import Event, insert_events

from .model import Inserted, InsertOutcome, NewOrder, Opened, Order, OrderLine, Payment
from .rules import Cause, OrderState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    import asyncpg

    from fairdrop.drivers.database import Connection, Database

SQL = Queries("fairdrop.checkout", "orders")
CHECK_AFTER_MS = 5_000
"""How long a payment's webhook may take before the gateway is asked (O8)."""


async def insert_orders(database: Database, orders: Sequence[NewOrder]) -> list[Inserted]:
    """Write the orders with their units in one transaction; each stands or falls alone.

    An order whose unit belongs to another order is left out whole, and told which units those were
    (H8). Running it again with the same orders answers EXISTS for what was written before.
    """
    # A double click: the same order twice in one batch is written once, and the second one finds it.
    first = {order.id: order for order in reversed(orders)}
    ordered = sorted(first.values(), key=lambda order: order.id)
    by_id = {UUID(order.id): order for order in ordered}
    async with database.transaction() as connection:
        rows = await connection.fetch(
            SQL["insert_orders"],
            list(by_id),
            [UUID(order.sale) for order in ordered],
            [order.buyer for order in ordered],
            [order.admission for order in ordered],
            [order.currency for order in ordered],
            [order.subtotal_minor for order in ordered],
            [order.fee_minor for order in ordered],
            [order.email for order in ordered],
            [order.name for order in ordered],
            [order.deadline for order in ordered],
            [",".join(order.verified) for order in ordered],
        )
        written = {row["id"]: row["created_at"] for row in rows}
        wanted = [
            (UUID(variant), serial, key)
            for key in written
            for variant, serials, _ in by_id[key].lines
            for serial in serials
        ]
        lost = await insert_units(connection, wanted, "HELD")
        good = [by_id[key] for key in sorted(written) if key not in lost]
        if lost:
            await connection.execute(SQL["drop_orders"], list(lost))
        if good:
            await _insert_what_belongs(connection, good)
    return [
        _inserted(UUID(order.id), written if first[order.id] is order else {}, lost)
        for order in orders
    ]


def _inserted(
    key: UUID, written: Mapping[UUID, datetime], lost: Mapping[UUID, list[str | int]]
) -> Inserted:
    if key in lost:
        return Inserted(InsertOutcome.UNITS_TAKEN, lost[key])
    if key in written:
        return Inserted(InsertOutcome.WRITTEN, created_at=written[key])
    return Inserted(InsertOutcome.EXISTS)


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


async def _insert_what_belongs(connection: Connection, orders: Sequence[NewOrder]) -> None:
    lines = [
        (UUID(order.id), UUID(variant), ",".join(map(str, serials)), price)
        for order in orders
        for variant, serials, price in order.lines
    ]
    await connection.execute(SQL["insert_lines"], *zip(*lines, strict=True))
    await connection.execute(
        SQL["insert_deadlines"],
        [UUID(order.id) for order in orders],
        [order.deadline for order in orders],
    )
    await note_transitions(
        connection, ((UUID(order.id), None, OrderState.RESERVED, Cause.START) for order in orders)
    )
    await insert_events(
        connection,
        [
            Event(order.id, "order.reserved", {"order": order.id, "sale": order.sale})
            for order in orders
        ],
    )


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
) -> list[Opened | None]:
    """RESERVED -> PAYMENT_PENDING for (order, buyer) whose deadline has not passed, else None."""
    wanted = sorted({(UUID(order_id), buyer) for order_id, buyer in items})
    async with database.transaction() as connection:
        rows = await connection.fetch(SQL["begin_payment"], *zip(*wanted, strict=True))
        if rows:
            begun = [row["id"] for row in rows]
            await connection.execute(
                SQL["insert_payments"],
                begun,
                [row["gateway"] for row in rows],
                [row["total_minor"] for row in rows],
                [row["currency"] for row in rows],
            )
            await connection.execute(
                SQL["payments_begun"], begun, [row["deadline"] for row in rows], CHECK_AFTER_MS
            )
            before, after = OrderState.RESERVED, OrderState.PAYMENT_PENDING
            await note_transitions(
                connection, ((row["id"], before, after, Cause.PAY) for row in rows)
            )
    opened = {
        (str(row["id"]), row["buyer"]): Opened(
            order=str(row["id"]),
            sale=str(row["sale_id"]),
            epoch=row["epoch"],
            gateway=row["gateway"],
            capture=row["capture"],
            amount_minor=row["total_minor"],
            currency=row["currency"],
            deadline=row["deadline"],
        )
        for row in rows
    }
    # Of two calls with the same order in one batch, the second finds the payment begun.
    return [opened.pop(item, None) for item in items]


async def payments_opened(database: Database, opened: Sequence[tuple[str, str, str]]) -> list[None]:
    """Record the intents that the gateway has made: (order, intent, page)."""
    async with database.connection() as connection:
        orders, intents, urls = zip(*sorted(opened), strict=True)
        await connection.execute(
            SQL["payments_opened"], [UUID(order) for order in orders], intents, urls
        )
    return [None] * len(opened)


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
