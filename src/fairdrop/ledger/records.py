"""The ledger's rows: inserted, summed, and nothing else."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from fairdrop.drivers.database import Queries

from .rules import Entry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from fairdrop.drivers.database import Connection

SQL = Queries("fairdrop.ledger", "ledger")


class Balance(NamedTuple):
    """What an account has had in one currency, in minor units."""

    account: str
    currency: str
    debits_minor: int
    credits_minor: int


class PostedEntry(NamedTuple):
    """A row of the ledger as it was booked, in minor units."""

    reference: str
    kind: str
    account: str
    currency: str
    debit_minor: int
    credit_minor: int
    posted_at: datetime


class JournalEntry(NamedTuple):
    """A row of the ledger with everything that it belongs to, in minor units."""

    reference: str
    kind: str
    account: str
    currency: str
    debit_minor: int
    credit_minor: int
    posted_at: datetime
    order: str
    sale: str


def of_posting(entry: JournalEntry) -> tuple[str, str]:
    """What the entries of one posting share."""
    return entry.reference, entry.kind


async def insert_entries(connection: Connection, entries: Sequence[Entry]) -> None:
    """Book the entries in one statement. The database raises when a posting does not balance.

    It is a COPY, which costs both sides about half of what an INSERT from arrays does.
    """
    if entries:
        await connection.copy_records_to_table(
            "ledger_entries", records=entries, columns=Entry._fields
        )


async def entries_of(connection: Connection, references: Sequence[UUID]) -> list[PostedEntry]:
    """What was booked under these references (an order's id, its refunds' ids), oldest first."""
    rows = await connection.fetch(SQL["entries_of"], references)
    return [PostedEntry(str(row["reference"]), *row[1:]) for row in rows]


async def balances(
    connection: Connection, sale_id: str | None = None, at: datetime | None = None
) -> list[Balance]:
    """The sums of every account, of one sale or of all, now or up to a moment.

    A posting carries the time at which its transaction began: one that is committed a moment later
    still belongs to that time.
    """
    rows = await connection.fetch(SQL["balances"], UUID(sale_id) if sale_id else None, at)
    return [Balance(*row) for row in rows]


async def journal(
    connection: Connection, sale_id: UUID | None, since: datetime | None, until: datetime | None
) -> AsyncIterator[list[JournalEntry]]:
    """The postings of a period, oldest first, each with its entries. In a transaction of the caller's.

    Cost: one sort of the period; rows are fetched a few hundred at a time.
    """
    posting: list[JournalEntry] = []
    async for row in connection.cursor(SQL["journal"], sale_id, since, until, prefetch=500):
        entry = JournalEntry(*row)
        if posting and of_posting(entry) != of_posting(posting[0]):
            yield posting
            posting = []
        posting.append(entry)
    if posting:
        yield posting
