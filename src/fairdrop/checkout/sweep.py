"""The sweep: what is past its deadline ends, the row first and the store after (H4, H7).

It also is what finishes the work of processes that died between a commit and telling the store:
every hold that has an order stays in the store's list of deadlines until its order's row has said
what to do with it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from fairdrop import faults
from fairdrop.drivers.database import Queries
from fairdrop.ids import SaleRef

from . import records
from .model import order_of_hold
from .rules import Cause, HoldEnding, OrderState, end_hold
from .telling import tell_store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator, Mapping

    import asyncpg

    from fairdrop.catalog import Sale
    from fairdrop.drivers.database import Database
    from fairdrop.inventory import Inventory
    from fairdrop.waiting_room import WaitingRoom

SQL = Queries("fairdrop.checkout", "sweep")
BATCH = 500
_Unit = tuple[str, int]
"""(variant, serial)"""


class Swept(NamedTuple):
    """What one sweep did."""

    reservations: int
    orders: int
    resolved: int


class Sweeper:
    """Ends what is over. Any number of processes may sweep side by side."""

    def __init__(self, database: Database, inventory: Inventory, waiting_room: WaitingRoom) -> None:
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
            if rows:
                faults.passing(faults.Point.EXPIRED)
            # A hold about which the store does not hear stays in its list of deadlines: the next
            # sweep of the store resolves it.
            await tell_store(
                "expire",
                (
                    self._inventory.free(
                        SaleRef(str(row["sale_id"]), epochs[str(row["sale_id"])]), str(row["id"])
                    )
                    for row in rows
                    if str(row["sale_id"]) in epochs
                ),
            )
            total += len(rows)
            if len(rows) < BATCH:
                return total

    async def _resolve(self, sale: Sale, undecided: Mapping[str, str]) -> int:
        """Ask the orders' rows about holds that are past their deadline, and do what they say."""
        holds = {hold: order_of_hold(hold) for hold in undecided}
        made_by_buyers = [hold for hold, (_, late) in holds.items() if not late]
        async with self._database.transaction() as connection:
            # A hold whose order was never written gets a row that is over, so that an insert that is
            # still on its way is refused; a concurrent insert makes this wait for its commit.
            rows = await connection.fetch(
                SQL["insert_tombstones"],
                [UUID(hold) for hold in made_by_buyers],
                UUID(sale.id),
                [undecided[hold] for hold in made_by_buyers],
                sale.currency,
            )
            await records.note_transitions(
                connection, ((row["id"], None, OrderState.EXPIRED, Cause.EXPIRE) for row in rows)
            )
        async with self._database.connection() as connection:
            keys = list({UUID(order) for order, _ in holds.values()})
            found = await connection.fetch(SQL["order_states"], keys)
        orders = {str(row["id"]): row for row in found}
        units = await self._units_of(sale, undecided)
        owners = await self._owners(units)
        return await tell_store(
            "resolve",
            (
                call
                for hold, (order, late) in holds.items()
                for call in self._end_hold(
                    sale, hold, orders[order], units[hold], owners, late=late
                )
            ),
        )

    async def _units_of(self, sale: Sale, holds: Mapping[str, str]) -> dict[str, list[_Unit]]:
        """The units of holds whose checkout has begun: starting it again changes nothing."""
        started = await asyncio.gather(
            *(self._inventory.start(sale.ref, hold, buyer) for hold, buyer in holds.items())
        )
        return {
            hold: [(variant, serial) for variant, serials in one.lines for serial in serials]
            for hold, one in zip(holds, started, strict=True)
        }

    async def _owners(self, units: Mapping[str, list[_Unit]]) -> dict[_Unit, tuple[str, str]]:
        """The order and the state of each unit, of those that holds have, which an order has or had."""
        wanted = [(*unit, order_of_hold(hold)[0]) for hold, held in units.items() for unit in held]
        async with self._database.connection() as connection:
            rows = await connection.fetch(
                SQL["owners"],
                [UUID(variant) for variant, _, _ in wanted],
                [serial for _, serial, _ in wanted],
                [UUID(order) for _, _, order in wanted],
            )
        return {(row["variant"], row["serial"]): (row["owner"], row["state"]) for row in rows}

    def _end_hold(  # noqa: PLR0913 - what is known of one hold
        self,
        sale: Sale,
        hold: str,
        order: asyncpg.Record,
        units: list[_Unit],
        owners: Mapping[_Unit, tuple[str, str]],
        *,
        late: bool,
    ) -> Iterator[Awaitable[object]]:
        key = str(order["id"])
        sold = bool(units) and all(owners.get(unit) == (key, "SOLD") for unit in units)
        ending = end_hold(OrderState(order["state"]), sold=sold, late_hold=late)
        if ending is HoldEnding.EXTEND:
            deadline_ms = int(order["deadline"].timestamp() * 1_000)
            yield self._inventory.extend(sale.ref, hold, deadline_ms)
        elif ending is HoldEnding.FREE:
            # What turned out to be another order's stays out of the pool (H8).
            lost = [
                part for unit in units if owners.get(unit, (key, ""))[0] != key for part in unit
            ]
            yield self._inventory.free(sale.ref, hold, lost)
        else:
            yield self._inventory.commit(sale.ref, hold)
            if order["admission"]:
                yield self._waiting_room.complete(sale.ref, order["buyer"], order["admission"])
