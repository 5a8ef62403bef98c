"""From a hold to an order: once, and the order's row decides from then on (O1, W13, H7)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from fairdrop.app import Parts
from fairdrop.checkout import Order, OrderState, StartRefusal, records
from fairdrop.checkout.model import Inserted, NewOrder
from fairdrop.drivers.database import Database
from fairdrop.ids import new_id
from tests.integration.checkout.conftest import NewShop
from tests.integration.checkout.shop import Shop, same_sale


async def test_an_order_has_the_units_that_were_held_and_the_price_that_was_shown(
    sell: NewShop,
) -> None:
    shop = await sell(5, 4, fee_bps=1_000)
    buyer = await shop.admit()
    held = await shop.try_reserve(buyer, 2, 1)
    order = await shop.start(buyer, str(held.hold))
    assert isinstance(order, Order)
    assert order.state is OrderState.RESERVED
    assert order.id == held.hold
    assert [(line.variant, line.serials, line.price_minor) for line in order.lines] == [
        (shop.sale.variants[0].id, [1, 2], 4_500),
        (shop.sale.variants[1].id, [1], 8_000),
    ]
    assert (order.subtotal_minor, order.fee_minor, order.total_minor) == (17_000, 1_700, 18_700)
    assert order.deadline.timestamp() * 1_000 == held.deadline_ms
    assert order.payment is None
    assert await shop.units(order) == [("HELD", 1), ("HELD", 2), ("HELD", 1)]
    assert await shop.stock() == (3, 2, 0)
    assert await shop.steps(order) == [(None, "RESERVED", "start")]
    assert await shop.events(order) == ["order.reserved"]
    assert await shop.entries(order) == []


async def test_the_whole_way_from_a_reservation_to_a_confirmed_order(shop: Shop) -> None:
    order = await shop.order(2)
    pending = await shop.pay(order)
    assert isinstance(pending, Order)
    assert pending.state is OrderState.PAYMENT_PENDING
    assert pending.payment is not None
    assert pending.payment.url == shop.gateway.intent_of(order.id).pay_url
    assert (pending.deadline - order.deadline).total_seconds() == 300  # H4: extended once
    await shop.deliver(shop.gateway.take_money(order.id))
    await shop.settle()
    confirmed = await shop.now(order, OrderState.CONFIRMED)
    assert confirmed.lines == order.lines
    assert confirmed.payment is not None
    assert confirmed.payment.state == "SUCCEEDED"
    assert await shop.units(order) == [("SOLD", 1), ("SOLD", 2)]
    assert await shop.stock() == (3, 0, 2)
    assert await shop.entries(order) == [
        ("PAYMENT", "FEES", "EUR", 0, 900),
        ("PAYMENT", "GATEWAY_CLEARING", "EUR", 9_900, 0),
        ("PAYMENT", "SALES", "EUR", 0, 9_000),
    ]
    assert await shop.steps(order) == [
        (None, "RESERVED", "start"),
        ("RESERVED", "PAYMENT_PENDING", "pay"),
        ("PAYMENT_PENDING", "CONFIRMED", "paid"),
    ]
    assert await shop.events(order) == ["order.reserved", "order.confirmed"]
    assert await shop.inside() == 0  # W13: the admission is used up, the place is free
    assert await shop.holds() == []


async def test_starting_again_gives_the_same_order_at_every_stage(shop: Shop) -> None:
    order = await shop.order()
    assert await shop.start(order.buyer, order.id) == order
    pending = await shop.pay(order)
    assert await shop.start(order.buyer, order.id) == pending
    await shop.deliver(shop.gateway.take_money(order.id))
    await shop.settle()
    confirmed = await shop.now(order, OrderState.CONFIRMED)
    assert await shop.start(order.buyer, order.id) == confirmed
    assert len(await shop.steps(order)) == 3


async def test_two_starts_at_once_make_one_order(shop: Shop, other_parts: Parts) -> None:
    other = same_sale(shop, other_parts)
    buyer = await shop.admit()
    hold = await shop.reserve(buyer, 2)
    # Two of one process share a batch; the other process has a transaction of its own.
    answers = await asyncio.gather(
        *(one.start(buyer, hold) for one in (shop, other, shop, other, shop))
    )
    assert isinstance(answers[0], Order)
    assert all(answer == answers[0] for answer in answers)
    assert await shop.units() == [("HELD", 1), ("HELD", 2)]
    assert await shop.steps(answers[0]) == [(None, "RESERVED", "start")]
    assert await shop.events(answers[0]) == ["order.reserved"]


@pytest.mark.parametrize("stock", [1, 2])
async def test_two_fresh_buyers_at_the_same_instant_make_as_many_orders_as_there_are_units(
    sell: NewShop, other_parts: Parts, stock: int
) -> None:
    """Case 11, from the reservation to the order, in two processes; with two units both get one."""
    shop = await sell(stock)
    buyers = [await shop.admit(), await shop.admit()]
    other = same_sale(shop, other_parts)

    async def buy(one: Shop, buyer: str) -> Order | None:
        answer = await one.try_reserve(buyer, 1)
        if not isinstance(answer.hold, str):
            assert answer.outcome == "SOLD_OUT"
            return None
        return await one.order_of(buyer, answer.hold)

    made = await asyncio.gather(buy(shop, buyers[0]), buy(other, buyers[1]))
    orders = [order for order in made if order is not None]
    assert len(orders) == stock
    assert await shop.units() == [("HELD", serial) for serial in range(1, stock + 1)]
    rows = await shop.fetch("SELECT 1 FROM orders WHERE sale_id = $1::text::uuid", shop.sale.id)
    assert len(rows) == stock


async def test_a_started_order_is_told_without_reading_it_as_it_would_be_read(
    sell: NewShop,
) -> None:
    shop = await sell(5, 4)
    buyer = await shop.admit()
    hold = await shop.reserve(buyer, 2, 1)
    looked = shop.parts.checkout._look.items
    order = await shop.order_of(buyer, hold)
    assert shop.parts.checkout._look.items == looked
    assert await shop.parts.checkout.order(order.id, buyer) == order


async def test_twenty_double_clicks_in_one_batch_are_written_in_one_transaction(
    sell: NewShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them written alone after the other made everybody in the batch wait for 40 commits."""
    shop = await sell(20)
    buyers = [await shop.admit() for _ in range(20)]
    holds = [await shop.reserve(buyer) for buyer in buyers]
    insert, written = records.insert_orders, 0

    async def counted(database: Database, orders: Sequence[NewOrder]) -> list[Inserted]:
        nonlocal written
        written += 1
        return await insert(database, orders)

    monkeypatch.setattr(records, "insert_orders", counted)
    pairs = await asyncio.gather(
        *(
            asyncio.gather(shop.order_of(buyer, hold), shop.order_of(buyer, hold))
            for buyer, hold in zip(buyers, holds, strict=True)
        )
    )
    assert 1 <= written <= 2
    assert all(one.id == other.id for one, other in pairs)
    assert len({one.id for one, _ in pairs}) == 20
    assert await shop.stock() == (0, 20, 0)


