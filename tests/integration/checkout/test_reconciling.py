"""Nothing depends on a webhook arriving, and refunds are paid until they are (O8, O13)."""

from __future__ import annotations

import asyncio

import pytest

from fairdrop.app import Parts
from fairdrop.checkout import Order, OrderState, Reconciler
from fairdrop.payments import GatewayUnavailable, Intent
from tests.integration.checkout.conftest import NewShop
from tests.integration.checkout.shop import Shop, same_sale


async def returned_late(shop: Shop) -> Order:
    """An order whose money came too late and has to go back."""
    order = await shop.pending()
    paid = shop.gateway.take_money(order.id)
    await shop.cancel(order)
    await shop.deliver(paid)
    await shop.settle()
    return await shop.now(order, OrderState.REFUND_PENDING)


async def test_a_payment_whose_webhook_was_dropped_is_found_by_asking(shop: Shop) -> None:
    """Case 17."""
    order = await shop.pending(2)
    shop.gateway.take_money(order.id)
    await shop.check_payments_now()
    await shop.settle()
    await shop.now(order, OrderState.CONFIRMED)
    assert await shop.stock() == (3, 0, 2)
    calls = shop.gateway.calls["fetch"]
    await shop.check_payments_now()
    assert shop.gateway.calls["fetch"] == calls  # settled: nobody asks again


async def test_asking_and_the_webhook_together_settle_once(shop: Shop) -> None:
    order = await shop.pending()
    event = shop.gateway.take_money(order.id)
    await asyncio.gather(shop.deliver(event), shop.check_payments_now())
    await shop.check_payments_now()
    await shop.settle()
    await shop.now(order, OrderState.CONFIRMED)
    assert len(await shop.entries(order)) == 3
    assert await shop.refunds(order) == []


async def test_an_open_payment_is_asked_about_less_and_less_often(shop: Shop) -> None:
    parts = shop.parts
    patient = Reconciler(parts.database, parts.gateways, parts.inbox, check_after_ms=10_000)
    order = await shop.pending()
    waits = []
    for _ in range(7):
        await shop.make_payment_checks_due()
        await patient.check_payments()
        (row,) = await shop.fetch(
            "SELECT at - now() AS wait FROM order_timers"
            " WHERE order_id = $1::text::uuid AND kind = 'PAYMENT'",
            order.id,
        )
        waits.append(round(row["wait"].total_seconds(), -1))
    assert waits == [10, 20, 40, 80, 160, 300, 300]
    assert (await shop.payment(order))["state"] == "OPEN"


async def test_a_payment_that_is_paid_after_its_order_expired_is_found_and_decided(
    sell: NewShop,
) -> None:
    """The buyer paid before we could withdraw the intent, and the webhook was dropped."""
    shop = await sell(1)
    order = await shop.pending()
    await shop.expire(order)
    await shop.order()  # somebody else has the unit
    shop.gateway.take_money(order.id)
    await shop.check_payments_now()
    await shop.settle()
    await shop.now(order, OrderState.REFUND_PENDING)


async def test_an_intent_that_is_cancelled_at_the_gateway_without_a_word_ends_its_order(
    shop: Shop,
) -> None:
    order = await shop.pending()
    await shop.gateway.cancel(shop.gateway.intent_of(order.id).id)
    await shop.check_payments_now()
    await shop.settle()
    await shop.now(order, OrderState.PAYMENT_FAILED)
    assert await shop.stock() == (5, 0, 0)


@pytest.mark.parametrize("call", ["fetch", "cancel"])
async def test_a_gateway_that_is_away_is_asked_again(call: str, shop: Shop) -> None:
    order = await shop.pending()
    await shop.expire(order)
    shop.gateway.break_before.add(call)
    await shop.check_payments_now()
    assert (await shop.payment(order))["state"] == "OPEN"
    shop.gateway.break_before.clear()
    await shop.check_payments_now()
    assert (await shop.payment(order))["state"] == "CLOSED"
    assert shop.gateway.intent_of(order.id).status.value == "canceled"


async def test_a_cancel_whose_answer_was_lost_is_found_done(shop: Shop) -> None:
    order = await shop.pending()
    await shop.expire(order)
    shop.gateway.break_after.add("cancel")
    await shop.check_payments_now()
    shop.gateway.break_after.clear()
    await shop.check_payments_now()
    assert (await shop.payment(order))["state"] == "CLOSED"


async def test_two_reconcilers_pay_one_refund_once(shop: Shop, other_parts: Parts) -> None:
    order = await returned_late(shop)
    other = same_sale(shop, other_parts)
    await asyncio.gather(*(one.pay_refunds_now() for one in (shop, other) * 3))
    await shop.settle()
    await shop.now(order, OrderState.REFUNDED)
    assert shop.gateway.intent_of(order.id).amount_refunded_minor == 4_950
    assert len(await shop.entries(order)) == 4


