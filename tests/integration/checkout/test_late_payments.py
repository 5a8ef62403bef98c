"""Money for an order that was given up: new units if there are any, else back (O7, O8, case 16)."""

from __future__ import annotations

import asyncio

import pytest

from fairdrop.app import Parts
from fairdrop.checkout import Order, OrderState
from fairdrop.drivers.keys import sale_key
from fairdrop.errors import StoreUnavailable
from tests.integration.checkout.conftest import NewShop
from tests.integration.checkout.shop import Shop, same_sale
from tests.integration.checkout.silence import store_not_told

RETURNED = [
    ("REFUND_PAID", "GATEWAY_CLEARING", "EUR", 0, 4_950),
    ("REFUND_PAID", "REFUND_LIABILITY", "EUR", 4_950, 0),
    ("UNEARNED", "GATEWAY_CLEARING", "EUR", 4_950, 0),
    ("UNEARNED", "REFUND_LIABILITY", "EUR", 0, 4_950),
]
"""Exactly four rows, and revenue is in none of them (O7)."""


async def test_money_for_an_expired_order_buys_new_units_while_there_are_any(
    sell: NewShop,
) -> None:
    shop = await sell(3)
    late = await shop.pending(2)
    paid = shop.gateway.take_money(late.id)
    await shop.expire(late)
    assert await shop.stock() == (3, 0, 0)
    other = await shop.order(1)  # has serial 1 or 2 of the late order by now, or 3
    await shop.deliver(paid)
    await shop.settle()
    confirmed = await shop.now(late, OrderState.CONFIRMED)
    serials = confirmed.lines[0].serials
    assert set(serials) | set(other.lines[0].serials) == {1, 2, 3}
    assert confirmed.lines[0].quantity == 2
    assert await shop.units(late) == [("SOLD", serial) for serial in sorted(serials)]
    assert await shop.stock() == (0, 1, 2)
    assert await shop.holds() == [other.id]
    assert await shop.steps(late) == [
        (None, "RESERVED", "start"),
        ("RESERVED", "PAYMENT_PENDING", "pay"),
        ("PAYMENT_PENDING", "EXPIRED", "deadline"),
        ("EXPIRED", "CONFIRMED", "paid_late"),
    ]
    assert [entry[0] for entry in await shop.entries(late)] == ["PAYMENT"] * 3
    assert await shop.refunds(late) == []


async def test_money_for_an_expired_order_goes_back_when_nothing_is_left(sell: NewShop) -> None:
    """Case 16: one refund, four rows, and replays change nothing."""
    shop = await sell(1)
    late = await shop.pending()
    paid = shop.gateway.take_money(late.id)
    await shop.expire(late)
    winner = await shop.paid()
    revenue = await shop.entries(winner)
    await shop.deliver(paid)
    await shop.settle()
    await shop.now(late, OrderState.REFUND_PENDING)
    assert await shop.entries(late) == RETURNED[2:]
    assert await shop.refunds(late) == [("PENDING", 4_950, "EUR", "late")]
    await shop.deliver(paid, shop.gateway.take_money(late.id))
    await shop.settle()
    assert await shop.refunds(late) == [("PENDING", 4_950, "EUR", "late")]
    await shop.pay_refunds_now()
    await shop.settle()
    refunded = await shop.now(late, OrderState.REFUNDED)
    assert refunded.refunded_minor == 4_950
    assert await shop.entries(late) == RETURNED
    assert await shop.entries(winner) == revenue
    for _ in range(2):  # the gateway's own webhook of the refund, twice
        await shop.deliver(*shop.gateway.refund_events(late.id))
        await shop.settle()
    assert await shop.entries(late) == RETURNED
    assert await shop.stock() == (0, 0, 1)
    assert shop.gateway.intent_of(late.id).amount_refunded_minor == 4_950
    assert await shop.events(late) == [
        "order.reserved",
        "order.expired",
        "order.refund_pending",
        "order.refunded",
    ]


async def test_a_sale_that_takes_no_late_money_gives_it_back_although_units_are_left(
    sell: NewShop,
) -> None:
    shop = await sell(5, accept_late=False)
    late = await shop.pending()
    paid = shop.gateway.take_money(late.id)
    await shop.expire(late)
    await shop.deliver(paid)
    await shop.settle()
    await shop.now(late, OrderState.REFUND_PENDING)
    assert await shop.stock() == (5, 0, 0)


