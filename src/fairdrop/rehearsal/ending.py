"""Waiting for a sale's loose ends: deadlines, late webhooks, refunds on their way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from uuid import UUID

from fairdrop.drivers.database import Queries
from fairdrop.errors import DatabaseUnavailable, StoreUnavailable

if TYPE_CHECKING:
    from fairdrop.app import Parts

SQL = Queries("fairdrop.rehearsal", "unfinished")
POLL_S = 0.2
UNKNOWN = "parts that do not answer"


async def unfinished(parts: Parts, sale_id: str) -> dict[str, int]:
    """How many orders, payments, refunds, events and held units of the sale are under way."""
    try:
        async with parts.database.connection() as connection:
            row = await connection.fetchrow(SQL["unfinished"], UUID(sale_id))
        sale = await parts.catalog.sale(sale_id)
        assert row is not None, "a row of counts"
        assert sale is not None, "the sale that was rehearsed"
        figures = await parts.inventory.figures(sale.ref, [variant.id for variant in sale.variants])
    except (DatabaseUnavailable, StoreUnavailable):
        parts.catalog.forget(sale_id)  # its epoch may be a new one
        return {UNKNOWN: 1}
    return {**dict(row), "held units": sum(variant.held for variant in figures.variants)}


async def wait_for_the_end(parts: Parts, sale_id: str, limit_s: float) -> dict[str, int]:
    """Wait until nothing is under way, at most ``limit_s``; what is left then, by kind."""
    left: dict[str, int] = {UNKNOWN: 1}
    try:
        async with asyncio.timeout(limit_s):
            while any(left.values()):
                left = await unfinished(parts, sale_id)
                if any(left.values()):
                    await asyncio.sleep(POLL_S)
    except TimeoutError:
        pass
    return left
