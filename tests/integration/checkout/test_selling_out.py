"""The line stops when all is sold and goes on when units come back, and the world hears it once (W16)."""

from __future__ import annotations

import asyncio

from fairdrop.app import Parts
from fairdrop.worker import Worker
from tests.integration.checkout.conftest import NewShop
from tests.integration.checkout.shop import Shop, same_sale


async def ticked(*shops: Shop) -> None:
    """A tick in each process, all at once, with the sale as it was read last."""

    async def tick(shop: Shop) -> None:
        (sale,) = [sale for sale in await shop.parts.catalog.running() if sale.id == shop.sale.id]
        await Worker(shop.parts)._tick_sale(await shop.parts.loader.keep_loaded(sale))

    await asyncio.gather(*(tick(shop) for shop in shops for _ in range(3)))


async def told(shop: Shop) -> list[str]:
    rows = await shop.fetch(
        "SELECT type FROM outbox WHERE aggregatetype = 'sale' AND aggregateid = $1 ORDER BY seq",
        shop.sale.id,
    )
    return [row["type"] for row in rows]


async def test_the_end_and_the_return_of_the_stock_are_told_once_by_any_number_of_workers(
    sell: NewShop, other_parts: Parts
) -> None:
    shop = await sell(2)
    other = same_sale(shop, other_parts)
    order = await shop.pending(2)
    await ticked(shop, other)
    assert await told(shop) == []  # held is not sold: it may come back
    await shop.deliver(shop.gateway.take_money(order.id))
    await shop.settle()
    await ticked(shop, other)
    await ticked(shop, other)
    assert await told(shop) == ["line.sold_out"]
    await shop.parts.stock.change(shop.sale, shop.sale.variants[0].id, 1, "test")
    await ticked(shop, other)
    await ticked(shop, other)
    assert await told(shop) == ["line.sold_out", "line.resumed"]


async def test_whoever_waits_keeps_the_order_of_the_line_over_the_end_and_the_return(
    sell: NewShop,
) -> None:
    shop = await sell(1, line_cap_factor=0)
    order = await shop.pending(1)
    await shop.deliver(shop.gateway.take_money(order.id))
    await shop.settle()
    await ticked(shop)
    room, waiting = shop.parts.waiting_room, [f"waits-{number}" for number in range(5)]
    for visitor in waiting:
        await room.join(shop.sale.ref, visitor)
    await ticked(shop)
    places = [(await room.status(shop.sale.ref, visitor)).place for visitor in waiting]
    assert [place.state.value for place in places] == ["WAITING"] * 5
    assert [place.rank for place in places] == list(range(5))
    await shop.parts.stock.change(shop.sale, shop.sale.variants[0].id, 9, "test")
    await ticked(shop)
    states = [(await room.status(shop.sale.ref, visitor)).place.state.value for visitor in waiting]
    assert states == ["READY"] * 5