async def test_a_declared_failure_followed_by_a_success_ends_confirmed(sell: NewShop) -> None:
    """O8."""
    shop = await sell(5, payment_attempts=1)
    order = await shop.pending(2)
    await shop.deliver(shop.gateway.decline(order.id))
    await shop.settle()
    await shop.now(order, OrderState.PAYMENT_FAILED)
    await shop.deliver(shop.gateway.take_money(order.id))
    await shop.settle()
    await shop.now(order, OrderState.CONFIRMED)
    assert await shop.stock() == (3, 0, 2)
    assert len(await shop.units(order)) == 2


async def test_money_for_a_cancelled_order_goes_back_although_units_are_left(shop: Shop) -> None:
    """The buyer has said no."""
    order = await shop.pending()
    paid = shop.gateway.take_money(order.id)
    await shop.cancel(order)
    await shop.deliver(paid)
    await shop.settle()
    await shop.now(order, OrderState.REFUND_PENDING)
    await shop.pay_refunds_now()
    await shop.settle()
    await shop.now(order, OrderState.REFUNDED)
    assert await shop.entries(order) == RETURNED
    assert await shop.stock() == (5, 0, 0)


async def test_several_variants_are_taken_anew_all_or_none(sell: NewShop) -> None:
    shop = await sell(2, 1)
    late = await shop.pending(1, 1)
    paid = shop.gateway.take_money(late.id)
    await shop.expire(late)
    await shop.paid(0, 1)  # the last one of the second variant
    await shop.deliver(paid)
    await shop.settle()
    await shop.now(late, OrderState.REFUND_PENDING)
    assert await shop.stock(0) == (2, 0, 0)  # nothing of the first one is kept back
    assert await shop.stock(1) == (0, 0, 1)
    assert await shop.units(late) == []


async def test_the_same_late_payment_told_twice_in_one_batch_buys_once(shop: Shop) -> None:
    late = await shop.pending(2)
    await shop.expire(late)
    await shop.deliver(shop.gateway.take_money(late.id), shop.gateway.take_money(late.id))
    await shop.settle()
    await shop.now(late, OrderState.CONFIRMED)
    assert await shop.stock() == (3, 0, 2)
    assert [row["outcome"] for row in await shop.inbox_of(late.id)] == [
        "confirmed_late",
        "nothing_to_do",
    ]


async def test_an_order_that_expires_before_its_payment_is_settled_gets_units_if_there_are_any(
    shop: Shop,
) -> None:
    """The money was told in time, and settled late: units are free, so they are sold."""
    late = await shop.pending(2)
    await shop.deliver(shop.gateway.take_money(late.id))
    await shop.expire(late)
    await shop.settle()
    await shop.now(late, OrderState.CONFIRMED)
    assert await shop.stock() == (3, 0, 2)


async def test_more_late_payments_than_a_batch_takes_all_get_units(sell: NewShop) -> None:
    shop = await sell(30)
    late = [await shop.pending() for _ in range(12)]
    for order in late:
        await shop.let_deadline_pass(order.id)
    await shop.sweep_orders()
    for order in reversed(late):  # told in another order than their ids have
        await shop.deliver(shop.gateway.take_money(order.id))
    while await shop.parts.settlement.settle(5):
        pass
    for order in late:
        await shop.now(order, OrderState.CONFIRMED)
    assert await shop.stock() == (18, 0, 12)


