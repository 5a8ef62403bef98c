"""Events on their way out: written with the change that they tell of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from fairdrop.drivers.database import Queries
from fairdrop.ids import uuid7

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairdrop.drivers.database import Connection

SQL = Queries("fairdrop.outbox", "outbox")
_encode = msgspec.json.Encoder().encode


class Event(NamedTuple):
    """One event: what happened (``kind``) to which aggregate, and what consumers need to know."""

    aggregate_id: str
    kind: str
    payload: dict[str, Any]


async def insert_events(connection: Connection, events: Sequence[Event]) -> None:
    """Write the events, in their order, inside the caller's transaction (E1)."""
    if events:
        await connection.execute(
            SQL["insert_events"],
            [uuid7() for _ in events],
            [event.aggregate_id for event in events],
            [event.kind for event in events],
            [_encode(event.payload).decode() for event in events],
        )
