"""What gateways tell: late, early, three at once, out of order, wrong (O6, cases 18-20, 33, 35)."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any
from uuid import UUID

import asyncpg
import msgspec
import pytest

from fairdrop.app import Parts
from fairdrop.checkout import OrderState
from fairdrop.ids import new_id
from fairdrop.payments import EventKind, GatewayEvent
from tests.integration.checkout.conftest import NewShop
from tests.integration.checkout.scripted_gateway import event_of
from tests.integration.checkout.shop import Shop, same_sale

CONFIRMED_ONCE = [
    ("PAYMENT", "FEES", "EUR", 0, 450),
    ("PAYMENT", "GATEWAY_CLEARING", "EUR", 4_950, 0),
    ("PAYMENT", "SALES", "EUR", 0, 4_500),
]


async def test_a_webhook_three_times_at_once_settles_once(shop: Shop, other_parts: Parts) -> None:
    """Case 18: one event id, in three requests of two processes."""
    order = await shop.pending()
    event = shop.gateway.take_money(order.id)
    other = same_sale(shop, other_parts)
    await asyncio.gather(shop.deliver(event), shop.deliver(event), other.deliver(event))
    await asyncio.gather(shop.settle(), other.settle())
    await shop.deliver(event)
    await shop.settle()
    await shop.now(order, OrderState.CONFIRMED)
    assert await shop.entries(order) == CONFIRMED_ONCE
    assert await shop.events(order) == ["order.reserved", "order.confirmed"]
    assert [row["outcome"] for row in await shop.inbox_of(order.id)] == ["confirmed"]


async def test_two_events_that_tell_of_one_payment_settle_once(shop: Shop) -> None:
    """The webhook, and what the reconciler was told when it asked: two ids, one payment."""
    order = await shop.pending()
    await shop.deliver(shop.gateway.take_money(order.id), shop.gateway.take_money(order.id))
    await shop.settle()
    await shop.deliver(shop.gateway.take_money(order.id))
    await shop.settle()
    assert await shop.entries(order) == CONFIRMED_ONCE
    assert [row["outcome"] for row in await shop.inbox_of(order.id)] == [
        "confirmed",
        "nothing_to_do",
        "nothing_to_do",
    ]
    assert await shop.refunds(order) == []


async def test_a_webhook_before_its_order_is_kept_and_applied_later(shop: Shop) -> None:
    """Case 19. The gateway cannot be faster than our commit, but a replica's view of it can be slow."""
    buyer = await shop.admit()
    hold = await shop.reserve(buyer)
    early = GatewayEvent(
        id="evt_" + new_id(),
        kind=EventKind.SUCCEEDED,
        created_ms=0,
        intent_id="pi_" + new_id(),
        reference=hold,
        amount_minor=4_950,
        currency="EUR",
    )
    await shop.deliver(early)
    await shop.settle()
    (row,) = await shop.inbox_of(hold)
    assert (row["settled"], row["outcome"], row["attempts"]) == (False, "unknown_order", 1)
    order = await shop.order_of(buyer, hold)
    async with asyncio.timeout(10):  # it was put off for 200 ms
        while not (await shop.inbox_of(hold))[0]["settled"]:
            await shop.settle()
            await asyncio.sleep(0.01)
    await shop.now(order, OrderState.CONFIRMED)
    assert await shop.entries(order) == CONFIRMED_ONCE


@pytest.mark.parametrize("ended", [False, True])
async def test_money_of_an_intent_that_the_order_never_asked_for_counts_once(
    ended: bool, shop: Shop
) -> None:
    """The shop has made an intent at the gateway itself, with the order's id as its reference."""
    order = await shop.order()
    if ended:
        await shop.expire(order)
    paid = GatewayEvent(
        id="evt_" + new_id(),
        kind=EventKind.SUCCEEDED,
        created_ms=0,
        intent_id="pi_" + new_id(),
        reference=order.id,
        amount_minor=4_950,
        currency="EUR",
    )
    for event_id in ("evt_" + new_id(), "evt_" + new_id()):
        await shop.deliver(msgspec.structs.replace(paid, id=event_id))
        await shop.settle()
    await shop.now(order, OrderState.CONFIRMED)
    assert await shop.entries(order) == CONFIRMED_ONCE
    payment = await shop.payment(order)
    assert (payment["state"], payment["received_minor"]) == ("SUCCEEDED", 4_950)
    assert payment["intent_id"] == paid.intent_id


