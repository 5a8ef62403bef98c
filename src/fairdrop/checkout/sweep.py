"""The sweep: what is past its deadline ends, the row first and the store after (H4, H7).

It also is what finishes the work of processes that died between a commit and telling the store:
every hold that has an order stays in the store's list of deadlines until its order's row has said
what to do with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import structlog

from fairdrop.drivers.database import Queries
from fairdrop.errors import StoreUnavailable
from fairdrop.ids import SaleRef

from . import records
from .rules import LIVE, Cause, OrderState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairdrop.catalog import Sale
    from fairdrop.drivers.database import Database
    from fairdrop.inventory import Inventory
    from fairdrop.waiting_room import WaitingRoom

_log = structlog.get_logger(__name__)
SQL = Queries("fairdrop.checkout", "sweep")
BATCH = 500


class Swept(NamedTuple):
    """What one sweep did."""

    reservations: int
    orders: int
    resolved: int


class Sweeper:
    """Ends what is over. Any number of processes may sweep side by side."""

    def __init__(
        self, database: Database, inventory: Inventory, waiting_room: WaitingRoom
    ) -> None:
        """Take the database and the store's services."""
        self._database = database
        self._inventory = inventory
        self._waiting_room = waiting_room

    async def sweep_store(self, sale: Sale) -> Swept:
        """Release reservations that are over, and resolve holds whose orders must decide."""
        reservations = resolved = 0
        more = True
        while more:
            expired = await self._inventory.expire(sale.ref)
            reservations += expired.holds
            if expired.undecided:
                resolved += await self._resolve(sale, dict(expired.undecided))
            more = expired.more
        return Swept(reservations, 0, resolved)

    async def sweep_orders(self, epochs: Mapping[str, int]) -> int:
        """Expire orders whose deadline has passed, in bounded transactions; returns how many.

        ``epochs`` maps the sales that run to their present epochs.
        """
        total = 0
        while True:
            async with self._database.transaction() as connection:
                rows = await connection.fetch(SQL["expire_orders"], BATCH)
                if rows:
                    await records.end_orders(
                        connection,
                        [
                            (
                                row["id"],
                                row["from_state"],
                                OrderState.EXPIRED,
                                Cause.EXPIRE,
                                str(row["sale_id"]),
                            )
                            for row in rows
                        ],
                    )
            await self._free(
                [
                    (SaleRef(str(row["sale_id"]), epochs[str(row["sale_id"])]), str(row["id"]))
                    for row in rows
                    if str(row["sale_id"]) in epochs
                ]
            )
            total += len(rows)
            if len(rows) < BATCH:
                return total

    async def _free(self, holds: Sequence[tuple[SaleRef, str]]) -> None:
        try:
            for future in [self._inventory.free(sale, hold) for sale, hold in holds]:
                await future
        except StoreUnavailable as error:
            # The holds are still in the store's list of deadlines: the next sweep resolves them.
            _log.warning("store_not_told", step="expire", error=str(error))

    async def _resolve(self, sale: Sale, undecided: Mapping[str, str]) -> int:
        """Ask the orders' rows about holds that are past their deadline, and do what they say."""
        keys = [UUID(hold) for hold in undecided]
        async with self._database.transaction() as connection:
            # A hold whose order was never written gets a row that is over, so that an insert that is
            # still on its way is refused; a concurrent insert makes this wait for its commit.
            await connection.execute(
                SQL["insert_tombstones"],
                keys,
                UUID(sale.id),
                list(undecided.values()),
                sale.currency,
            )
        async with self._database.connection() as connection:
            rows = await connection.fetch(SQL["order_states"], keys)
        waiting = []
        for row in rows:
            state, hold = OrderState(row["state"]), str(row["id"])
            if state in LIVE:
                deadline_ms = int(row["deadline"].timestamp() * 1_000)
                waiting.append(self._inventory.extend(sale.ref, hold, deadline_ms))
            elif not row["sold"]:
                waiting.append(self._inventory.free(sale.ref, hold))
            else:
                if row["admission"]:
                    await self._waiting_room.complete(sale.ref, row["buyer"], row["admission"])
                waiting.append(self._inventory.commit(sale.ref, hold))
        for future in waiting:
            await future
        return len(waiting)
