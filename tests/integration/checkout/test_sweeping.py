"""Deadlines: the row first, the store after, and whatever died in between is finished (H4, H7)."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from fairdrop.app import Parts
from fairdrop.checkout import OrderState
from tests.integration.checkout.conftest import NewShop
from tests.integration.checkout.shop import Shop, same_sale
from tests.integration.checkout.silence import store_not_told


async def test_an_expired_order_gives_its_units_back_row_first(shop: Shop) -> None:
    order = await shop.order(2)
    await shop.let_deadline_pass(order.id)
    await shop.sweep_orders()
    await shop.now(order, OrderState.EXPIRED)
    assert await shop.units(order) == []
    assert await shop.stock() == (5, 0, 0)
    assert await shop.holds() == []
    assert await shop.steps(order) == [
        (None, "RESERVED", "start"),
        ("RESERVED", "EXPIRED", "deadline"),
    ]
    assert await shop.events(order) == ["order.reserved", "order.expired"]


async def test_nothing_ends_before_its_deadline(shop: Shop) -> None:
    reserved, pending = await shop.order(), await shop.pending()
    await shop.make_due_in_store(reserved.id)
    await shop.make_due_in_store(pending.id)
    await shop.sweep()  # the store thinks that they are over; their rows say that they are not
    await shop.now(reserved, OrderState.RESERVED)
    await shop.now(pending, OrderState.PAYMENT_PENDING)
    assert await shop.stock() == (3, 2, 0)
    assert len(await shop.holds()) == 2


async def test_a_deadline_that_has_just_moved_counts_before_its_timer(shop: Shop) -> None:
    """A payment that begins while the sweep waits for the order's row: PostgreSQL then looks at the
    order anew and not at the timer, which here is what is still old."""
    order = await shop.pending()
    await shop.execute(
        "UPDATE order_timers SET at = now() - interval '1 second'"
        " WHERE order_id = $1::text::uuid AND kind = 'DEADLINE'",
        order.id,
    )
    await shop.sweep_orders()
    await shop.now(order, OrderState.PAYMENT_PENDING)


async def test_the_sweep_of_the_store_never_takes_an_order_s_units_before_its_row_says_so(
    shop: Shop,
) -> None:
    """H7: the deadline has passed in both, and only the store is swept."""
    order = await shop.pending(2)
    await shop.let_deadline_pass(order.id)
    await shop.parts.sweeper.sweep_store(shop.sale)
    await shop.now(order, OrderState.PAYMENT_PENDING)
    assert await shop.stock() == (3, 2, 0)
    await shop.deliver(shop.gateway.take_money(order.id))
    await shop.settle()
    await shop.now(order, OrderState.CONFIRMED)
    assert [serial for _, serial in await shop.units(order)] == order.lines[0].serials


async def test_an_expired_order_s_intent_is_withdrawn_at_the_gateway(shop: Shop) -> None:
    order = await shop.pending()
    await shop.expire(order)
    assert await shop.parts.reconciler.check_payments() > 0  # due at once
    assert shop.gateway.intent_of(order.id).status.value == "canceled"
    assert (await shop.payment(order))["state"] == "CLOSED"
    assert await shop.timers(order) == []


@pytest.mark.parametrize("step", ["settle", "sweep_orders"])
async def test_a_store_that_was_not_told_learns_it_from_the_sweep(
    step: str, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process died after its commit, or the store was away."""
    order = await shop.pending(2)
    if step == "settle":
        await shop.deliver(shop.gateway.take_money(order.id))
        end, free, sold, inside = OrderState.CONFIRMED, 3, 2, 0
    else:
        await shop.let_deadline_pass(order.id)
        end, free, sold, inside = OrderState.EXPIRED, 5, 0, 1
    with store_not_told(shop, monkeypatch):
        await getattr(shop, step)()
    await shop.now(order, end)
    assert await shop.stock() == (3, 2, 0)  # units are held too long, never too short
    await shop.make_due_in_store(order.id)
    await shop.sweep()
    assert await shop.stock() == (free, 0, sold)
    assert await shop.holds() == []
    assert await shop.inside() == inside  # the admission of a confirmed order has ended (W13)


async def test_a_cancelled_order_of_which_the_store_did_not_hear_is_resolved_too(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = await shop.order(2)
    with store_not_told(shop, monkeypatch):
        await shop.cancel(order)
    assert await shop.stock() == (3, 2, 0)
    await shop.make_due_in_store(order.id)
    await shop.sweep()
    assert await shop.stock() == (5, 0, 0)


async def test_a_returned_payment_of_which_the_store_did_not_hear_gives_the_units_back(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However late: even when the money is back already, the units were never sold."""
    order = await shop.pending(2)
    await shop.deliver(shop.gateway.take_money(order.id, 1))
    with store_not_told(shop, monkeypatch):
        await shop.settle()
    await shop.pay_refunds_now()
    await shop.settle()
    await shop.now(order, OrderState.REFUNDED)
    await shop.make_due_in_store(order.id)
    await shop.sweep()
    assert await shop.stock() == (5, 0, 0)


async def test_two_workers_that_sweep_at_once_end_every_order_once(
    sell: NewShop, other_parts: Parts
) -> None:
    shop = await sell(40)
    other = same_sale(shop, other_parts)
    buyers = [await shop.admit() for _ in range(30)]
    holds = await asyncio.gather(*(shop.reserve(buyer) for buyer in buyers))
    orders = await asyncio.gather(
        *(shop.order_of(buyer, hold) for buyer, hold in zip(buyers, holds, strict=True))
    )
    started_only = await shop.admit()  # one hold died between its STARTED and its row
    dead = await shop.reserve(started_only, 3)
    await shop.parts.inventory.start(shop.sale.ref, dead, started_only)
    for order in orders:
        await shop.let_deadline_pass(order.id)
    await shop.make_due_in_store(dead)
    await asyncio.gather(*(one.sweep() for one in (shop, other) * 2))
    for order in orders:
        await shop.now(order, OrderState.EXPIRED)
    assert await shop.units() == []
    assert await shop.stock() == (40, 0, 0)
    assert await shop.holds() == []
    rows = await shop.fetch(
        "SELECT order_id, count(*) FROM order_transitions t JOIN orders o ON o.id = t.order_id"
        " WHERE o.sale_id = $1 AND to_state = 'EXPIRED' GROUP BY order_id",
        UUID(shop.sale.id),
    )
    assert len(rows) == 31
    assert {row["count"] for row in rows} == {1}


async def test_reservations_without_an_order_end_in_the_store_alone(sell: NewShop) -> None:
    shop = await sell(5, hold_ttl_ms=1)
    for _ in range(3):
        await shop.reserve(await shop.admit())
    async with asyncio.timeout(10):
        while await shop.stock() != (5, 0, 0):
            await shop.sweep()
    assert await shop.fetch("SELECT FROM orders WHERE sale_id = $1", UUID(shop.sale.id)) == []
