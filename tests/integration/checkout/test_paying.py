"""Paying: one intent an order, whatever is repeated or dies in between (O5, O8)."""

from __future__ import annotations

import asyncio

import pytest

from fairdrop.app import Parts
from fairdrop.checkout import Order, OrderState, PayRefusal
from fairdrop.ids import new_id
from fairdrop.payments import GatewayUnavailable, Intent, PaymentRequest
from tests.integration.checkout.conftest import NewShop
from tests.integration.checkout.shop import Shop, same_sale


async def test_paying_twice_is_one_intent_and_one_deadline(shop: Shop) -> None:
    order = await shop.order()
    first = await shop.pay(order)
    assert await shop.pay(order) == first
    assert len(shop.gateway.intents) == 1
    assert await shop.steps(order) == [
        (None, "RESERVED", "start"),
        ("RESERVED", "PAYMENT_PENDING", "pay"),
    ]


async def test_a_payment_begun_is_told_without_reading_the_order_as_it_would_be_read(
    sell: NewShop,
) -> None:
    shop = await sell(5, 4)
    order = await shop.order(2, 1)
    looked = shop.parts.checkout._look.items
    paying = await shop.pay(order)
    assert shop.parts.checkout._look.items == looked
    assert isinstance(paying, Order)
    assert paying.payment is not None
    assert paying.payment.url == shop.gateway.intent_of(order.id).pay_url
    assert paying == await shop.now(order, OrderState.PAYMENT_PENDING)