async def test_a_hold_of_somebody_else_starts_nothing(shop: Shop) -> None:
    buyer, thief = await shop.admit(), await shop.admit()
    hold = await shop.reserve(buyer)
    assert await shop.start(thief, hold) is StartRefusal.NO_RESERVATION
    assert await shop.start(buyer, new_id()) is StartRefusal.NO_RESERVATION
    assert await shop.start(buyer, "not-an-id") is StartRefusal.NO_RESERVATION
    assert await shop.stock() == (4, 1, 0)
    order = await shop.start(buyer, hold)
    assert isinstance(order, Order)
    assert await shop.parts.checkout.order(order.id, thief) is None


async def test_a_hold_whose_time_is_over_starts_nothing_although_no_sweep_has_run(
    sell: NewShop,
) -> None:
    shop = await sell(5, hold_ttl_ms=1)
    buyer = await shop.admit()
    held = await shop.try_reserve(buyer, 1)
    while True:
        seconds, microseconds = await shop.parts.store.redis.time()
        if seconds * 1_000 + microseconds // 1_000 > held.deadline_ms:
            break
    assert await shop.start(buyer, str(held.hold)) is StartRefusal.RESERVATION_EXPIRED
    await shop.sweep()
    assert await shop.start(buyer, str(held.hold)) is StartRefusal.NO_RESERVATION


async def test_an_expired_order_is_shown_as_it_is_when_it_is_started_again(shop: Shop) -> None:
    order = await shop.order()
    await shop.expire(order)
    again = await shop.start(order.buyer, order.id)
    assert isinstance(again, Order)
    assert again.state is OrderState.EXPIRED


