"""Bringing sales into the store, keeping them up to date, rebuilding them when it lost them (H8, H9).

The database is the truth about stock, sold units and orders under way; the store is filled from
it, once an epoch, under a lock. Until it is filled, every script answers that the sale is not
loaded, and nobody is admitted and nothing is sold (W14).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING
from uuid import UUID

import structlog

from fairdrop.drivers.database import Queries
from fairdrop.drivers.sale_scripts import SaleNotLoaded
from fairdrop.ids import SaleRef
from fairdrop.inventory import HoldLoad, Lines, VariantLoad

if TYPE_CHECKING:
    from fairdrop.catalog import Catalog, Sale
    from fairdrop.drivers.database import Connection, Database
    from fairdrop.inventory import Inventory

_log = structlog.get_logger(__name__)
SQL = Queries("fairdrop.catalog", "catalog")


class Loader:
    """Fills the store from the database. Any number of processes may do so side by side."""

    def __init__(self, database: Database, catalog: Catalog, inventory: Inventory) -> None:
        """Take the truth, and where to bring it."""
        self._database = database
        self._catalog = catalog
        self._inventory = inventory

    async def keep_loaded(self, sale: Sale) -> Sale:
        """Make sure that the store has the sale at its present version; returns it as loaded.

        Raises StoreUnavailable or DatabaseUnavailable. Cost: one small read when all is well.
        """
        if sale.epoch > 0:
            try:
                figures = await self._inventory.figures(sale.ref, [])
                if figures.version >= sale.version:
                    return sale
                await self._inventory.load(
                    sale.ref, sale.version, sale.store_config(), _variants(sale)
                )
            except SaleNotLoaded:
                _log.warning("sale_lost", sale=sale.id, epoch=sale.epoch)
            else:
                return sale
        return await self._rebuild(sale)

    async def _rebuild(self, sale: Sale) -> Sale:
        """Fill a new epoch from the database, under the sale's lock.

        The epoch is committed before the store is filled: a process that dies in between leaves an
        epoch that was never filled, and the next one takes the one after it.
        """
        async with self._database.transaction() as lock:
            await lock.execute(SQL["lock_loading"], sale.id)
            async with self._database.connection() as connection:
                epoch = await connection.fetchval(SQL["set_epoch"], UUID(sale.id), sale.epoch)
                if epoch is not None:
                    await self._fill(connection, sale, SaleRef(sale.id, epoch))
        self._catalog.forget(sale.id)
        return await self._catalog.sale(sale.id) or sale

    async def _fill(self, connection: Connection, sale: Sale, ref: SaleRef) -> None:
        # One snapshot: an order that is confirmed between two reads would have its units in neither.
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            holds, sold, bought = await _orders_of(connection, sale)
            variants = await connection.fetch(SQL["variants_of"], [UUID(sale.id)])
        await self._inventory.load(
            ref,
            sale.version,
            sale.store_config(),
            [
                variant_load(
                    str(row["id"]),
                    row["quantity"],
                    row["last_serial"],
                    sold=sold[str(row["id"])],
                    held=_held(holds, str(row["id"])),
                    retired=set(row["retired"]),
                )
                for row in variants
            ],
            holds=holds,
            bought=bought,
        )
        _log.info("sale_loaded", sale=sale.id, epoch=ref.epoch, holds=len(holds))


def _variants(sale: Sale) -> list[VariantLoad]:
    return [
        VariantLoad(variant.id, variant.quantity, variant.last_serial) for variant in sale.variants
    ]


def variant_load(  # noqa: PLR0913 - the state of a variant
    variant: str,
    quantity: int,
    last_serial: int,
    *,
    sold: set[int],
    held: set[int],
    retired: set[int],
) -> VariantLoad:
    """A variant's pool from what is taken: fresh serials after the highest taken, gaps returned.

    >>> variant_load("v", 5, 6, sold={1, 4}, held={2}, retired={6})
    VariantLoad(variant='v', quantity=5, last_serial=6, next_serial=7, sold=2, returned=[3, 5])
    """
    taken = sold | held | retired
    highest = max(taken, default=0)
    return VariantLoad(
        variant,
        quantity,
        last_serial,
        next_serial=highest + 1,
        sold=len(sold),
        returned=[serial for serial in range(1, highest + 1) if serial not in taken],
    )


async def _orders_of(
    connection: Connection, sale: Sale
) -> tuple[list[HoldLoad], dict[str, set[int]], dict[str, int]]:
    """Holds of orders under way, serials sold by variant, and units bought by buyer."""
    key = UUID(sale.id)
    sold: dict[str, set[int]] = defaultdict(set)
    held: dict[UUID, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for row in await connection.fetch(SQL["units_of"], key):
        if row["state"] == "SOLD":
            sold[str(row["variant_id"])].add(row["serial"])
        else:
            held[row["order_id"]][str(row["variant_id"])].append(row["serial"])
    holds = []
    for row in await connection.fetch(SQL["live_orders_of"], key):
        lines: Lines = list(held[row["id"]].items())
        deadline_ms = int(row["deadline"].timestamp() * 1_000)
        holds.append(
            HoldLoad(
                str(row["id"]),
                row["buyer"],
                row["admission"] or False,
                deadline_ms,
                lines,
                row["verified"],
            )
        )
    bought = {row["buyer"]: row["units"] for row in await connection.fetch(SQL["bought_of"], key)}
    return holds, sold, bought


def _held(holds: list[HoldLoad], variant: str) -> set[int]:
    return {
        serial
        for hold in holds
        for line_variant, serials in hold.lines
        if line_variant == variant
        for serial in serials
    }
