"""A store that lost a sale gets it back from the database, in a new epoch (H8, W14)."""

from __future__ import annotations

import asyncio

import pytest

from fairdrop.app import Parts
from fairdrop.checkout import OrderState, loading
from fairdrop.drivers.sale_scripts import SaleNotLoaded
from fairdrop.inventory import HoldLoad
from tests.integration.checkout.conftest import NewShop
from tests.integration.checkout.shop import Shop, same_sale


async def lose_the_sale(shop: Shop) -> None:
    redis = shop.parts.store.redis
    keys = [key async for key in redis.scan_iter(match=f"fd:{{{shop.sale.id}}}:*", count=1_000)]
    await redis.delete(*keys)


async def rebuild(shop: Shop) -> None:
    shop.parts.catalog.forget(shop.sale.id)
    sale = await shop.parts.catalog.sale(shop.sale.id)
    assert sale is not None
    shop.sale = await shop.parts.loader.keep_loaded(sale)


async def test_a_lost_sale_comes_back_with_what_is_sold_held_and_free(sell: NewShop) -> None:
    shop = await sell(9, buyer_limit=2)
    sold = await shop.paid(2)  # 1, 2
    ended = await shop.order(1)  # 3
    pending = await shop.pending(2)  # 4, 5
    await shop.cancel(ended)
    await shop.reserve(await shop.admit(), 2)  # without an order: the store alone knew of it
    assert await shop.stock() == (3, 4, 2)
    await lose_the_sale(shop)
    with pytest.raises(SaleNotLoaded):  # W14: meanwhile nothing is sold
        await shop.stock()
    epoch = shop.sale.epoch
    await rebuild(shop)
    assert shop.sale.epoch == epoch + 1
    assert await shop.stock() == (5, 2, 2)
    assert await shop.holds() == [pending.id]
    await shop.deliver(shop.gateway.take_money(pending.id))
    await shop.settle()
    assert await shop.stock() == (5, 0, 4)
    # The limit of the sale counts what was bought before.
    buyer = await shop.admit(sold.buyer)
    assert (await shop.try_reserve(buyer, 1)).outcome == "BUYER_LIMIT"
    rest = [await shop.order(2), await shop.order(2), await shop.order(1)]
    serials = [serial for order in rest for serial in order.lines[0].serials]
    assert sorted(serials) == [3, 6, 7, 8, 9]


async def test_an_order_that_expires_after_the_rebuild_gives_its_units_back(shop: Shop) -> None:
    order = await shop.pending(2)
    await lose_the_sale(shop)
    await rebuild(shop)
    assert await shop.stock() == (3, 2, 0)
    await shop.expire(order)
    assert await shop.stock() == (5, 0, 0)


async def test_ten_rebuilds_at_once_fill_the_store_once(shop: Shop, other_parts: Parts) -> None:
    await shop.paid(1)
    await lose_the_sale(shop)
    other = same_sale(shop, other_parts)
    epoch = shop.sale.epoch
    await asyncio.gather(*(rebuild(one) for one in (shop, other) * 2))
    await rebuild(shop)
    assert shop.sale.epoch == epoch + 1
    assert await shop.stock() == (4, 0, 1)


async def test_a_rebuild_sees_one_moment_although_orders_are_confirmed_meanwhile(
    shop: Shop, other_parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between reading the units and reading the orders, a payment settles."""
    order = await shop.pending(2)
    await shop.deliver(shop.gateway.take_money(order.id))
    await lose_the_sale(shop)
    other = same_sale(shop, other_parts)
    read = loading._orders_of

    async def settle_between(connection: object, sale: object) -> object:
        class Slow:
            async def fetch(self, sql: str, *arguments: object) -> object:
                if "FROM orders" in sql and "units" not in sql:
                    await other.settle()
                return await connection.fetch(sql, *arguments)  # type: ignore[attr-defined]

        return await read(Slow(), sale)  # type: ignore[arg-type]

    monkeypatch.setattr(loading, "_orders_of", settle_between)
    await rebuild(shop)
    monkeypatch.undo()
    await shop.now(order, OrderState.CONFIRMED)
    free, held, _ = await shop.stock()
    assert free == 3  # two are held or sold, whichever moment it was; never free
    if held:
        await shop.make_due_in_store(order.id)
        await shop.sweep()
    assert await shop.stock() == (3, 0, 2)


async def test_a_process_that_dies_while_it_fills_the_store_is_followed_by_another_epoch(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shop.order(2)
    await lose_the_sale(shop)
    epoch = shop.sale.epoch

    async def die(*_: object, **__: object) -> HoldLoad:
        raise ConnectionResetError("dead")

    monkeypatch.setattr(shop.parts.inventory, "load", die)
    with pytest.raises(Exception, match="dead"):
        await rebuild(shop)
    monkeypatch.undo()
    await rebuild(shop)
    assert shop.sale.epoch == epoch + 2
    assert await shop.stock() == (3, 2, 0)


async def test_stock_that_is_added_reaches_a_sale_that_is_loaded(shop: Shop) -> None:
    await shop.paid(2)
    await shop.parts.stock.change(shop.sale, shop.sale.variants[0].id, 3, "test")
    await rebuild(shop)
    await rebuild(shop)
    assert await shop.stock() == (6, 0, 2)
    await lose_the_sale(shop)
    await rebuild(shop)
    assert await shop.stock() == (6, 0, 2)
