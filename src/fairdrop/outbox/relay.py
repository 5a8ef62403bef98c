"""The relay: takes events out of the outbox and puts them on the bus (E2, E3).

**At least once.** Events are deleted in a transaction that commits after the bus has them. Who dies in
between publishes them again, under the same ids.

**None skipped.** A relay that remembers how far it has read passes over a transaction that took its
number early and commits late. This one remembers nothing: what is in the table is to be published, and
what is published is not in the table.

**In order, for each aggregate.** Changes of one aggregate follow one another under its row's lock, so
their events' ``seq`` rises in the order of their commits; one relay publishes at a time, oldest first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from fairdrop import faults
from fairdrop.drivers.database import Queries
from fairdrop.drivers.keys import EVENT_STREAM

if TYPE_CHECKING:
    import asyncpg

    from fairdrop.drivers.database import Database
    from fairdrop.drivers.store import Store

SQL = Queries("fairdrop.outbox", "relay")
RELAY_BATCH = 500
SOURCE = "/fairdrop"
_encode = msgspec.json.encode


class Relay:
    """Publishes to the store's stream. Any number of processes may try; one does at a time."""

    def __init__(self, database: Database, store: Store, *, kept: int) -> None:
        """``kept`` is about how many events the stream keeps, the newest ones."""
        self._database = database
        self._store = store
        self._kept = kept

    async def publish(self) -> int:
        """Publish the oldest events, at most a batch; returns how many.

        Raises StoreUnavailable or DatabaseUnavailable: nothing is lost, the events wait.
        """
        async with self._database.transaction() as connection:
            if not await connection.fetchval(SQL["lock_relay"]):
                return 0
            rows = await connection.fetch(SQL["take_events"], RELAY_BATCH)
            if rows:
                oldest_first = sorted(rows, key=lambda row: row["seq"])
                envelopes = [_encode(envelope(row)) for row in oldest_first]
                await self._store.append(EVENT_STREAM, "event", envelopes, kept=self._kept)
                faults.passing(faults.Point.PUBLISHED)
        return len(rows)


def envelope(row: asyncpg.Record) -> dict[str, Any]:
    """The event as CloudEvents 1.0 has it; ``id`` is the same however often it is published."""
    return {
        "specversion": "1.0",
        "id": str(row["id"]),
        "source": SOURCE,
        "type": f"fairdrop.{row['type']}",
        "subject": row["aggregateid"],
        "time": row["created_at"],
        "datacontenttype": "application/json",
        "data": row["payload"],
    }
