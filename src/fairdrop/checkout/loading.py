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
    import asyncpg

    from fairdrop.catalog import Catalog, Sale
    from fairdrop.drivers.database import Connection, Database
    from fairdrop.inventory import Figures, Inventory

_log = structlog.get_logger(__name__)
SQL = Queries("fairdrop.catalog", "catalog")
_MARK_AHEAD = 100
_SALES_REMEMBERED = 1_000


class Loader:
    """Fills the store from the database. Any number of processes may do so side by side."""

    def __init__(self, database: Database, catalog: Catalog, inventory: Inventory) -> None:
        """Take the truth, and where to bring it."""
        self._database = database
        self._catalog = catalog
        self._inventory = inventory
        self._tails: dict[SaleRef, tuple[int, int]] = {}

    async def keep_loaded(self, sale: Sale) -> Sale:
        """Make sure that the store has the sale at its present version; returns it as loaded.

        Raises StoreUnavailable or DatabaseUnavailable. Cost: one small read when all is well, and a
        small write while the line moves.
        """
        if sale.epoch > 0:
            try:
                figures = await self._inventory.figures(sale.ref, [])
                await self._mark(sale, figures)
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

    async def _mark(self, sale: Sale, figures: Figures) -> None:
        """Keep in the database how far the line is, so that one built anew goes on behind it (W15)."""
        tail, mark = self._tails.get(sale.ref, (0, 0))
        if figures.tail == tail and figures.served <= sale.line_served:
            return
        if len(self._tails) > _SALES_REMEMBERED:
            self._tails.clear()
        if figures.tail:
            mark = max(mark, line_mark(figures.tail, figures.tail - tail))
        self._tails[sale.ref] = (figures.tail, mark)
        async with self._database.connection() as connection:
            await connection.execute(
                SQL["mark_line"], UUID(sale.id), sale.epoch, mark, figures.served
            )

    async def _rebuild(self, sale: Sale) -> Sale:
        """Fill a new epoch from the database, under the sale's lock.

        The epoch is committed before the store is filled: a process that dies in between leaves an
        epoch that was never filled, and the next one takes the one after it.
        """
        async with self._database.transaction() as lock:
            await lock.execute(SQL["lock_loading"], sale.id)
            async with self._database.connection() as connection:
                row = await connection.fetchrow(SQL["set_epoch"], UUID(sale.id), sale.epoch)
                if row is not None:
                    ref = SaleRef(sale.id, row["epoch"])
                    await self._fill(connection, sale, ref, _line_to_restore(row))
        self._catalog.forget(sale.id)
        return await self._catalog.sale(sale.id) or sale

    async def _fill(
        self, connection: Connection, sale: Sale, ref: SaleRef, line: tuple[int, int, int]
    ) -> None:
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
            line=line,
        )
        _log.info("sale_loaded", sale=sale.id, epoch=ref.epoch, holds=len(holds), grace_ms=line[2])


def _line_to_restore(row: asyncpg.Record) -> tuple[int, int, int]:
    """What ``load`` has to know of the line before: nothing of one that was reset, or never begun."""
    if row["line_mark"] == 0 or row["epoch"] <= row["receipts_from"]:
        return 0, 0, 0
    return row["line_mark"], row["line_served"], row["restore_grace_ms"]


def line_mark(tail: int, grown: int) -> int:
    """A position that nobody will have until the next mark, when the line grew so much since the last.

    >>> line_mark(1_000, 2), line_mark(50_000, 10_000)
    (1100, 90000)
    """
    return tail + max(_MARK_AHEAD, 4 * grown)


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
