"""What settlement is compared with: one transaction an order, as most shops do it.

Written lean, to be fair to them: plain statements with plain parameters, prepared once, no batch of
one pretending to be a batch, and several connections side by side. The effects are those of the
product: order, payment, unit, three ledger rows, audit row, outbox event, mark in the inbox, and the
store is told afterwards, coalesced over the connections as the product's services do it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fairdrop.checkout.rules import Facts, OrderState, Verdict, judge_success
from fairdrop.ids import SaleRef, uuid7

if TYPE_CHECKING:
    from uuid import UUID

    import asyncpg

    from fairdrop.app import Parts
    from fairdrop.drivers.database import Connection

_TAKE = """SELECT w.id, w.order_id, w.intent_id, w.amount_minor, w.currency
    FROM webhook_due d JOIN webhook_inbox w ON w.id = d.id WHERE d.due_at <= now()
    ORDER BY d.due_at, d.id LIMIT 1 FOR UPDATE OF d SKIP LOCKED"""
_LOCK = """SELECT o.id, o.sale_id, o.state, o.currency, o.subtotal_minor, o.fee_minor,
    o.total_minor, o.declines, o.buyer, o.admission, s.payment_attempts, s.epoch, p.received_minor
    FROM orders o JOIN sales s ON s.id = o.sale_id JOIN payments p ON p.order_id = o.id
    WHERE o.id = $1 FOR UPDATE OF o"""
_ORDER = "UPDATE orders SET state = 'CONFIRMED', updated_at = now() WHERE id = $1"
_PAYMENT = """UPDATE payments SET state = 'SUCCEEDED', received_minor = $2 WHERE order_id = $1"""
_TIMERS = "DELETE FROM order_timers WHERE order_id = $1"
_UNITS = """UPDATE units u SET state = 'SOLD' FROM order_lines l, unnest(l.serials) AS s (serial)
    WHERE l.order_id = $1 AND u.variant_id = l.variant_id AND u.serial = s.serial"""
_STOCK = "SELECT sold FROM bench_stock WHERE sale_id = $1 FOR UPDATE"
_SELL = "UPDATE bench_stock SET sold = sold + 1 WHERE sale_id = $1"
_LEDGER = """INSERT INTO ledger_entries (reference, kind, account, order_id, sale_id, currency,
    debit_minor, credit_minor) VALUES
    ($1, 'PAYMENT', 'GATEWAY_CLEARING', $1, $2, $3, $4::bigint + $5::bigint, 0),
    ($1, 'PAYMENT', 'SALES', $1, $2, $3, 0, $4), ($1, 'PAYMENT', 'FEES', $1, $2, $3, 0, $5)"""
_AUDIT = """INSERT INTO order_transitions (order_id, from_state, to_state, cause)
    VALUES ($1, $2, 'CONFIRMED', 'paid')"""
_OUTBOX = """INSERT INTO outbox (id, aggregatetype, aggregateid, type, payload)
    VALUES ($1, 'order', $2, 'order.confirmed', $3)"""
_MARK = """WITH settled AS (DELETE FROM webhook_due WHERE id = $1)
    UPDATE webhook_inbox SET outcome = 'confirmed' WHERE id = $1"""

HOT_ROW_TABLE = """CREATE TABLE bench_stock
    (sale_id uuid PRIMARY KEY, sold integer NOT NULL) WITH (fillfactor = 10)"""


class Single:
    """One transaction an order; the unit is a row of its own, as in the product."""

    def __init__(self, parts: Parts) -> None:
        """Take the product's parts: its database, and its store to tell."""
        self.parts = parts

    async def settle_one(self, connection: Connection) -> bool:
        """Settle the oldest due payment, and tell the store; False when there is none."""
        order = await self.commit_one(connection)
        if order is not None:
            await self.tell_store(order)
        return order is not None

    async def commit_one(self, connection: Connection) -> asyncpg.Record | None:
        """One transaction."""
        async with connection.transaction():
            event = await connection.fetchrow(_TAKE)
            if event is None:
                return None
            order = await connection.fetchrow(_LOCK, event["order_id"])
            if order is None:
                raise RuntimeError("the baseline's order is not there")
            facts = Facts(
                OrderState(order["state"]),
                order["currency"],
                order["total_minor"],
                order["declines"],
                order["payment_attempts"],
                order["received_minor"],
            )
            verdict = judge_success(facts, event["amount_minor"], event["currency"])
            if verdict is not Verdict.CONFIRM:
                raise RuntimeError(verdict)
            key: UUID = order["id"]
            await self.sell(connection, key, order["sale_id"])
            await connection.execute(_ORDER, key)
            await connection.execute(_PAYMENT, key, event["amount_minor"])
            await connection.execute(_TIMERS, key)
            await connection.execute(
                _LEDGER,
                key,
                order["sale_id"],
                order["currency"],
                order["subtotal_minor"],
                order["fee_minor"],
            )
            await connection.execute(_AUDIT, key, order["state"])
            payload = {
                "order": str(key),
                "sale": str(order["sale_id"]),
                "total_minor": order["total_minor"],
                "currency": order["currency"],
            }
            await connection.execute(_OUTBOX, uuid7(), str(key), payload)
            await connection.execute(_MARK, event["id"])
        return order

    async def tell_store(self, order: asyncpg.Record) -> None:
        """The hold is sold, and the place inside is free."""
        sale = SaleRef(str(order["sale_id"]), order["epoch"])
        await asyncio.gather(
            self.parts.inventory.commit(sale, str(order["id"])),
            self.parts.waiting_room.complete(sale, order["buyer"], order["admission"]),
        )

    async def sell(self, connection: Connection, order: UUID, _sale: UUID) -> None:
        """The order's unit rows."""
        await connection.execute(_UNITS, order)

    async def settle_all(self, connections: int) -> None:
        """Until nothing is due, on so many connections side by side."""

        async def one() -> None:
            async with self.parts.database.connection() as connection:
                while await self.settle_one(connection):
                    pass

        await asyncio.gather(*(one() for _ in range(connections)))


class HotRow(Single):
    """The same with stock as one row that every sale locks, instead of unit rows."""

    async def sell(self, connection: Connection, _order: UUID, sale: UUID) -> None:
        """Lock the row, look, count."""
        await connection.fetchval(_STOCK, sale)
        await connection.execute(_SELL, sale)

    async def tell_store(self, order: asyncpg.Record) -> None:
        """The place inside is free; stock is in the database alone."""
        sale = SaleRef(str(order["sale_id"]), order["epoch"])
        await self.parts.waiting_room.complete(sale, order["buyer"], order["admission"])
