"""The ledger's rows: inserted, summed, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from fairdrop.drivers.database import Queries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairdrop.drivers.database import Connection

    from .rules import Entry

SQL = Queries("fairdrop.ledger", "ledger")


class Balance(NamedTuple):
    """What an account has had in one currency, in minor units."""

    account: str
    currency: str
    debits_minor: int
    credits_minor: int


async def insert_entries(connection: Connection, entries: Sequence[Entry]) -> None:
    """Book the entries in one statement. The database raises when a posting does not balance."""
    if entries:
        await connection.execute(SQL["insert_entries"], *zip(*entries, strict=True))


async def balances(connection: Connection, sale_id: str | None = None) -> list[Balance]:
    """The sums of every account, of one sale or of all."""
    rows = await connection.fetch(SQL["balances"], UUID(sale_id) if sale_id else None)
    return [Balance(*row) for row in rows]
