"""The inbox: what gateways tell is stored before they are answered, once an event (O6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import asyncpg

from fairdrop import faults
from fairdrop.batching import Batcher
from fairdrop.drivers.database import Queries
from fairdrop.ids import is_uuid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairdrop.drivers.database import Database
    from fairdrop.payments import GatewayEvent

SQL = Queries("fairdrop.checkout", "settlement")


class Inbox:
    """Stores gateway events, coalesced. Raises DatabaseUnavailable or Overloaded."""

    def __init__(self, database: Database) -> None:
        """Take the database."""
        self._database = database
        self._batcher: Batcher[tuple[str, GatewayEvent], None] = Batcher(
            "inbox",
            self._insert,
            max_batch=500,
            retry_singly=(asyncpg.DataError,),  # what no column can hold fails alone
        )

    async def store(self, gateway: str, event: GatewayEvent) -> None:
        """Store the event; when this returns it is committed, and will be settled."""
        await self._batcher.submit((gateway, event))

    async def _insert(self, items: list[tuple[str, GatewayEvent]]) -> Sequence[None]:
        rows = sorted(
            {
                (gateway, event.id): (
                    gateway,
                    event.id,
                    event.kind.name,
                    event.reference if is_uuid(event.reference) else None,
                    event.intent_id,
                    event.refund_reference,
                    event.amount_minor,
                    event.currency,
                    event.decline_code,
                )
                for gateway, event in items
            }.items()
        )
        async with self._database.connection() as connection:
            await connection.execute(
                SQL["insert_inbox"], *zip(*(row for _, row in rows), strict=True)
            )
        faults.passing(faults.Point.WEBHOOK_STORED)
        return [None] * len(items)