UNKNOWN_ORDER = "01234567-89ab-7cde-8123-456789abcdef"


@pytest.mark.parametrize("reference", ["of-another-shop", UNKNOWN_ORDER])
async def test_a_webhook_of_an_order_that_never_comes_is_kept_for_ever(
    reference: str, shop: Shop
) -> None:
    event_id = "evt_" + new_id()
    stray = GatewayEvent(
        id=event_id,
        kind=EventKind.SUCCEEDED,
        created_ms=0,
        intent_id="pi_x",
        reference=reference,
        amount_minor=1,
        currency="EUR",
    )
    await shop.deliver(stray)
    waits = []
    row: Any = None
    for _ in range(15):
        await shop.settle()
        (row,) = await shop.fetch(
            "SELECT due_at - now() AS wait, attempts, outcome FROM webhook_due d"
            " JOIN webhook_inbox w ON w.id = d.id WHERE event_id = $1",
            event_id,
        )
        assert row["outcome"] == "unknown_order"
        waits.append(row["wait"].total_seconds())
        await shop.make_inbox_due()
    assert row["attempts"] == 15
    assert waits[0] < 0.3
    assert 59 < waits[-1] <= 60  # less and less often, but at least once a minute


async def test_a_failure_told_after_the_success_changes_nothing(shop: Shop) -> None:
    """Case 20: states only move forward."""
    order = await shop.pending()
    declined = shop.gateway.decline(order.id)
    paid = shop.gateway.take_money(order.id)
    await shop.deliver(paid)
    await shop.settle()
    await shop.deliver(declined)
    await shop.settle()
    confirmed = await shop.now(order, OrderState.CONFIRMED)
    assert confirmed.payment is not None
    assert confirmed.payment.declines == 0
    assert await shop.entries(order) == CONFIRMED_ONCE


async def test_a_success_told_with_a_failure_in_one_batch_confirms_in_either_order(
    sell: NewShop,
) -> None:
    shop = await sell(5, payment_attempts=1)
    for success_first in (True, False):
        order = await shop.pending()
        declined, paid = shop.gateway.decline(order.id), shop.gateway.take_money(order.id)
        await shop.deliver(*((paid, declined) if success_first else (declined, paid)))
        await shop.settle()
        await shop.now(order, OrderState.CONFIRMED)
        assert await shop.entries(order) == CONFIRMED_ONCE
    assert await shop.stock() == (3, 0, 2)
    assert [state for state, _ in await shop.units()] == ["SOLD", "SOLD"]


async def test_declines_are_counted_and_the_last_one_ends_the_order(sell: NewShop) -> None:
    shop = await sell(5, payment_attempts=3)
    order = await shop.pending(2)
    for count, code in ((1, "card_declined"), (2, "insufficient_funds")):
        await shop.deliver(shop.gateway.decline(order.id, code))
        await shop.settle()
        waiting = await shop.now(order, OrderState.PAYMENT_PENDING)
        assert waiting.payment is not None
        assert (waiting.payment.declines, waiting.payment.attempts_left) == (count, 3 - count)
        assert waiting.payment.last_decline == code
        assert await shop.stock() == (3, 2, 0)
    await shop.deliver(shop.gateway.decline(order.id, "expired_card"))
    await shop.settle()
    failed = await shop.now(order, OrderState.PAYMENT_FAILED)
    assert failed.payment is not None
    assert (failed.payment.attempts_left, failed.payment.last_decline) == (0, "expired_card")
    assert await shop.units(order) == []
    assert await shop.stock() == (5, 0, 0)
    assert (await shop.events(order))[-1] == "order.payment_failed"
    assert await shop.parts.reconciler.check_payments() > 0
    assert shop.gateway.intent_of(order.id).status.value == "canceled"


