"""Events on their way out: written with the change that they tell of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from fairdrop.ids import uuid7

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairdrop.drivers.database import Connection

_COLUMNS = ("id", "aggregatetype", "aggregateid", "type", "payload")


class Event(NamedTuple):
    """One event: what happened (``kind``) to which aggregate, and what consumers need to know."""

    aggregate_id: str
    kind: str
    payload: dict[str, Any]
    aggregate: str = "order"


async def insert_events(connection: Connection, events: Sequence[Event]) -> None:
    """Write the events, in their order, inside the caller's transaction (E1).

    Ids of one call count up, so that events of one aggregate have ids in their order.
    """
    if events:
        first = uuid7().int
        await connection.copy_records_to_table(
            "outbox",
            records=[
                (UUID(int=first + at), aggregate, aggregate_id, kind, payload)
                for at, (aggregate_id, kind, payload, aggregate) in enumerate(events)
            ],
            columns=_COLUMNS,
        )
