"""A sale on real parts, with the steps of buyers and workers as short calls.

One database a test process, migrated once; each test has a sale of its own in it. The steps of
workers (settle, sweep, reconcile) look at the whole database, so tests assert on their own orders.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg

from fairdrop.app import Parts, open_parts
from fairdrop.catalog import CreateOutcome, NewSale, NewVariant, Sale
from fairdrop.checkout import Order, OrderState, PayRefusal, StartRefusal
from fairdrop.drivers.keys import sale_key
from fairdrop.embedded import BackgroundServices
from fairdrop.ids import new_id
from fairdrop.inventory import Reservation, ReserveRequest, VariantFigures
from fairdrop.payments import GatewayEvent
from fairdrop.schema.migrate import migrate
from fairdrop.settings import Settings
from fairdrop.waiting_room import State, new_signing_key
from tests.integration.checkout.scripted_gateway import ScriptedGateway

_SIGNING_KEY = new_signing_key()
_databases: dict[str, str] = {}

Row = asyncpg.Record
Entry = tuple[str, str, str, int, int]
"""(kind, account, currency, debit, credit)"""


def as_superuser(database_url: str) -> str:
    """The address of the same server for its superuser, as the embedded cluster has it."""
    return database_url.replace(
        "postgresql://fairdrop@/fairdrop?", "postgresql://postgres@/postgres?"
    )


async def new_database(database_url: str, name: str) -> str:
    """An empty database beside the one given, owned by the same role."""
    connection = await asyncpg.connect(as_superuser(database_url))
    try:
        await connection.execute(f'CREATE DATABASE "{name}" OWNER fairdrop STRATEGY file_copy')
    finally:
        await connection.close()
    return database_url.replace("/fairdrop?", f"/{name}?")


async def checkout_database(services: BackgroundServices) -> str:
    """The migrated database that this process's checkout tests share."""
    if services.database_url not in _databases:
        url = await new_database(services.database_url, f"checkout_{new_id()}")
        await migrate(url)
        _databases[services.database_url] = url
    return _databases[services.database_url]


@asynccontextmanager
async def shop_parts(
    store_url: str, database_url: str, gateway: ScriptedGateway | None = None, **settings: Any
) -> AsyncIterator[Parts]:
    """One process's parts. Patient ones: a busy machine fails no test."""
    chosen = Settings(
        **{
            "store_url": store_url,
            "database_url": database_url,
            "visitor_key": "v" * 40,
            "signing_keys": _SIGNING_KEY,
            "store_timeout_ms": 30_000,
            "payment_check_after_ms": 1,
            **settings,
        }
    )
    async with open_parts(chosen) as parts:
        if gateway is not None:
            parts.gateways[gateway.name] = gateway
        yield parts