async def test_declines_that_come_in_one_batch_are_each_counted(sell: NewShop) -> None:
    shop = await sell(5, payment_attempts=3)
    order = await shop.pending()
    await shop.deliver(*(shop.gateway.decline(order.id, f"code_{n}") for n in range(4)))
    await shop.settle()
    failed = await shop.now(order, OrderState.PAYMENT_FAILED)
    assert failed.payment is not None
    assert (failed.payment.declines, failed.payment.last_decline) == (3, "code_2")
    (timer,) = await shop.fetch(
        "SELECT kind, at <= now() AS due FROM order_timers WHERE order_id = $1", UUID(order.id)
    )
    assert tuple(timer) == ("PAYMENT", True)  # the intent is withdrawn at once, not in five seconds


async def test_a_decline_delivered_twice_counts_once(shop: Shop) -> None:
    order = await shop.pending()
    declined = shop.gateway.decline(order.id)
    await shop.deliver(declined, declined)
    await shop.settle()
    await shop.deliver(declined)
    await shop.settle()
    waiting = await shop.now(order)
    assert waiting.payment is not None
    assert waiting.payment.declines == 1


async def test_an_intent_cancelled_at_the_gateway_ends_the_order(shop: Shop) -> None:
    order = await shop.pending(2)
    intent = await shop.gateway.cancel(shop.gateway.intent_of(order.id).id)
    await shop.deliver(event_of(intent, EventKind.CANCELED))
    await shop.settle()
    await shop.now(order, OrderState.PAYMENT_FAILED)
    assert (await shop.payment(order))["state"] == "CLOSED"
    assert await shop.stock() == (5, 0, 0)
    assert (await shop.steps(order))[-1] == (
        "PAYMENT_PENDING",
        "PAYMENT_FAILED",
        "payment_closed",
    )


@pytest.mark.parametrize(
    ("amount", "currency"),
    [(4_949, "EUR"), (4_951, "EUR"), (4_950, "USD"), (495_000, "EUR"), (1, "JPY")],
)
async def test_a_payment_of_another_amount_or_currency_is_returned_and_confirms_nothing(
    amount: int, currency: str, shop: Shop
) -> None:
    """Case 33."""
    order = await shop.pending()
    await shop.deliver(shop.gateway.take_money(order.id, amount, currency))
    await shop.settle()
    await shop.now(order, OrderState.REFUND_PENDING)
    assert await shop.entries(order) == [
        ("UNEARNED", "GATEWAY_CLEARING", currency, amount, 0),
        ("UNEARNED", "REFUND_LIABILITY", currency, 0, amount),
    ]
    assert await shop.refunds(order) == [("PENDING", amount, currency, "wrong_amount")]
    assert (await shop.inbox_of(order.id))[0]["outcome"] == "wrong_amount_returned"
    assert (await shop.steps(order))[-1][2] == "paid_wrong_amount"
    assert await shop.units(order) == []
    assert await shop.stock() == (5, 0, 0)
    await shop.pay_refunds_now()
    await shop.settle()
    refunded = await shop.now(order, OrderState.REFUNDED)
    assert refunded.refunded_minor == amount
    assert shop.gateway.intent_of(order.id).amount_refunded_minor == amount


# ---------------------------------------------------------------- dying half-way


