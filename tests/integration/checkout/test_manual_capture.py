"""Authorise, secure the units, capture: who agrees too late is voided, never charged (O4, O7)."""

from __future__ import annotations

import asyncio

import pytest

from fairdrop.checkout import Order, OrderState, PayRefusal
from fairdrop.ids import new_id
from fairdrop.payments import CaptureMode, EventKind, IntentStatus, PaymentRequest
from tests.integration.checkout.conftest import NewShop
from tests.integration.checkout.scripted_gateway import event_of
from tests.integration.checkout.shop import Shop

S = OrderState


@pytest.fixture
async def shop(sell: NewShop) -> Shop:
    return await sell(5, capture="manual")


async def agreed(shop: Shop) -> Order:
    """An order whose money is set aside and whose units are secured."""
    order = await shop.pending(2)
    await shop.deliver(shop.gateway.set_aside(order.id))
    await shop.settle()
    return order


async def test_the_money_is_taken_after_the_units_are_secured(shop: Shop) -> None:
    order = await agreed(shop)
    assert (await shop.payment(order))["state"] == "AUTHORISED"
    assert shop.gateway.taken == []
    assert await shop.entries(order) == []  # nothing has been taken: nothing is booked
    await shop.check_payments_now()
    assert [charge.amount_minor for charge in shop.gateway.taken] == [order.total_minor]
    await shop.settle()
    await shop.now(order, S.CONFIRMED)
    assert await shop.steps(order) == [
        (None, "RESERVED", "start"),
        ("RESERVED", "PAYMENT_PENDING", "pay"),
        ("PAYMENT_PENDING", "PAYMENT_PENDING", "authorised"),
        ("PAYMENT_PENDING", "CONFIRMED", "paid"),
    ]
    assert (await shop.events(order))[-2:] == ["order.authorised", "order.confirmed"]
    assert await shop.stock() == (3, 0, 2)
    assert await shop.timers(order) == []


async def test_units_that_are_secured_outlast_the_deadline(shop: Shop) -> None:
    """No sweep takes them between the bank's agreement and the capture."""
    order = await agreed(shop)
    await shop.make_due_in_store(order.id)
    await shop.sweep()
    assert await shop.stock() == (3, 2, 0)
    await shop.now(order, S.PAYMENT_PENDING)
    await shop.check_payments_now()
    await shop.settle()
    await shop.now(order, S.CONFIRMED)


@pytest.mark.parametrize("end", ["expired", "cancelled", "failed"])
async def test_who_agrees_too_late_is_voided_and_never_charged(sell: NewShop, end: str) -> None:
    """The near miss of case 16: with automatic capture this is a refund, or another unit (O7)."""
    shop = await sell(5, capture="manual", payment_attempts=1)
    order = await shop.pending(2)
    if end == "expired":
        await shop.expire(order)
    elif end == "cancelled":
        await shop.cancel(order)
    else:
        await shop.deliver(shop.gateway.decline(order.id))
        await shop.settle()
    before = (await shop.now(order)).state
    await shop.deliver(shop.gateway.set_aside(order.id))
    await shop.settle()
    await shop.check_payments_now()
    assert shop.gateway.intent_of(order.id).status is IntentStatus.CANCELED
    assert shop.gateway.taken == []
    await shop.now(order, before)
    assert await shop.entries(order) == []
    assert await shop.refunds(order) == []
    assert (await shop.payment(order))["state"] == "CLOSED"
    assert await shop.stock() == (5, 0, 0)


async def test_an_agreement_to_another_amount_is_voided_and_flagged(shop: Shop) -> None:
    """Case 33, before any money moves."""
    order = await shop.pending(2)
    await shop.deliver(shop.gateway.set_aside(order.id, order.total_minor - 1))
    await shop.settle()
    await shop.now(order, S.PAYMENT_FAILED)
    assert (await shop.steps(order))[-1][2] == "authorised_wrong_amount"
    await shop.check_payments_now()
    assert shop.gateway.intent_of(order.id).status is IntentStatus.CANCELED
    assert await shop.stock() == (5, 0, 0)
    assert [row["outcome"] for row in await shop.inbox_of(order.id)] == ["wrong_amount_voided"]


async def test_a_capture_that_times_out_is_repeated_and_takes_the_money_once(shop: Shop) -> None:
    """Case 22: the answer is lost after the money was taken, and before it was."""
    order = await agreed(shop)
    shop.gateway.break_before.add("capture")
    await shop.check_payments_now()
    assert shop.gateway.taken == []
    shop.gateway.break_before.clear()
    shop.gateway.break_after.add("capture")
    await shop.check_payments_now()
    assert len(shop.gateway.taken) == 1
    shop.gateway.break_after.clear()
    await shop.check_payments_now()
    await shop.settle()
    await shop.now(order, S.CONFIRMED)
    assert len(shop.gateway.taken) == 1
    assert shop.gateway.calls["capture"] == 3


async def test_an_agreement_that_nobody_told_of_is_found_by_asking(shop: Shop) -> None:
    """Case 17: our process died, or the webhook was lost."""
    order = await shop.pending(2)
    shop.gateway.set_aside(order.id)
    await shop.check_payments_now()
    await shop.settle()
    assert (await shop.payment(order))["state"] == "AUTHORISED"
    await shop.check_payments_now()
    await shop.settle()
    await shop.now(order, S.CONFIRMED)


async def test_an_agreement_told_three_times_at_once_is_one(shop: Shop) -> None:
    """Case 18; and the success that overtakes it is final (case 20)."""
    order = await shop.pending(2)
    event = shop.gateway.set_aside(order.id)
    intent = shop.gateway.intent_of(order.id)
    again = event_of(intent, EventKind.AUTHORIZED, id=f"evt_{new_id()}")
    await asyncio.gather(*(shop.deliver(one) for one in (event, event, event, again)))
    await shop.settle()
    assert [step[2] for step in await shop.steps(order)].count("authorised") == 1
    await shop.check_payments_now()
    await shop.settle()
    late = event_of(intent, EventKind.AUTHORIZED)
    await shop.deliver(late, shop.gateway.decline(order.id))
    await shop.settle()
    await shop.now(order, S.CONFIRMED)
    assert len(await shop.entries(order)) == 3


async def test_an_agreement_that_the_bank_takes_back_frees_the_units(shop: Shop) -> None:
    order = await agreed(shop)
    await shop.gateway.cancel(shop.gateway.intent_of(order.id).id)
    await shop.check_payments_now()
    await shop.settle()
    await shop.now(order, S.PAYMENT_FAILED)
    assert await shop.stock() == (5, 0, 0)


async def test_an_order_is_not_cancelled_while_its_money_is_taken(shop: Shop) -> None:
    order = await agreed(shop)
    assert await shop.cancel(order) is PayRefusal.NOT_CANCELLABLE
    await shop.check_payments_now()
    await shop.settle()
    await shop.now(order, S.CONFIRMED)


async def test_an_agreement_to_an_intent_that_nobody_asked_for_is_voided_after_the_end(
    shop: Shop,
) -> None:
    """Somebody made it at the gateway directly, for an order that is over."""
    order = await shop.order(1)
    await shop.cancel(order)
    intent = await shop.gateway.create(
        PaymentRequest(
            reference=order.id,
            amount_minor=order.total_minor,
            currency=order.currency,
            idempotency_key=new_id(),
            capture=CaptureMode.MANUAL,
        )
    )
    await shop.deliver(shop.gateway.set_aside(order.id))
    await shop.settle()
    await shop.check_payments_now()
    assert shop.gateway.intents[intent.id].status is IntentStatus.CANCELED
