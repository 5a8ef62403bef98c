"""The line has stopped because all is sold, or goes on because units came back: told once (W16).

Whoever keeps a waitlist, or a shop's page, hears of it as an event: from then on the line does not
move, and who stands in it may be offered what comes back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from fairdrop.drivers.database import Queries
from fairdrop.outbox import Event, insert_events

if TYPE_CHECKING:
    from fairdrop.catalog import Sale
    from fairdrop.drivers.database import Database

SQL = Queries("fairdrop.checkout", "stock")


async def note_sold_out(database: Database, sale: Sale, *, sold_out: bool) -> bool:
    """Record what the line does, with its event, in one transaction; False when it is known already.

    Any number of workers see the same turn: the row decides which of them tells it.
    """
    async with database.transaction() as connection:
        if await connection.fetchval(SQL["note_sold_out"], UUID(sale.id), sold_out) is None:
            return False
        kind = "line.sold_out" if sold_out else "line.resumed"
        payload = {"sale": sale.id, "slug": sale.slug}
        await insert_events(connection, [Event(sale.id, kind, payload, "sale")])
    return True