async def test_work_that_dies_half_way_is_done_by_the_retry(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 35: the mark is set in the transaction that does the work, so both are undone."""
    settle: Any = importlib.import_module("fairdrop.checkout.settle")

    order = await shop.pending()
    event = shop.gateway.take_money(order.id)
    await shop.deliver(event)
    written = settle.insert_events

    async def die(*_: object) -> None:
        raise ConnectionResetError("the process dies here")

    monkeypatch.setattr(settle, "insert_events", die)
    with pytest.raises(Exception, match="dies here"):
        await shop.parts.settlement.settle()
    monkeypatch.setattr(settle, "insert_events", written)
    await shop.now(order, OrderState.PAYMENT_PENDING)
    assert await shop.entries(order) == []
    await shop.deliver(event)  # the gateway's retry finds the event stored, and not done
    await shop.settle()
    await shop.now(order, OrderState.CONFIRMED)
    assert await shop.entries(order) == CONFIRMED_ONCE


async def test_one_event_that_cannot_be_settled_does_not_hold_up_the_others(
    shop: Shop,
) -> None:
    """A batch failing fails its own item only. The culprit here: books that somebody else wrote."""
    spoilt, good = await shop.pending(), await shop.pending()
    async with shop.parts.database.connection() as connection:
        await connection.execute(
            "INSERT INTO ledger_entries SELECT $1::text::uuid, 'PAYMENT', account, $1::text::uuid,"
            " $2::text::uuid, 'EUR', debit, credit FROM (VALUES ('SALES', 1, 0), ('FEES', 0, 1))"
            " AS e (account, debit, credit)",
            spoilt.id,
            shop.sale.id,
        )
    await shop.deliver(shop.gateway.take_money(spoilt.id), shop.gateway.take_money(good.id))
    await shop.settle()
    await shop.now(good, OrderState.CONFIRMED)
    await shop.now(spoilt, OrderState.PAYMENT_PENDING)
    (row,) = await shop.inbox_of(spoilt.id)
    assert not row["settled"]  # kept, and tried again later, less and less often
    assert row["attempts"] > 0
    assert row["outcome"] == "failed: UniqueViolationError"
    await shop.execute("DELETE FROM webhook_due WHERE id = $1", row["id"])


async def test_a_success_of_nothing_is_kept_and_blocks_nobody(shop: Shop) -> None:
    empty, good = await shop.pending(), await shop.pending()
    await shop.deliver(
        event_of(shop.gateway.intent_of(empty.id), EventKind.SUCCEEDED, amount_minor=0),
        shop.gateway.take_money(good.id),
    )
    await shop.settle()
    await shop.now(good, OrderState.CONFIRMED)
    await shop.now(empty, OrderState.PAYMENT_PENDING)
    assert (await shop.inbox_of(empty.id))[0]["outcome"] == "nothing_to_do"


async def test_an_event_that_cannot_be_stored_fails_alone(shop: Shop) -> None:
    order = await shop.pending()
    good = shop.gateway.take_money(order.id)
    intent = shop.gateway.intent_of(order.id)
    bad = [
        event_of(intent, EventKind.SUCCEEDED, amount_minor=2**63),
        event_of(intent, EventKind.FAILED, decline_code="a\x00b"),
    ]
    answers = await asyncio.gather(
        *(shop.deliver(event) for event in (bad[0], good, bad[1])), return_exceptions=True
    )
    assert [isinstance(answer, asyncpg.DataError) for answer in answers] == [True, False, True]
    await shop.settle()
    await shop.now(order, OrderState.CONFIRMED)


async def test_an_event_about_a_refund_that_is_not_ours_changes_nothing(shop: Shop) -> None:
    order = await shop.paid()
    intent = shop.gateway.intent_of(order.id)
    for reference in (None, "made-by-hand", new_id()):
        await shop.deliver(event_of(intent, EventKind.REFUND_SUCCEEDED, refund_reference=reference))
    await shop.settle()
    await shop.now(order, OrderState.CONFIRMED)
    outcomes = [row["outcome"] for row in await shop.inbox_of(order.id)]
    assert outcomes == ["confirmed"] + ["unknown_refund"] * 3
    assert await shop.entries(order) == CONFIRMED_ONCE


async def test_everything_that_came_stays_in_the_inbox_as_proof(shop: Shop) -> None:
    order = await shop.paid()
    rows = await shop.fetch(
        "SELECT w.outcome, d.id FROM webhook_inbox w LEFT JOIN webhook_due d ON d.id = w.id"
        " WHERE order_id = $1",
        UUID(order.id),
    )
    assert [tuple(row) for row in rows] == [("confirmed", None)]