async def test_an_order_that_ends_while_its_intent_is_made_is_not_sent_to_pay(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = await shop.order()
    create = shop.gateway.create

    async def cancelled_meanwhile(request: PaymentRequest) -> Intent:
        intent = await create(request)
        await shop.cancel(order)
        return intent

    monkeypatch.setattr(shop.gateway, "create", cancelled_meanwhile)
    assert await shop.pay(order) is PayRefusal.NOT_PAYABLE
    assert (await shop.now(order, OrderState.CANCELLED)).payment is not None


async def test_twenty_clicks_on_pay_in_two_processes_are_one_intent_and_one_charge(
    shop: Shop, other_parts: Parts
) -> None:
    """Case 21."""
    other = same_sale(shop, other_parts)
    order = await shop.order()
    answers = await asyncio.gather(*(one.pay(order) for one in (shop, other) * 10))
    orders = [answer for answer in answers if isinstance(answer, Order)]
    assert len(orders) == 20
    urls = {answer.payment.url for answer in orders if answer.payment is not None}
    assert len(urls) == 1
    assert len(shop.gateway.intents) == 1
    assert len({answer.deadline for answer in orders}) == 1
    await shop.deliver(*(shop.gateway.take_money(order.id) for _ in range(3)))
    await shop.settle()
    await shop.now(order, OrderState.CONFIRMED)
    assert len(shop.gateway.taken) == 1
    assert len(await shop.entries(order)) == 3


@pytest.mark.parametrize("where", ["before", "after"])
async def test_a_pay_that_died_at_the_gateway_is_healed_by_paying_again(
    where: str, shop: Shop
) -> None:
    """Case 22: the answer never came, whether or not the intent was made; the key is the same."""
    order = await shop.order()
    broken = shop.gateway.break_before if where == "before" else shop.gateway.break_after
    broken.add("create")
    with pytest.raises(GatewayUnavailable):
        await shop.pay(order)
    stuck = await shop.now(order, OrderState.PAYMENT_PENDING)
    assert stuck.payment is not None
    assert (stuck.payment.state, stuck.payment.url) == ("CREATING", None)
    broken.clear()
    healed = await shop.pay(order)
    assert isinstance(healed, Order)
    assert healed.payment is not None
    assert healed.payment.state == "OPEN"
    assert healed.payment.url == shop.gateway.intent_of(order.id).pay_url
    assert healed.deadline == stuck.deadline
    assert list(shop.gateway.by_key) == [order.id]


async def test_an_intent_whose_making_nobody_heard_of_is_found_by_the_reconciler(
    shop: Shop,
) -> None:
    order = await shop.order()
    shop.gateway.break_after.add("create")
    with pytest.raises(GatewayUnavailable):
        await shop.pay(order)
    await shop.check_payments_now()
    healed = await shop.now(order, OrderState.PAYMENT_PENDING)
    assert healed.payment is not None
    assert healed.payment.url == shop.gateway.intent_of(order.id).pay_url
    assert healed.payment.state == "OPEN"
    assert shop.gateway.calls["create"] == 1


async def test_an_intent_whose_making_nobody_heard_of_is_confirmed_when_it_was_paid(
    shop: Shop,
) -> None:
    """Case 17: money moved while we were dead."""
    order = await shop.order()
    shop.gateway.break_after.add("create")
    with pytest.raises(GatewayUnavailable):
        await shop.pay(order)
    shop.gateway.take_money(order.id)  # no webhook
    await shop.check_payments_now()
    await shop.settle()
    await shop.now(order, OrderState.CONFIRMED)


async def test_a_payment_that_the_gateway_never_heard_of_is_closed_after_the_order_ended(
    shop: Shop,
) -> None:
    order = await shop.order()
    shop.gateway.break_before.add("create")
    with pytest.raises(GatewayUnavailable):
        await shop.pay(order)
    await shop.check_payments_now()
    assert (await shop.payment(order))["state"] == "CREATING"  # alive: the buyer may pay again
    await shop.expire(order)
    for _ in range(10):
        await shop.check_payments_now()
    assert (await shop.payment(order))["state"] == "CLOSED"
    assert await shop.timers(order) == []


async def test_an_order_that_is_over_or_not_there_is_not_payable(shop: Shop) -> None:
    confirmed = await shop.paid()
    assert await shop.pay(confirmed) is PayRefusal.NOT_PAYABLE
    cancelled = await shop.order()
    await shop.cancel(cancelled)
    assert await shop.pay(cancelled) is PayRefusal.NOT_PAYABLE
    expired = await shop.order()
    await shop.let_deadline_pass(expired.id)
    assert await shop.pay(expired) is PayRefusal.NOT_PAYABLE  # H4: before any sweep
    await shop.sweep()
    assert await shop.pay(expired) is PayRefusal.NOT_PAYABLE
    assert await shop.parts.checkout.pay(confirmed.id, "somebody") is PayRefusal.NO_ORDER
    assert await shop.parts.checkout.pay(new_id(), "somebody") is PayRefusal.NO_ORDER
    assert await shop.parts.checkout.pay("x", "somebody") is PayRefusal.NO_ORDER
    assert shop.gateway.calls["create"] == 1


async def test_the_intent_has_the_amount_shown_in_the_currency_s_own_minor_units(
    sell: NewShop,
) -> None:
    """Cases 23 and 24: eighty yen are 80, and a dinar has a thousand fils."""
    for currency, price, total in (("JPY", 80, 88), ("KWD", 1_995, 2_195), ("EUR", 1_995, 2_195)):
        shop = await sell(5, currency=currency, prices=(price,))
        order = await shop.pending()
        assert order.total_minor == total
        intent = shop.gateway.intent_of(order.id)
        assert (intent.amount_minor, intent.currency) == (total, currency)


# ---------------------------------------------------------------- cancelling


async def test_a_cancelled_order_frees_its_units_at_once_and_its_intent_is_withdrawn(
    shop: Shop,
) -> None:
    order = await shop.pending(2)
    cancelled = await shop.cancel(order)
    assert isinstance(cancelled, Order)
    assert cancelled.state is OrderState.CANCELLED
    assert await shop.units(order) == []
    assert await shop.stock() == (5, 0, 0)
    assert await shop.holds() == []
    assert await shop.parts.reconciler.check_payments() > 0  # due at once
    assert shop.gateway.intent_of(order.id).status.value == "canceled"
    assert (await shop.payment(order))["state"] == "CLOSED"
    assert await shop.steps(order) == [
        (None, "RESERVED", "start"),
        ("RESERVED", "PAYMENT_PENDING", "pay"),
        ("PAYMENT_PENDING", "CANCELLED", "cancelled"),
    ]


async def test_cancelling_again_changes_nothing_even_when_others_have_the_units(
    sell: NewShop,
) -> None:
    shop = await sell(1)
    order = await shop.order()
    first = await shop.cancel(order)
    assert await shop.cancel(order) == first
    other = await shop.order()
    assert await shop.cancel(order) == first
    assert await shop.units(other) == [("HELD", 1)]
    assert await shop.stock() == (0, 1, 0)


async def test_ten_cancels_at_once_free_the_units_once(shop: Shop, other_parts: Parts) -> None:
    order = await shop.order(3)
    other = same_sale(shop, other_parts)
    answers = await asyncio.gather(*(one.cancel(order) for one in (shop, other) * 5))
    assert all(isinstance(answer, Order) for answer in answers)
    assert await shop.stock() == (5, 0, 0)
    assert len(await shop.steps(order)) == 2
    assert await shop.events(order) == ["order.reserved", "order.cancelled"]


async def test_a_confirmed_order_is_not_cancelled_and_nobody_cancels_for_another(
    shop: Shop,
) -> None:
    order = await shop.paid()
    assert await shop.cancel(order) is PayRefusal.NOT_CANCELLABLE
    assert await shop.parts.checkout.cancel(shop.sale.ref, order.id, "x") is PayRefusal.NO_ORDER
    open_order = await shop.order()
    refused = await shop.parts.checkout.cancel(shop.sale.ref, open_order.id, "thief")
    assert refused is PayRefusal.NO_ORDER
    await shop.now(open_order, OrderState.RESERVED)
    assert await shop.stock() == (3, 1, 1)