@dataclass
class Shop:
    """One sale, its gateway, and the parts of one process."""

    parts: Parts
    gateway: ScriptedGateway
    sale: Sale
    buyers: int = 0
    admissions: dict[str, str] = field(default_factory=dict)

    # ------------------------------------------------------------ the buyer's steps

    async def admit(self, buyer: str | None = None) -> str:
        """A buyer inside the sale; without a name, somebody new."""
        self.buyers += 1
        buyer = buyer or f"buyer-{self.buyers}"
        room = self.parts.waiting_room
        async with asyncio.timeout(60):
            while True:
                await room.join(self.sale.ref, buyer)
                await room.tick(self.sale.ref)
                place, _ = await room.claim(self.sale.ref, buyer)
                if place.state is State.ADMITTED:
                    self.admissions[buyer] = place.admission
                    return buyer

    async def try_reserve(self, buyer: str, *quantities: int, hold: str = "") -> Reservation:
        """Ask for so many units of each variant, under the buyer's present admission."""
        lines: list[str | int] = []
        for variant, quantity in zip(self.sale.variants, quantities, strict=False):
            if quantity:
                lines += [variant.id, quantity]
        request = ReserveRequest(
            buyer, self.admissions[buyer], hold or new_id(), new_id(), "body", lines
        )
        return await self.parts.inventory.reserve(self.sale.ref, request)

    async def reserve(self, buyer: str, *quantities: int) -> str:
        """The hold's id."""
        answer = await self.try_reserve(buyer, *(quantities or (1,)))
        assert isinstance(answer.hold, str), answer
        return answer.hold

    async def start(self, buyer: str, hold: str) -> Order | StartRefusal:
        return await self.parts.checkout.start(self.sale, hold, buyer, email="buyer@example.org")

    async def order(self, *quantities: int, buyer: str | None = None) -> Order:
        """An order RESERVED, of somebody new unless named."""
        buyer = await self.admit(buyer)
        return await self.order_of(buyer, await self.reserve(buyer, *quantities))

    async def order_of(self, buyer: str, hold: str) -> Order:
        """The order that the hold becomes."""
        order = await self.start(buyer, hold)
        assert isinstance(order, Order), order
        return order

    async def pending(self, *quantities: int, buyer: str | None = None) -> Order:
        """An order whose buyer was sent to the gateway."""
        order = await self.pay(await self.order(*quantities, buyer=buyer))
        assert isinstance(order, Order), order
        return order

    async def paid(self, *quantities: int) -> Order:
        """A confirmed order."""
        order = await self.pending(*quantities)
        await self.deliver(self.gateway.take_money(order.id))
        async with asyncio.timeout(30):
            # Whoever settles beside us may have the event: then the answer comes a moment later.
            while (await self.now(order)).state is not OrderState.CONFIRMED:
                await self.settle()
        return await self.now(order, OrderState.CONFIRMED)

    async def pay(self, order: Order) -> Order | PayRefusal:
        return await self.parts.checkout.pay(order.id, order.buyer)

    async def cancel(self, order: Order) -> Order | PayRefusal:
        return await self.parts.checkout.cancel(self.sale.ref, order.id, order.buyer)

    # ------------------------------------------------------------ the world's steps

    async def deliver(self, *events: GatewayEvent) -> None:
        """What the gateway tells reaches the inbox."""
        for event in events:
            await self.parts.inbox.store(self.gateway.name, event)

    async def settle(self) -> None:
        """Until nothing is due."""
        while await self.parts.settlement.settle():
            pass

    async def let_deadline_pass(self, order: str, *, store: bool = True) -> None:
        """Time goes by for this order alone, without any sweep."""
        await self.execute(
            "UPDATE orders SET deadline = now() - interval '1 second' WHERE id = $1", UUID(order)
        )
        await self.execute(
            "UPDATE order_timers SET at = now() - interval '1 second'"
            " WHERE order_id = $1 AND kind = 'DEADLINE'",
            UUID(order),
        )
        if store:
            await self.make_due_in_store(order)

    async def make_due_in_store(self, hold: str) -> None:
        key = sale_key(self.sale.id, self.sale.epoch, "due")
        await self.parts.store.redis.zadd(key, {hold: 1}, xx=True)

    async def expire(self, order: Order) -> None:
        """The order's deadline passes, and the sweeper finds it."""
        await self.let_deadline_pass(order.id)
        await self.sweep_orders()
        await self.now(order, OrderState.EXPIRED)

    async def sweep_orders(self) -> int:
        return await self.parts.sweeper.sweep_orders({self.sale.id: self.sale.epoch})

    async def sweep(self) -> None:
        """The whole sweep, as the worker does it."""
        await self.sweep_orders()
        await self.parts.sweeper.sweep_store(self.sale)

    async def make_inbox_due(self) -> None:
        """However long this sale's events were put off, and orders left to somebody who died."""
        await self.execute(
            "UPDATE webhook_due SET due_at = now() WHERE id IN"
            " (SELECT id FROM webhook_inbox WHERE gateway = $1)",
            self.gateway.name,
        )
        await self.execute(
            "UPDATE orders SET late_until = NULL WHERE sale_id = $1 AND late_until IS NOT NULL",
            UUID(self.sale.id),
        )

    async def make_payment_checks_due(self) -> None:
        await self.execute(
            "UPDATE order_timers SET at = now() - interval '1 second' FROM orders o"
            " WHERE o.id = order_id AND o.sale_id = $1 AND kind = 'PAYMENT'",
            UUID(self.sale.id),
        )

    async def check_payments_now(self) -> None:
        """Ask the gateway about this sale's payments, however long they are put off."""
        await self.make_payment_checks_due()
        while await self.parts.reconciler.check_payments() == BATCH:
            pass

    async def pay_refunds_now(self) -> None:
        await self.execute(
            "UPDATE refunds SET next_try_at = now() - interval '1 second' FROM orders o"
            " WHERE o.id = order_id AND o.sale_id = $1 AND refunds.state = 'PENDING'",
            UUID(self.sale.id),
        )
        while await self.parts.reconciler.pay_refunds() == BATCH:
            pass

    # ------------------------------------------------------------ looking

    async def now(self, order: Order, state: OrderState | None = None) -> Order:
        """The order as it stands, in the state expected."""
        found = await self.parts.checkout.order(order.id, order.buyer)
        assert found is not None
        assert state is None or found.state is state, (found.state, state)
        return found

    async def stock(self, variant: int = 0) -> tuple[int, int, int]:
        """(free, held, sold) in the store; they always add up to the quantity."""
        figures = await self.parts.inventory.figures(
            self.sale.ref, [variant.id for variant in self.sale.variants]
        )
        found: VariantFigures = figures.variants[variant]
        assert found.free + found.held + found.sold == found.quantity
        assert min(found.free, found.held, found.sold) >= 0
        return found.free, found.held, found.sold

    async def units(self, order: Order | None = None) -> list[tuple[str, int]]:
        """(state, serial) of the unit rows of one order, or of the sale."""
        rows = await self.fetch(
            "SELECT u.state, u.serial FROM units u JOIN variants v ON v.id = u.variant_id"
            " WHERE v.sale_id = $1 AND ($2::uuid IS NULL OR u.order_id = $2)"
            " ORDER BY v.position, u.serial",
            UUID(self.sale.id),
            UUID(order.id) if order else None,
        )
        return [(row["state"], row["serial"]) for row in rows]

    async def entries(self, order: Order | None = None) -> list[Entry]:
        """The ledger rows of one order, or of the sale, sorted."""
        rows = await self.fetch(
            "SELECT kind, account, currency, debit_minor, credit_minor FROM ledger_entries"
            " WHERE sale_id = $1 AND ($2::uuid IS NULL OR order_id = $2)",
            UUID(self.sale.id),
            UUID(order.id) if order else None,
        )
        return sorted(tuple(row) for row in rows)

    async def steps(self, order: Order) -> list[tuple[str | None, str, str]]:
        """The audit rows: (from, to, cause), in order."""
        rows = await self.fetch(
            "SELECT from_state, to_state, cause FROM order_transitions WHERE order_id = $1"
            " ORDER BY at",
            UUID(order.id),
        )
        return [(row["from_state"], row["to_state"], row["cause"]) for row in rows]

    async def events(self, order: Order) -> list[str]:
        """The kinds of the outbox rows of an order, in order."""
        rows = await self.fetch(
            "SELECT type FROM outbox WHERE aggregateid = $1 ORDER BY seq", order.id
        )
        return [row["type"] for row in rows]

    async def refunds(self, order: Order) -> list[tuple[str, int, str, str]]:
        """(state, amount, currency, reason)"""
        rows = await self.fetch(
            "SELECT state, amount_minor, currency, reason FROM refunds WHERE order_id = $1"
            " ORDER BY id",
            UUID(order.id),
        )
        return [tuple(row) for row in rows]

    async def inbox_of(self, order_id: str) -> list[Row]:
        return await self.fetch(
            "SELECT w.*, d.id IS NULL AS settled, d.attempts FROM webhook_inbox w"
            " LEFT JOIN webhook_due d ON d.id = w.id WHERE w.order_id = $1 ORDER BY w.id",
            UUID(order_id),
        )

    async def payment(self, order: Order) -> Row:
        rows = await self.fetch("SELECT * FROM payments WHERE order_id = $1", UUID(order.id))
        assert len(rows) == 1
        return rows[0]

    async def holds(self) -> list[str]:
        """The holds that the store has."""
        key = sale_key(self.sale.id, self.sale.epoch, "holds")
        raw = await self.parts.store.redis.hkeys(key)
        return [str(name, "ascii") if isinstance(name, bytes) else name for name in raw]

    async def inside(self) -> int:
        return (await self.parts.inventory.figures(self.sale.ref, [])).active

    async def timers(self, order: Order) -> list[str]:
        """What still happens to the order by itself."""
        rows = await self.fetch(
            "SELECT kind FROM order_timers WHERE order_id = $1 ORDER BY kind", UUID(order.id)
        )
        return [row["kind"] for row in rows]

    async def execute(self, sql: str, *arguments: Any) -> None:
        async with self.parts.database.connection() as connection:
            await connection.execute(sql, *arguments)

    async def fetch(self, sql: str, *arguments: Any) -> list[Row]:
        async with self.parts.database.connection() as connection:
            return list(await connection.fetch(sql, *arguments))