async def test_a_late_order_is_not_robbed_of_its_units_by_a_slow_sweep(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep has committed EXPIRED and is about to tell the store; meanwhile money comes in."""
    late = await shop.pending(2)
    await shop.let_deadline_pass(late.id)
    free = shop.parts.inventory.free
    held_back = []

    def hold_back(*arguments: object) -> object:
        held_back.append(arguments)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    monkeypatch.setattr(shop.parts.inventory, "free", hold_back)
    await shop.sweep_orders()
    monkeypatch.undo()
    await shop.now(late, OrderState.EXPIRED)
    paid = shop.gateway.take_money(late.id)
    take_late = shop.parts.inventory.take_late

    def take_and_be_overtaken(*arguments: object) -> object:
        async def both() -> object:
            taken = await take_late(*arguments)  # type: ignore[arg-type]
            for told in held_back:
                await free(*told)  # type: ignore[arg-type]
            return taken

        return asyncio.ensure_future(both())

    monkeypatch.setattr(shop.parts.inventory, "take_late", take_and_be_overtaken)
    await shop.deliver(paid)
    await shop.settle()
    monkeypatch.undo()
    confirmed = await shop.now(late, OrderState.CONFIRMED)
    assert await shop.stock() == (3, 0, 2)
    rest = await shop.order(3)  # all that is free: none of it is the late order's
    assert not set(rest.lines[0].serials) & set(confirmed.lines[0].serials)


async def test_a_store_that_was_never_told_of_an_expiry_learns_it_after_a_late_confirmation(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old hold and the new one are two: one goes back to the pool, the other is sold."""
    late = await shop.pending(2)
    await shop.let_deadline_pass(late.id)
    with store_not_told(shop, monkeypatch):
        await shop.sweep_orders()
    assert await shop.stock() == (3, 2, 0)
    await shop.deliver(shop.gateway.take_money(late.id))
    with store_not_told(shop, monkeypatch):
        await shop.settle()
    await shop.now(late, OrderState.CONFIRMED)
    for hold in await shop.holds():
        await shop.make_due_in_store(hold)
    await shop.sweep()
    assert await shop.stock() == (3, 0, 2)
    assert await shop.holds() == []


async def test_one_admission_with_a_new_order_under_way_gets_the_late_money_back(
    sell: NewShop,
) -> None:
    """W13 before O7: the buyer has already begun anew, and one admission is one order."""
    shop = await sell(5, payment_attempts=1)
    late = await shop.pending()
    await shop.deliver(shop.gateway.decline(late.id))
    await shop.settle()
    again = await shop.start(late.buyer, await shop.reserve(late.buyer, 2))
    assert isinstance(again, Order)
    bystander = await shop.pending()
    await shop.deliver(shop.gateway.take_money(late.id), shop.gateway.take_money(bystander.id))
    await shop.settle()
    await shop.now(bystander, OrderState.CONFIRMED)
    await shop.now(late, OrderState.REFUND_PENDING)
    await shop.now(again, OrderState.RESERVED)
    assert await shop.stock() == (2, 2, 1)
    assert [entry[0] for entry in await shop.entries(late)] == ["UNEARNED"] * 2


async def test_late_money_waits_for_a_store_that_is_away_rather_than_going_back(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = await shop.pending(2)
    await shop.expire(late)
    await shop.deliver(shop.gateway.take_money(late.id))

    def away(*_: object) -> object:
        raise StoreUnavailable("no connection")

    monkeypatch.setattr(shop.parts.inventory, "take_late", away)
    await shop.settle()
    await shop.now(late, OrderState.EXPIRED)
    assert not (await shop.inbox_of(late.id))[0]["settled"]
    monkeypatch.undo()
    await shop.make_inbox_due()
    await shop.settle()
    await shop.now(late, OrderState.CONFIRMED)


async def test_units_taken_for_a_late_order_that_died_before_the_commit_come_back(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = await shop.pending(2)
    await shop.expire(late)
    await shop.deliver(shop.gateway.take_money(late.id))
    taken = []
    take_late = shop.parts.inventory.take_late

    async def take_and_die(*arguments: object) -> object:
        taken.append(await take_late(*arguments))  # type: ignore[arg-type]
        raise asyncio.CancelledError

    monkeypatch.setattr(shop.parts.inventory, "take_late", take_and_die)
    with pytest.raises(asyncio.CancelledError):
        await shop.settle()
    monkeypatch.undo()
    assert taken
    assert await shop.stock() == (3, 2, 0)
    key = sale_key(shop.sale.id, shop.sale.epoch, "due")
    for hold in await shop.holds():
        await shop.parts.store.redis.zadd(key, {hold: 1})
    await shop.sweep()
    assert await shop.stock() == (5, 0, 0)
    await shop.make_inbox_due()
    await shop.settle()
    await shop.now(late, OrderState.CONFIRMED)
    assert await shop.stock() == (3, 0, 2)


async def test_while_one_settler_looks_for_units_another_one_waits(
    shop: Shop, other_parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that looked would take twice, and somebody else would find nothing left."""
    late = await shop.pending(2)
    await shop.expire(late)
    other = same_sale(shop, other_parts)
    looks = []

    def look(*arguments: object) -> object:
        looks.append(arguments)
        raise StoreUnavailable("the second one has no business here")

    monkeypatch.setattr(other_parts.inventory, "take_late", look)
    take_late = shop.parts.inventory.take_late

    async def take_slowly(*arguments: object) -> object:
        await other.deliver(shop.gateway.take_money(late.id))
        await other.settle()
        return await take_late(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(shop.parts.inventory, "take_late", take_slowly)
    await shop.deliver(shop.gateway.take_money(late.id))
    await shop.settle()
    monkeypatch.undo()
    assert looks == []
    await shop.now(late, OrderState.CONFIRMED)
    await shop.make_inbox_due()
    await shop.settle()
    assert [row["outcome"] for row in await shop.inbox_of(late.id)] == [
        "confirmed_late",
        "nothing_to_do",
    ]
    assert await shop.stock() == (3, 0, 2)
