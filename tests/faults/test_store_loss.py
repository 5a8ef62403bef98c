"""A store that loses what it has promised: no unit is sold twice, and nobody pays for another's (H8)."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from fairdrop.audit import audit
from fairdrop.checkout import Order, OrderState, StartRefusal
from fairdrop.drivers.sale_scripts import SaleNotLoaded
from fairdrop.embedded import BackgroundServices
from fairdrop.errors import StoreUnavailable
from fairdrop.ids import new_id
from fairdrop.inventory import Reservation, ReserveRequest
from fairdrop.schema.migrate import migrate
from tests.faults.replicated import Pair, replicated
from tests.integration.checkout.outage import Frail, frail_shop
from tests.integration.checkout.scripted_gateway import ScriptedGateway
from tests.integration.checkout.shop import Shop, new_database, new_shop, shop_parts
from tests.integration.checkout.test_rebuilding import rebuild

pytestmark = pytest.mark.xdist_group("system")


@asynccontextmanager
async def shop_on(
    pair: Pair, services: BackgroundServices, units: int, **settings: Any
) -> AsyncIterator[Shop]:
    """A sale on the pair, and a database of its own: an audit looks at all of it."""
    gateway = ScriptedGateway()
    database_url = await new_database(services.database_url, f"lost_{new_id()}")
    await migrate(database_url)
    async with shop_parts(pair.door.url, database_url, gateway, **settings) as parts:
        yield await new_shop(parts, gateway, units)


async def sold_serials(shop: Shop) -> list[int]:
    """Serials of the lines of every order that was confirmed, each as often as it was sold."""
    rows = await shop.fetch(
        "SELECT l.serials FROM order_lines l JOIN orders o ON o.id = l.order_id"
        " WHERE o.sale_id = $1 AND o.state = 'CONFIRMED'",
        UUID(shop.sale.id),
    )
    return sorted(serial for row in rows for serial in row["serials"])


async def take_money(shop: Shop, order: Order) -> None:
    await shop.deliver(shop.gateway.take_money(order.id))
    await shop.settle()
    await shop.now(order, OrderState.CONFIRMED)


async def buy_the_rest(shop: Shop) -> int:
    """Everybody who comes buys one unit until none is left; returns how many were refused.

    Nobody is sent to the gateway before the database has said that the unit is theirs.
    """
    refused = 0
    async with asyncio.timeout(60):
        while (await shop.stock())[0] > 0:
            buyer = await shop.admit()
            answer = await shop.try_reserve(buyer, 1)
            before = shop.gateway.calls["create"]
            started = await shop.start(buyer, str(answer.hold))
            if started is StartRefusal.UNITS_LOST:
                refused += 1
                assert shop.gateway.calls["create"] == before
                continue
            assert isinstance(started, Order), started
            paying = await shop.pay(started)
            assert isinstance(paying, Order), paying
            await take_money(shop, paying)
    return refused


async def test_a_failover_that_forgets_acknowledged_holds_sells_no_unit_twice(
    services: BackgroundServices, tmp_path: Path
) -> None:
    async with replicated(tmp_path) as pair, shop_on(pair, services, 8) as shop:
        known = await shop.pending(1)
        await pair.in_step()
        await pair.cut()
        # Acknowledged to their buyers, and nowhere but on the primary.
        forgotten = [await shop.pending(1) for _ in range(2)]
        reserved = await shop.admit()
        hold = await shop.reserve(reserved, 1)
        await take_money(shop, forgotten[0])
        await pair.fail_over()
        assert await shop.holds() == [known.id]
        # Whose reservation is gone is told so before anything is charged.
        assert await shop.start(reserved, hold) is StartRefusal.NO_RESERVATION
        refused = await buy_the_rest(shop)
        assert refused >= 2
        for order in (known, forgotten[1]):
            await take_money(shop, order)
        assert await sold_serials(shop) == list(range(1, 9))
        assert await shop.stock() == (0, 0, 8)
        assert await audit(shop.parts) == []


async def test_without_the_databases_key_the_failover_would_sell_a_unit_twice(
    services: BackgroundServices, tmp_path: Path
) -> None:
    """The negative control: the store alone gives the same unit to a second buyer."""
    async with replicated(tmp_path) as pair, shop_on(pair, services, 3) as shop:
        await pair.in_step()
        await pair.cut()
        first = await shop.order(1)
        await pair.fail_over()
        again = await shop.try_reserve(await shop.admit(), 1)
        assert again.lines[0][1] == first.lines[0].serials


async def reserve_with(shop: Shop, buyer: str, key: str) -> Reservation:
    """A request that can be repeated."""
    lines: list[str | int] = [shop.sale.variants[0].id, 1]
    request = ReserveRequest(buyer, shop.admissions[buyer], new_id(), key, "body", lines)
    return await shop.parts.inventory.reserve(shop.sale.ref, request)


async def test_with_wait_nothing_is_promised_that_a_failover_forgets(
    services: BackgroundServices, tmp_path: Path
) -> None:
    """A replica that does not answer: 503, the effects stand, and the key finds them later."""
    settings = {"store_wait_replicas": 1, "store_wait_timeout_ms": 50}
    async with replicated(tmp_path) as pair, shop_on(pair, services, 5, **settings) as shop:
        buyer, other = await shop.admit(), await shop.admit()
        await pair.cut()
        for _ in range(2):
            # Also the repetition, which finds the work done and writes nothing of its own.
            with pytest.raises(StoreUnavailable, match="0 of 1 replicas"):
                await reserve_with(shop, buyer, "k")
        assert (await shop.stock())[1] == 1
        await pair.link.start()
        await pair.in_step()
        answer = await reserve_with(shop, buyer, "k")
        assert answer.outcome == "REPLAYED"
        await pair.fail_over()
        with pytest.raises(StoreUnavailable, match="0 of 1 replicas"):
            await reserve_with(shop, other, "k")  # nobody follows the new primary yet
        assert str(answer.hold) in await shop.holds()
        assert (await shop.stock())[1] == 2


async def test_the_append_only_file_has_what_is_promised(
    services: BackgroundServices, tmp_path: Path
) -> None:
    settings = {"store_wait_aof": True, "store_wait_timeout_ms": 2_000}
    async with (
        replicated(tmp_path, aof=True) as pair,
        shop_on(pair, services, 5, **settings) as shop,
    ):
        assert (await reserve_with(shop, await shop.admit(), "k")).outcome == "RESERVED"
        buyer = await shop.admit()
        await pair.primary.redis.config_set("appendonly", "no")
        with pytest.raises(StoreUnavailable, match="WAITAOF"):
            await reserve_with(shop, buyer, "k")


async def everybody_finds_their_units(frail: Frail, pending: Order, sold: Order) -> None:
    """After a loss: nothing is sold until the store is filled, and then what was sold stays sold."""
    shop = frail.shop
    with pytest.raises(SaleNotLoaded):  # W14
        await shop.stock()
    epoch = shop.sale.epoch
    await asyncio.gather(*(rebuild(shop) for _ in range(3)))
    assert shop.sale.epoch == epoch + 1
    assert await shop.holds() == [pending.id]
    assert await shop.stock() == (5 - 1 - 1, 1, 1)
    await take_money(shop, pending)
    assert await buy_the_rest(shop) == 0
    assert await sold_serials(shop) == [1, 2, 3, 4, 5]
    await shop.now(sold, OrderState.CONFIRMED)
    assert await audit(shop.parts) == []


@pytest.mark.parametrize("loss", ["flush", "no file"])
async def test_a_store_that_comes_back_empty_is_filled_in_a_new_epoch(
    tmp_path: Path, loss: str
) -> None:
    async with frail_shop(tmp_path, 5) as frail:
        shop = frail.shop
        sold, pending = await shop.paid(1), await shop.pending(1)
        reserved = await shop.admit()
        hold = await shop.reserve(reserved, 1)
        if loss == "flush":
            await shop.parts.store.redis.flushall()
        else:
            shutil.rmtree(tmp_path / "data" / "valkey" / "appendonlydir")
            frail.kill("valkey")
            await frail.until_ready("valkey", 1)
        await everybody_finds_their_units(frail, pending, sold)
        assert await shop.start(reserved, hold) is StartRefusal.NO_RESERVATION
