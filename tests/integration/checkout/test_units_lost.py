"""A store that forgot: the database refuses to sell a unit twice, before money moves (H8)."""

from __future__ import annotations

import asyncio

import pytest

from fairdrop.checkout import Order, OrderState, StartRefusal
from fairdrop.drivers.keys import sale_key
from fairdrop.errors import StoreUnavailable
from tests.integration.checkout.conftest import NewShop
from tests.integration.checkout.shop import Shop


async def forget_the_last_minute(shop: Shop, *buyers: str) -> None:
    """What a fail-over to a stale replica leaves: the stock and the holds of an earlier time."""
    redis, ref = shop.parts.store.redis, shop.sale.ref
    variant = shop.sale.variants[0].id
    await redis.hset(
        sale_key(ref.id, ref.epoch, "stk"),
        mapping={f"{variant}:n": 1, f"{variant}:h": 0, f"{variant}:s": 0},
    )
    for name in ("holds", "due", "admhold", "buyer"):
        await redis.delete(sale_key(ref.id, ref.epoch, name))


async def test_a_second_buyer_of_a_unit_is_told_that_it_is_lost_and_nobody_has_paid(
    sell: NewShop,
) -> None:
    shop = await sell(5)
    first = await shop.pending(2)  # serials 1 and 2
    await forget_the_last_minute(shop)
    second = await shop.admit()
    hold = await shop.reserve(second, 3)  # 1, 2 and 3 as the store sees it
    assert await shop.start(second, hold) is StartRefusal.UNITS_LOST
    assert await shop.start(second, hold) is StartRefusal.NO_RESERVATION
    assert await shop.fetch("SELECT FROM orders WHERE id = $1::text::uuid", hold) == []
    assert await shop.units() == [("HELD", 1), ("HELD", 2)]
    assert shop.gateway.calls["create"] == 1  # the first buyer's
    # The pool has 3 again and knows that 1 and 2 are gone: what is left is 3, 4 and 5.
    assert await shop.stock() == (3, 0, 2)
    again = await shop.start(second, await shop.reserve(second, 3))
    assert isinstance(again, Order)
    assert sorted(again.lines[0].serials) == [3, 4, 5]
    await shop.deliver(shop.gateway.take_money(first.id))
    await shop.settle()
    await shop.now(first, OrderState.CONFIRMED)
    assert (await shop.try_reserve(await shop.admit(), 1)).outcome == "SOLD_OUT"


async def test_orders_beside_the_one_that_lost_its_units_stand(sell: NewShop) -> None:
    """One batch: each order stands or falls alone."""
    shop = await sell(8)
    await shop.order(2)
    await forget_the_last_minute(shop)
    buyers = [await shop.admit() for _ in range(3)]
    holds = [await shop.reserve(buyer, 2) for buyer in buyers]
    answers = await asyncio.gather(
        *(shop.start(buyer, hold) for buyer, hold in zip(buyers, holds, strict=True))
    )
    assert answers[0] is StartRefusal.UNITS_LOST
    assert [
        sorted(order.lines[0].serials) for order in answers[1:] if isinstance(order, Order)
    ] == [
        [3, 4],
        [5, 6],
    ]
    assert len(await shop.units()) == 6
    assert await shop.stock() == (2, 4, 2)


async def test_a_unit_that_is_lost_while_the_store_goes_away_is_refused_again_later(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    await shop.order(1)
    await forget_the_last_minute(shop)
    second = await shop.admit()
    hold = await shop.reserve(second, 1)

    def away(*_: object) -> object:
        raise StoreUnavailable("no connection")

    monkeypatch.setattr(shop.parts.inventory, "free", away)
    with pytest.raises(StoreUnavailable):
        await shop.start(second, hold)
    monkeypatch.undo()
    assert await shop.start(second, hold) is StartRefusal.UNITS_LOST
    assert await shop.stock() == (4, 0, 1)


async def test_a_late_payment_that_meets_units_of_others_takes_other_ones(sell: NewShop) -> None:
    shop = await sell(4)
    late = await shop.pending(1)
    await shop.expire(late)
    holder = await shop.order(2)
    await forget_the_last_minute(shop)
    await shop.parts.store.redis.delete(
        sale_key(shop.sale.id, shop.sale.epoch, "ret") + f":{shop.sale.variants[0].id}"
    )
    await shop.deliver(shop.gateway.take_money(late.id))
    for _ in range(3):
        await shop.settle()
        await shop.make_inbox_due()
    confirmed = await shop.now(late, OrderState.CONFIRMED)
    assert not set(confirmed.lines[0].serials) & set(holder.lines[0].serials)
    assert len(await shop.units()) == 3
    assert await shop.refunds(late) == []
