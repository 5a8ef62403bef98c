"""Orders in payment whose money has just been told of: what a settlement benchmark starts from.

Each contender of each round gets orders of its own, so that none profits from what another has
brought into memory. The rows are those that checkout writes; the store holds the units.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import UUID

from fairdrop.catalog import NewSale, NewVariant
from fairdrop.inventory import HoldLoad, VariantLoad

if TYPE_CHECKING:
    import random

    from fairdrop.app import Parts
    from fairdrop.catalog import Sale

PRICE, FEE = 4_500, 450

_FILL = """
WITH new AS (
    SELECT n, uuidv7() AS id FROM generate_series($3::integer, $3 + $4 - 1) AS n
), o AS (
    INSERT INTO orders (id, sale_id, buyer, admission, state, currency, subtotal_minor, fee_minor,
        total_minor, deadline, email)
    SELECT id, $1, 'buyer-' || n, 'admission-' || n, 'PAYMENT_PENDING', 'EUR', $5, $6,
        $5::bigint + $6::bigint, now() + interval '1 hour', 'buyer' || n || '@example.org' FROM new
), l AS (
    INSERT INTO order_lines (order_id, variant_id, serials, price_minor)
    SELECT id, $2, ARRAY[n], $5 FROM new
), u AS (
    INSERT INTO units (variant_id, serial, order_id, state)
    SELECT $2, n, id, 'HELD' FROM new
), p AS (
    INSERT INTO payments (order_id, gateway, intent_id, pay_url, state, amount_minor, currency)
    SELECT id, 'sandbox', 'pi_' || id, 'https://gateway.example/pay/' || id, 'OPEN',
        $5::bigint + $6::bigint, 'EUR' FROM new
), i AS (
    INSERT INTO order_timers (order_id, kind, at)
    SELECT id, kind, now() + interval '1 hour' FROM new, (VALUES ('DEADLINE'), ('PAYMENT')) AS k (kind)
), t AS (
    INSERT INTO order_transitions (order_id, from_state, to_state, cause)
    SELECT id, before, after, cause FROM new, (VALUES (NULL, 'RESERVED', 'start'),
        ('RESERVED', 'PAYMENT_PENDING', 'pay')) AS s (before, after, cause)
)
SELECT n, id FROM new ORDER BY n
"""

_TELL = """
WITH new AS (
    INSERT INTO webhook_inbox (gateway, event_id, kind, order_id, intent_id, amount_minor, currency)
    SELECT 'sandbox', 'evt_' || id, 'SUCCEEDED', id, 'pi_' || id, $2, 'EUR'
    FROM unnest($1::uuid[]) WITH ORDINALITY AS told (id, place) ORDER BY place RETURNING id
)
INSERT INTO webhook_due (id) SELECT id FROM new
"""
_CHECK = """
SELECT count(*) FILTER (WHERE o.state = 'CONFIRMED') AS orders,
    count(*) FILTER (WHERE p.state = 'SUCCEEDED') AS payments,
    (SELECT count(*) / 3 FROM ledger_entries WHERE sale_id = $1) AS postings,
    (SELECT count(*) FROM order_transitions t JOIN orders c ON c.id = t.order_id
        WHERE c.sale_id = $1 AND t.cause = 'paid') AS transitions,
    (SELECT count(*) FROM webhook_inbox w JOIN orders c ON c.id = w.order_id
        WHERE c.sale_id = $1 AND w.outcome = 'confirmed'
            AND NOT EXISTS (SELECT FROM webhook_due d WHERE d.id = w.id)) AS webhooks
FROM orders o JOIN payments p ON p.order_id = o.id WHERE o.sale_id = $1
"""
_EARLY = datetime(2026, 1, 1, tzinfo=UTC)


class Orders:
    """One sale, and batches of its orders ready to be settled."""

    def __init__(self, parts: Parts, sale: Sale) -> None:
        """Begin at serial 1."""
        self.parts = parts
        self.sale = sale
        self._next = 1

    @classmethod
    async def open(cls, parts: Parts, name: str, units: int) -> Orders:
        """A sale with so many units, none of them taken."""
        _, sale_id = await parts.catalog.create(
            NewSale(
                slug=f"bench-{name}-{os.getpid()}",
                name=f"Benchmark {name}",
                opens_at=_EARLY,
                currency="EUR",
                variants=(NewVariant("Ticket", "Standing", PRICE, units),),
                cap=units,
            ),
            "benchmark",
        )
        return cls(parts, await _found(parts, sale_id))

    async def fill(self, count: int, chance: random.Random) -> None:
        """``count`` orders in payment, their units held, their webhooks due now, in random order."""
        async with self.parts.database.connection() as connection:
            rows = await connection.fetch(
                _FILL,
                UUID(self.sale.id),
                UUID(self.sale.variants[0].id),
                self._next,
                count,
                PRICE,
                FEE,
                timeout=120,
            )
            await connection.execute(
                "UPDATE sales SET epoch = epoch + 1 WHERE id = $1", UUID(self.sale.id)
            )
            told = [row["id"] for row in rows]
            chance.shuffle(told)
            await connection.execute(_TELL, told, PRICE + FEE, timeout=120)
        self._next += count
        self.parts.catalog.forget(self.sale.id)
        self.sale = await _found(self.parts, self.sale.id)
        variant = self.sale.variants[0]
        await self.parts.inventory.load(
            self.sale.ref,
            self.sale.version,
            self.sale.store_config(),
            [VariantLoad(variant.id, variant.quantity, variant.last_serial, self._next)],
            holds=[
                HoldLoad(
                    str(row["id"]),
                    f"buyer-{row['n']}",
                    f"admission-{row['n']}",
                    10**13,
                    [(variant.id, [row["n"]])],
                )
                for row in rows
            ],
        )

    async def check(self, count: int) -> None:
        """Raise unless exactly the orders filled so far are settled, once each, in every book."""
        async with self.parts.database.connection() as connection:
            row = await connection.fetchrow(_CHECK, UUID(self.sale.id), timeout=120)
        if row is None or set(row.values()) != {count}:
            raise RuntimeError(f"{self.sale.slug}: {dict(row or {})}, expected {count} of each")


async def _found(parts: Parts, sale_id: str) -> Sale:
    sale = await parts.catalog.sale(sale_id)
    if sale is None:
        raise RuntimeError("the sale is not there")
    return sale