@pytest.mark.parametrize("where", ["before", "after"])
async def test_a_refund_that_died_at_the_gateway_is_paid_once_by_trying_again(
    where: str, shop: Shop
) -> None:
    order = await returned_late(shop)
    broken = shop.gateway.break_before if where == "before" else shop.gateway.break_after
    broken.add("refund")
    await shop.pay_refunds_now()
    await shop.now(order, OrderState.REFUND_PENDING)
    rows = await shop.fetch(
        "SELECT attempts, last_error, next_try_at > now() AS put_off FROM refunds"
        " WHERE order_id = $1::text::uuid",
        order.id,
    )
    assert rows[0]["attempts"] == 1
    assert rows[0]["last_error"]
    assert rows[0]["put_off"]
    broken.clear()
    await shop.pay_refunds_now()
    await shop.settle()
    refunded = await shop.now(order, OrderState.REFUNDED)
    assert refunded.refunded_minor == 4_950
    assert shop.gateway.intent_of(order.id).amount_refunded_minor == 4_950
    assert list(shop.gateway.keys_of_refunds) == [
        str(row["id"])
        for row in await shop.fetch(
            "SELECT id FROM refunds WHERE order_id = $1::text::uuid", order.id
        )
    ]


async def test_a_refund_that_the_gateway_refuses_is_tried_again_and_says_why(shop: Shop) -> None:
    order = await returned_late(shop)
    shop.gateway.refuse["refund"] = "charge_disputed"
    await shop.pay_refunds_now()
    rows = await shop.fetch(
        "SELECT state, last_error FROM refunds WHERE order_id = $1::text::uuid", order.id
    )
    assert rows[0]["state"] == "PENDING"
    assert "charge_disputed" in rows[0]["last_error"]
    shop.gateway.refuse.clear()
    await shop.pay_refunds_now()
    await shop.settle()
    await shop.now(order, OrderState.REFUNDED)


async def test_a_payment_that_cannot_be_asked_about_keeps_no_other_one_and_no_refund_waiting(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """O8: whatever is wrong with one of them is its own affair."""
    odd, paid = await shop.pending(), await shop.pending()
    shop.gateway.take_money(paid.id)
    refunded = await returned_late(shop)
    fetch = shop.gateway.fetch

    async def break_for_one(intent: str) -> Intent:
        if intent == shop.gateway.intent_of(odd.id).id:
            raise RuntimeError("session is closed")
        return await fetch(intent)

    monkeypatch.setattr(shop.gateway, "fetch", break_for_one)
    await shop.check_payments_now()
    await shop.pay_refunds_now()
    await shop.settle()
    await shop.now(paid, OrderState.CONFIRMED)
    await shop.now(refunded, OrderState.REFUNDED)
    assert (await shop.now(odd)).state is OrderState.PAYMENT_PENDING


async def test_a_refund_told_by_webhook_and_by_answer_counts_once(shop: Shop) -> None:
    order = await returned_late(shop)
    await shop.pay_refunds_now()
    (event,) = shop.gateway.refund_events(order.id)
    await shop.deliver(event, event, *shop.gateway.refund_events(order.id))
    await shop.settle()
    await shop.deliver(*shop.gateway.refund_events(order.id))
    await shop.settle()
    refunded = await shop.now(order, OrderState.REFUNDED)
    assert refunded.refunded_minor == 4_950
    assert len(await shop.entries(order)) == 4
    assert (await shop.steps(order)).count(("REFUND_PENDING", "REFUNDED", "refunded")) == 1
    rows = [row for row in await shop.inbox_of(order.id) if row["kind"] == "REFUND_SUCCEEDED"]
    assert all(row["settled"] for row in rows)
    assert [row["outcome"] for row in rows] == ["refunded"] + ["nothing_to_do"] * (len(rows) - 1)
    assert len(rows) == 4


async def test_the_webhook_of_a_refund_is_enough_when_the_answer_was_lost(shop: Shop) -> None:
    order = await returned_late(shop)
    shop.gateway.break_after.add("refund")
    await shop.pay_refunds_now()
    await shop.deliver(*shop.gateway.refund_events(order.id))
    await shop.settle()
    await shop.now(order, OrderState.REFUNDED)
    calls = shop.gateway.calls["refund"]
    await shop.pay_refunds_now()
    assert shop.gateway.calls["refund"] == calls


async def test_a_gateway_that_is_not_configured_any_more_is_left_alone(shop: Shop) -> None:
    order = await returned_late(shop)
    waiting = await shop.pending()
    del shop.parts.gateways[shop.gateway.name]
    await shop.check_payments_now()
    await shop.pay_refunds_now()
    await shop.now(order, OrderState.REFUND_PENDING)
    await shop.now(waiting, OrderState.PAYMENT_PENDING)
    other = await shop.order()
    with pytest.raises(GatewayUnavailable):
        await shop.pay(other)
    await shop.now(other, OrderState.PAYMENT_PENDING)
