"""What the database says of work that waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairdrop.drivers.database import Queries

from .model import Waiting

if TYPE_CHECKING:
    from fairdrop.drivers.database import Connection

SQL = Queries("fairdrop.doctor", "waiting")


async def waiting(connection: Connection) -> list[Waiting]:
    """Every kind of work, whether any of it waits or not. Cost: a few index ranges."""
    return [Waiting(*row) for row in await connection.fetch(SQL["waiting"])]
