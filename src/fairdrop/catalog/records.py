"""The catalogue's rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from fairdrop import lottery
from fairdrop.drivers.database import Queries
from fairdrop.ids import new_id

from .model import NewSale, Sale, Variant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import asyncpg

    from fairdrop.drivers.database import Connection

SQL = Queries("fairdrop.catalog", "catalog")
_COLUMNS = tuple(name for name in Sale.__struct_fields__ if name not in ("id", "variants"))
CHANGEABLE = (
    "name",
    "description",
    "opens_at",
    "closes_at",
    "rate_per_s",
    "cap",
    "claim_ttl_ms",
    "lease_ttl_ms",
    "hold_ttl_ms",
    "payment_ttl_ms",
    "order_limit",
    "buyer_limit",
    "accept_late",
    "payment_attempts",
    "burst_ms",
    "line_cap_factor",
    "adaptive",
    "rate_min_per_s",
    "rate_max_per_s",
    "latency_target_ms",
    "restore_grace_ms",
    "lobby_ms",
    "window_ms",
    "beacon",
    "beacon_failure",
    "buffer_percent",
    "stock_source",
)


async def insert_sale(connection: Connection, sale_id: str, new: NewSale) -> None:
    """Write a sale, its variants and the seed of its draw, to which it is committed from now on (W4).

    Raises asyncpg.UniqueViolationError for a taken slug.
    """
    seed = lottery.new_seed()
    await connection.execute(
        SQL["insert_sale"],
        UUID(sale_id),
        new.slug,
        new.name,
        new.description,
        new.timezone,
        new.opens_at,
        new.closes_at,
        new.currency,
        new.rate_per_s,
        new.cap,
        new.claim_ttl_ms,
        new.lease_ttl_ms,
        new.hold_ttl_ms,
        new.payment_ttl_ms,
        new.order_limit,
        new.buyer_limit,
        new.fee_bps,
        new.accept_late,
        new.payment_attempts,
        new.gateway,
        new.capture,
        new.burst_ms,
        new.line_cap_factor,
        new.adaptive,
        new.rate_min_per_s,
        new.rate_max_per_s,
        new.latency_target_ms,
        new.restore_grace_ms,
        new.lobby_ms,
        new.window_ms,
        new.beacon,
        new.beacon_failure,
        lottery.commitment(seed).hex(),
        new.buffer_percent,
        new.stock_source,
    )
    await connection.execute(SQL["insert_draw"], UUID(sale_id), seed.hex())
    await connection.execute(
        SQL["insert_variants"],
        UUID(sale_id),
        [UUID(new_id()) for _ in new.variants],
        [variant.product for variant in new.variants],
        [variant.name for variant in new.variants],
        [variant.price_minor for variant in new.variants],
        [variant.quantity for variant in new.variants],
    )


async def sales_with_variants(connection: Connection, rows: Sequence[asyncpg.Record]) -> list[Sale]:
    """The sales of the rows, each with its variants in order."""
    variants: dict[UUID, list[Variant]] = {row["id"]: [] for row in rows}
    for row in await connection.fetch(SQL["variants_of"], list(variants)):
        variants[row["sale_id"]].append(
            Variant(
                id=str(row["id"]),
                product=row["product"],
                name=row["name"],
                price_minor=row["price_minor"],
                quantity=row["quantity"],
                last_serial=row["last_serial"],
            )
        )
    return [
        Sale(
            id=str(row["id"]),
            variants=tuple(variants[row["id"]]),
            **{column: row[column] for column in _COLUMNS},
        )
        for row in rows
    ]


async def change_sale(connection: Connection, sale_id: str, changes: Mapping[str, Any]) -> int:
    """Apply the changes and return the new version."""
    values = [changes.get(column) for column in CHANGEABLE]
    version = await connection.fetchval(SQL["change_sale"], UUID(sale_id), *values)
    return int(version)
