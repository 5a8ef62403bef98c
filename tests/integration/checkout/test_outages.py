"""Servers that are killed in the middle: no false success, and everything is settled once (O8)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fairdrop.audit import audit
from fairdrop.checkout import Order, OrderState
from fairdrop.errors import DatabaseUnavailable, FairdropError, StoreUnavailable
from tests.integration.checkout.outage import frail_shop


async def test_fifty_settlements_with_a_database_restart_in_the_middle_settle_once_each(
    tmp_path: Path,
) -> None:
    """Case 28: who was told "settled" or "stored" was told the truth."""
    async with frail_shop(tmp_path, 60) as frail:
        shop = frail.shop
        buyers = [await shop.admit() for _ in range(50)]
        holds = await asyncio.gather(*(shop.reserve(buyer) for buyer in buyers))
        orders = await asyncio.gather(
            *(shop.order_of(buyer, hold) for buyer, hold in zip(buyers, holds, strict=True))
        )
        await asyncio.gather(*(shop.pay(order) for order in orders))
        stored: set[str] = set()
        settled = 0
        refused = 0

        async def deliver(order: Order) -> None:
            """As the gateway does: until it is told 2xx."""
            nonlocal refused
            event = shop.gateway.take_money(order.id)
            async with asyncio.timeout(60):
                while order.id not in stored:
                    try:
                        await shop.deliver(event)
                        stored.add(order.id)
                    except DatabaseUnavailable:
                        refused += 1
                        await asyncio.sleep(0.02)

        async def settle() -> None:
            nonlocal settled, refused
            async with asyncio.timeout(60):
                while settled < 50 or len(stored) < 50:
                    try:
                        settled += await shop.parts.settlement.settle(3)
                    except DatabaseUnavailable:
                        refused += 1
                    await asyncio.sleep(0)
                    if len(stored) == 50 and not await due():
                        return

        async def due() -> int:
            try:
                rows = await shop.fetch("SELECT count(*) FROM webhook_due")
            except DatabaseUnavailable:
                return 1
            return int(rows[0]["count"])

        async def kill_in_the_middle() -> None:
            while settled < 15:
                await asyncio.sleep(0)
            frail.kill("postgres")

        await asyncio.gather(
            *(deliver(order) for order in orders), settle(), settle(), kill_in_the_middle()
        )
        assert frail.services.supervisor.restarts("postgres") == 1
        assert refused > 0  # the restart was felt
        for order in orders:
            await shop.now(order, OrderState.CONFIRMED)
        entries = await shop.entries()
        assert len(entries) == 150
        assert sum(entry[3] for entry in entries) == sum(entry[4] for entry in entries)
        assert len(await shop.units()) == 50
        for order in orders:
            await shop.make_due_in_store(order.id)  # of commits whose answer was lost
        await shop.sweep()
        assert await shop.stock() == (10, 0, 50)
        assert await audit(shop.parts) == []


async def test_a_database_that_is_away_is_told_as_such_and_nothing_happens_twice(
    tmp_path: Path,
) -> None:
    """Every step of a buyer, with the database killed under it, and once more when it is back."""
    async with frail_shop(tmp_path, 5) as frail:
        shop = frail.shop
        buyer = await shop.admit()
        hold = await shop.reserve(buyer, 2)
        frail.kill("postgres")
        order = await insist(lambda: shop.order_of(buyer, hold))
        assert isinstance(order, Order)
        await frail.until_ready("postgres", 1)
        frail.kill("postgres")
        assert isinstance(await insist(lambda: shop.pay(order)), Order)
        await frail.until_ready("postgres", 2)
        assert len(shop.gateway.intents) == 1
        frail.kill("postgres")
        await insist(lambda: shop.deliver(shop.gateway.take_money(order.id)))
        await insist(shop.settle)
        await shop.now(order, OrderState.CONFIRMED)
        assert len(await shop.entries(order)) == 3
        assert await shop.stock() == (3, 0, 2)
        assert await audit(shop.parts) == []


async def insist(call: object) -> object:
    """Call again while a part is away, as browsers and gateways do."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await call()  # type: ignore[operator]
            except FairdropError:
                await asyncio.sleep(0.02)


async def test_a_store_that_dies_after_the_commit_hears_of_it_from_the_sweep(
    tmp_path: Path,
) -> None:
    async with frail_shop(tmp_path, 5, store_timeout_ms=200) as frail:
        shop = frail.shop
        confirmed, expired = await shop.pending(2), await shop.pending(1)
        await shop.deliver(shop.gateway.take_money(confirmed.id))
        await shop.let_deadline_pass(expired.id)
        async with frail.frozen("valkey"):
            await shop.settle()
            await shop.sweep_orders()
            await shop.now(confirmed, OrderState.CONFIRMED)
            await shop.now(expired, OrderState.EXPIRED)
            with pytest.raises(StoreUnavailable):
                await shop.stock()
        frail.kill("valkey")
        await frail.until_ready("valkey", 1)
        assert await insist(shop.stock) == (2, 3, 0)
        await shop.make_due_in_store(confirmed.id)
        await shop.sweep()
        assert await shop.stock() == (3, 0, 2)
        assert await shop.holds() == []
        assert await shop.inside() == 1
        assert await audit(shop.parts) == []
