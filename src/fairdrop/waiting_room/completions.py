"""What a checkout of the shop's own says of an admission: completed or failed (W20, W13).

The report is a row first, and the store is told after the commit: the place is free and the token
dead at once. A store that does not answer is told later by the worker; the report stands either
way, and repeating it changes nothing. The row is also what makes one admission one order: of two
orders that report the same admission, the second is refused and can be rolled back.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import structlog

from fairdrop.drivers.database import Queries
from fairdrop.errors import Overloaded, StoreUnavailable
from fairdrop.ids import SaleRef

if TYPE_CHECKING:
    from fairdrop.drivers.database import Database

    from .service import WaitingRoom

SQL = Queries("fairdrop.waiting_room", "completions")
BATCH = 200

_log = structlog.get_logger(__name__)


class Outcome(StrEnum):
    """How a checkout ended."""

    COMPLETED = "completed"
    FAILED = "failed"


class Reported(NamedTuple):
    """What is on record of an admission after a report; ``told`` when the place is free already."""

    outcome: Outcome
    reference: str
    told: bool


class Conflict(NamedTuple):
    """The admission has ended otherwise: with this outcome, for this order of the shop."""

    outcome: Outcome
    reference: str


class Completions:
    """Reports of foreign checkouts. Any number of processes may take and tell them side by side."""

    def __init__(self, database: Database, waiting_room: WaitingRoom) -> None:
        """Take the database and the line."""
        self._database = database
        self._waiting_room = waiting_room

    async def report(
        self, sale: SaleRef, buyer: str, admission: str, outcome: Outcome, reference: str
    ) -> Reported | Conflict:
        """Put the outcome on record, and free the place.

        ``reference`` is the shop's own name of the order. Raises DatabaseUnavailable: then nothing
        is on record. The store may be away; its part is done later.
        """
        async with self._database.connection() as connection:
            row = await connection.fetchrow(
                SQL["report"], UUID(sale.id), admission, buyer, sale.epoch, outcome, reference
            )
        assert row is not None, "an upsert gives its row"
        found = Outcome(row["outcome"])
        if (found, row["reference"]) != (outcome, reference):
            return Conflict(found, row["reference"])
        told = row["told"] or await self._tell(sale, row["buyer"], admission, found)
        return Reported(found, row["reference"], told)

    async def tell_untold(self) -> int:
        """Tell the store what it has not heard; returns how many reports were looked at."""
        async with self._database.connection() as connection:
            rows = await connection.fetch(SQL["untold"], BATCH)
        for row in rows:
            sale = SaleRef(str(row["sale_id"]), row["epoch"])
            if row["epoch"] != row["epoch_now"]:
                await self._note_told(sale, row["admission"])
            else:
                await self._tell(sale, row["buyer"], row["admission"], Outcome(row["outcome"]))
        return len(rows)

    async def _tell(self, sale: SaleRef, buyer: str, admission: str, outcome: Outcome) -> bool:
        try:
            await self._waiting_room.end(
                sale, buyer, admission, completed=outcome is Outcome.COMPLETED
            )
        except (StoreUnavailable, Overloaded) as error:
            _log.warning("store_not_told", step="completion", error=str(error))
            return False
        await self._note_told(sale, admission)
        return True

    async def _note_told(self, sale: SaleRef, admission: str) -> None:
        async with self._database.connection() as connection:
            await connection.execute(SQL["told"], UUID(sale.id), [admission])
