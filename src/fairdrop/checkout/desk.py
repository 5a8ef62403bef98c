"""What operators see of orders: pages of a sale's orders, and one order with its whole history."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from fairdrop import ledger
from fairdrop.ids import is_uuid

from . import records
from .model import Order
from .refunds import SQL as REFUNDS_SQL
from .refunds import Refund, refund_of

if TYPE_CHECKING:
    from fairdrop.drivers.database import Database

    from .rules import OrderState


class Step(msgspec.Struct, frozen=True):
    """One transition of an order (O2)."""

    at: datetime
    from_state: str | None
    to_state: str
    cause: str


class OrderHistory(msgspec.Struct, frozen=True):
    """An order with its transitions, its refunds and all that was booked for it."""

    order: Order
    transitions: list[Step]
    refunds: list[Refund]
    entries: list[ledger.PostedEntry]


class OrderDesk:
    """Looks orders up for operators. Changes nothing. Raises DatabaseUnavailable."""

    def __init__(self, database: Database) -> None:
        """Take the database."""
        self._database = database

    async def page(
        self, sale_id: str, *, state: OrderState | None, after: str | None, limit: int
    ) -> list[Order]:
        """Up to ``limit`` orders of the sale in the order of their ids, which is that of time.

        ``after`` is the id of the last order of the page before. Cost: one index range.
        """
        async with self._database.connection() as connection:
            rows = await connection.fetch(
                records.SQL["orders_of_sale"],
                UUID(sale_id),
                state,
                UUID(after) if after else None,
                limit,
            )
            return await records.with_lines(connection, rows)

    async def history(self, order_id: str) -> OrderHistory | None:
        """One order and everything that happened to it; None when there is none."""
        if not is_uuid(order_id):
            return None
        key = UUID(order_id)
        async with self._database.connection() as connection:
            rows = await connection.fetch(records.SQL["order"], [key])
            if not rows:
                return None
            order = (await records.with_lines(connection, rows))[0]
            steps = await connection.fetch(records.SQL["transitions_of"], key)
            refunds = await connection.fetch(REFUNDS_SQL["refunds_of"], key)
            references = [key, *(row["id"] for row in refunds)]
            entries = await ledger.entries_of(connection, references)
        return OrderHistory(
            order,
            [Step(*row) for row in steps],
            [refund_of(row) for row in refunds],
            entries,
        )

    async def counts(self, sale_id: str) -> dict[str, int]:
        """How many orders of the sale are in each state that occurs. Cost: one index range."""
        async with self._database.connection() as connection:
            rows = await connection.fetch(records.SQL["states_of_sale"], UUID(sale_id))
        return {row["state"]: row["orders"] for row in rows}