BATCH = 50
"""Payments and refunds that the reconciler looks at in one go."""


async def open_sale(
    parts: Parts, *stock: int, prices: Sequence[int] = (4_500, 8_000, 100), **changes: Any
) -> Sale:
    """A sale of its own, loaded and open; ``stock`` has a number a variant."""
    new = NewSale(
        **{
            "slug": f"s-{new_id()[9:]}",
            "name": "A sale",
            "opens_at": datetime.now(UTC) - timedelta(minutes=1),
            "currency": "EUR",
            "variants": tuple(
                NewVariant("Ticket", f"Category {index}", price, units)
                for index, (price, units) in enumerate(zip(prices, stock, strict=False))
            ),
            "rate_per_s": 10_000.0,
            "cap": 10_000,
            **changes,
        }
    )
    outcome, sale_id = await parts.catalog.create(new, "test")
    assert outcome is CreateOutcome.CREATED
    found = await parts.catalog.sale(sale_id)
    assert found is not None
    sale = await parts.loader.keep_loaded(found)
    while (await parts.waiting_room.tick(sale.ref)).mode != "open":
        pass
    return sale


async def new_shop(parts: Parts, gateway: ScriptedGateway, *stock: int, **changes: Any) -> Shop:
    changes.setdefault("gateway", gateway.name)
    return Shop(parts, gateway, await open_sale(parts, *(stock or (5,)), **changes))


def same_sale(shop: Shop, parts: Parts) -> Shop:
    """The same sale as another process sees it."""
    return Shop(parts, shop.gateway, shop.sale, admissions=shop.admissions)