# ---------------------------------------------------------------- one admission, one order (W13)


async def test_an_admission_with_an_order_under_way_gets_no_second_one(
    shop: Shop, other_parts: Parts
) -> None:
    """Two holds of one admission: the store allows that only after it forgot the first one."""
    buyer = await shop.admit()
    first = await shop.reserve(buyer)
    await forget_the_hold_of(shop, buyer)
    second = await shop.reserve(buyer)
    assert await shop.stock() == (3, 2, 0)
    answers = await asyncio.gather(
        shop.start(buyer, first), same_sale(shop, other_parts).start(buyer, second)
    )
    orders = [answer for answer in answers if isinstance(answer, Order)]
    assert len(orders) == 1
    assert StartRefusal.ALREADY_ORDERED in answers
    assert await shop.units() == [("HELD", serial) for serial in orders[0].lines[0].serials]
    assert await shop.stock() == (4, 1, 0)  # what the refused one held is free again
    assert await shop.holds() == [orders[0].id]


async def test_an_admission_whose_order_was_cancelled_may_order_again(shop: Shop) -> None:
    order = await shop.order()
    await shop.cancel(order)
    again = await shop.start(order.buyer, await shop.reserve(order.buyer, 2))
    assert isinstance(again, Order)
    assert again.state is OrderState.RESERVED
    assert await shop.stock() == (3, 2, 0)


async def test_an_admission_whose_payment_failed_may_order_again_and_is_used_up_by_success(
    sell: NewShop,
) -> None:
    shop = await sell(5, payment_attempts=1)
    order = await shop.pending()
    await shop.deliver(shop.gateway.decline(order.id))
    await shop.settle()
    await shop.now(order, OrderState.PAYMENT_FAILED)
    again = await shop.start(order.buyer, await shop.reserve(order.buyer))
    assert isinstance(again, Order)
    assert isinstance(await shop.pay(again), Order)
    await shop.deliver(shop.gateway.take_money(again.id))
    await shop.settle()
    await shop.now(again, OrderState.CONFIRMED)
    assert (await shop.try_reserve(order.buyer, 1)).outcome == "NOT_ADMITTED"
    assert await shop.inside() == 0


async def forget_the_hold_of(shop: Shop, buyer: str) -> None:
    """The store loses which hold the admission has, as after a fail-over."""
    from fairdrop.drivers.keys import sale_key

    key = sale_key(shop.sale.id, shop.sale.epoch, "admhold")
    await shop.parts.store.redis.hdel(key, buyer)


# ---------------------------------------------------------------- tombstones


async def test_a_hold_that_died_before_its_order_was_written_ends_and_stays_ended(
    shop: Shop,
) -> None:
    """The process died between the store's STARTED and the insert; the buyer comes back late."""
    buyer = await shop.admit()
    hold = await shop.reserve(buyer, 2)
    await shop.parts.inventory.start(shop.sale.ref, hold, buyer)
    await shop.make_due_in_store(hold)
    swept = await shop.parts.sweeper.sweep_store(shop.sale)
    assert swept.resolved == 1
    assert await shop.stock() == (5, 0, 0)
    assert await shop.start(buyer, hold) is StartRefusal.NO_RESERVATION
    rows = await shop.fetch("SELECT state, total_minor FROM orders WHERE id = $1::text::uuid", hold)
    assert [tuple(row) for row in rows] == [("EXPIRED", 0)]


async def test_an_insert_that_comes_after_the_tombstone_is_refused(shop: Shop) -> None:
    """The insert was only slow: between its STARTED and its row the sweep declared the hold over."""
    buyer = await shop.admit()
    hold = await shop.reserve(buyer, 2)
    await shop.parts.inventory.start(shop.sale.ref, hold, buyer)
    async with shop.parts.database.connection() as connection:
        await connection.execute(
            "INSERT INTO orders (id, sale_id, buyer, state, currency, subtotal_minor, fee_minor,"
            " total_minor, deadline) VALUES ($1::text::uuid, $2::text::uuid, $3, 'EXPIRED', 'EUR',"
            " 0, 0, 0, now())",
            hold,
            shop.sale.id,
            buyer,
        )
    assert await shop.start(buyer, hold) is StartRefusal.RESERVATION_EXPIRED
    assert await shop.units() == []
