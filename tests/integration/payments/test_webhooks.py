"""Webhooks: signed, at least once, until accepted; and every mischief on the way (SPEC O4, O6)."""

from __future__ import annotations

import time
from itertools import pairwise

import aiohttp

from fairdrop.payments import EventKind, GatewayEvent, SandboxGateway, WebhookRefusal
from fairdrop.payments.signatures import TOLERANCE_S
from tests.integration.payments.running_gateway import (
    DECLINED,
    Buyer,
    Connect,
    RunningGateway,
    an_intent,
    eventually,
)
from tests.integration.payments.webhook_receiver import Received, WebhookReceiver


def verified(adapter: SandboxGateway, received: Received) -> GatewayEvent:
    event = adapter.verify_webhook(received.headers, received.body, int(time.time()))
    assert isinstance(event, GatewayEvent)
    return event


async def test_each_kind_of_event_arrives_signed_and_complete(
    adapter: SandboxGateway, buyer: Buyer, receiver: WebhookReceiver
) -> None:
    intent = await an_intent(adapter, 1_000)
    reference = intent.reference
    await buyer.pay(intent, DECLINED)
    await eventually(lambda: len(receiver.accepted(reference)) == 1)
    await buyer.pay(intent)
    await eventually(lambda: len(receiver.accepted(reference)) == 2)
    refund = await adapter.refund(intent.id, 400, f"refund-{reference}")
    await eventually(lambda: len(receiver.accepted(reference)) == 3)

    failed, succeeded, refunded = (
        verified(adapter, received) for received in receiver.accepted(reference)
    )
    for event in (failed, succeeded, refunded):
        assert (event.intent_id, event.reference, event.currency) == (intent.id, reference, "EUR")
    assert (failed.kind, failed.decline_code) == (EventKind.FAILED, "card_declined")
    assert (succeeded.kind, succeeded.amount_minor) == (EventKind.SUCCEEDED, 1_000)
    assert succeeded.charge_id is not None
    charges = await adapter.charges(limit=1_000)
    assert succeeded.charge_id in {charge.id for charge in charges.data}
    assert (refunded.kind, refunded.amount_minor) == (EventKind.REFUND_SUCCEEDED, 400)
    assert refunded.refund_id == refund.id
    assert refunded.refund_reference == f"refund-{reference}"
    assert len({failed.id, succeeded.id, refunded.id}) == 3


async def test_a_cancellation_is_told_once(
    adapter: SandboxGateway, buyer: Buyer, receiver: WebhookReceiver
) -> None:
    intent = await an_intent(adapter)
    await adapter.cancel(intent.id)
    await adapter.cancel(intent.id)
    await eventually(lambda: receiver.accepted(intent.reference))
    await eventually(lambda: _none_pending(buyer))
    (received,) = receiver.received(intent.reference)
    event = verified(adapter, received)
    assert (event.kind, event.charge_id) == (EventKind.CANCELED, None)


async def test_a_tampered_or_stale_webhook_is_refused(
    adapter: SandboxGateway, buyer: Buyer, receiver: WebhookReceiver
) -> None:
    intent = await an_intent(adapter)
    await buyer.pay(intent)
    await eventually(lambda: receiver.accepted(intent.reference))
    (received,) = receiver.accepted(intent.reference)
    headers, body, now_s = received.headers, received.body, int(time.time())

    tampered = body.replace(b'"amount_minor":2500', b'"amount_minor":1')
    assert tampered != body
    assert adapter.verify_webhook(headers, tampered, now_s) is WebhookRefusal.SIGNATURE_WRONG
    assert adapter.verify_webhook({}, body, now_s) is WebhookRefusal.SIGNATURE_MISSING
    for clock_s in (now_s + TOLERANCE_S + 60, now_s - TOLERANCE_S - 60):
        stale = adapter.verify_webhook(headers, body, clock_s)
        assert stale is WebhookRefusal.TIMESTAMP_STALE
    async with SandboxGateway("http://127.0.0.1:1", "s" * 16, "another secret") as stranger:
        refusal = stranger.verify_webhook(headers, body, now_s)
        assert refusal is WebhookRefusal.SIGNATURE_WRONG


async def test_a_refused_webhook_is_sent_again_ever_later_until_accepted(
    adapter: SandboxGateway, buyer: Buyer, receiver: WebhookReceiver
) -> None:
    intent = await an_intent(adapter)
    receiver.refuse_next(intent.reference, times=3)
    await buyer.pay(intent)
    await eventually(lambda: receiver.accepted(intent.reference))
    sent = receiver.received(intent.reference)
    assert [one.answered for one in sent] == [503, 503, 503, 200]
    assert len({one.body for one in sent}) == 1
    pauses_ms = [(later.at - sooner.at) * 1_000 for sooner, later in pairwise(sent)]
    assert pauses_ms[0] >= 195
    assert pauses_ms[1] >= 395
    assert pauses_ms[2] >= 795
    for one in sent:
        assert verified(adapter, one).kind is EventKind.SUCCEEDED


async def test_a_duplicated_event_comes_several_times_with_one_id(
    adapter: SandboxGateway, buyer: Buyer, receiver: WebhookReceiver
) -> None:
    intent = await an_intent(adapter)
    await buyer.pay(intent, duplicate=2)
    await eventually(lambda: len(receiver.accepted(intent.reference)) == 3)
    await eventually(lambda: _none_pending(buyer))
    events = [verified(adapter, one) for one in receiver.accepted(intent.reference)]
    assert len(events) == 3
    assert len({event.id for event in events}) == 1


async def test_a_dropped_event_is_never_sent_but_the_money_is_in_the_record(
    adapter: SandboxGateway, buyer: Buyer, receiver: WebhookReceiver
) -> None:
    dropped, other = await an_intent(adapter), await an_intent(adapter)
    assert await buyer.pay(dropped, drop=True) == (200, {"status": "succeeded"})
    await buyer.pay(other)
    await eventually(lambda: receiver.accepted(other.reference))
    await eventually(lambda: _none_pending(buyer))  # nothing is left that could still be sent
    assert receiver.received(dropped.reference) == []
    found = await adapter.find(dropped.reference)
    assert found is not None
    assert found.amount_received_minor == 2_500


async def test_a_delayed_event_comes_after_its_delay(
    adapter: SandboxGateway, buyer: Buyer, receiver: WebhookReceiver
) -> None:
    intent = await an_intent(adapter)
    began = time.monotonic()
    assert await buyer.pay(intent, delay_webhook_ms=400) == (200, {"status": "succeeded"})
    await eventually(lambda: receiver.accepted(intent.reference))
    (received,) = receiver.accepted(intent.reference)
    assert received.at - began >= 0.395


async def test_a_reordered_event_lets_the_next_one_of_its_intent_go_first(
    adapter: SandboxGateway, buyer: Buyer, receiver: WebhookReceiver
) -> None:
    intent = await an_intent(adapter)
    await buyer.pay(intent, DECLINED, reorder=True)
    await buyer.pay(intent)
    await eventually(lambda: len(receiver.accepted(intent.reference)) == 2)
    assert receiver.kinds(intent.reference) == ["payment.succeeded", "payment.failed"]
    first, second = (verified(adapter, one) for one in receiver.accepted(intent.reference))
    assert first.created_ms >= second.created_ms


async def test_a_reordered_event_waits_even_if_the_next_one_is_refused_at_first(
    adapter: SandboxGateway, buyer: Buyer, receiver: WebhookReceiver
) -> None:
    intent = await an_intent(adapter)
    receiver.refuse_next(intent.reference, times=3)
    await buyer.pay(intent, DECLINED, reorder=True)
    await buyer.pay(intent)
    await eventually(lambda: len(receiver.accepted(intent.reference)) == 2)
    kinds = [one.kind for one in receiver.received(intent.reference)]
    assert kinds == ["payment.succeeded"] * 4 + ["payment.failed"]


async def test_a_reordered_event_with_nothing_behind_it_goes_by_itself(
    adapter: SandboxGateway, buyer: Buyer, receiver: WebhookReceiver
) -> None:
    intent = await an_intent(adapter)
    await buyer.pay(intent, reorder=True)
    await eventually(lambda: receiver.accepted(intent.reference))
    assert receiver.kinds(intent.reference) == ["payment.succeeded"]


async def test_a_declared_decline_overrules_a_good_card(
    adapter: SandboxGateway, buyer: Buyer, receiver: WebhookReceiver
) -> None:
    intent = await an_intent(adapter)
    _, told = await buyer.pay(intent, decline="expired_card")
    assert told == {"status": "requires_payment", "decline_code": "expired_card"}
    await eventually(lambda: receiver.accepted(intent.reference))
    assert receiver.kinds(intent.reference) == ["payment.failed"]


async def test_gateway_wide_mischief_strikes_by_its_shares(
    own_gateway: RunningGateway,
    own_receiver: WebhookReceiver,
    connect: Connect,
    session: aiohttp.ClientSession,
) -> None:
    adapter = connect(own_gateway)
    buyer = Buyer(own_gateway, session)
    defaults = {"seed": 4, "drop_share": 0.5, "duplicate_share": 0.5, "duplicate_copies": 1}
    status, told = await buyer.as_shop("PUT", "/v1/mischief", defaults)
    assert status == 200
    assert {name: told[name] for name in defaults} == defaults
    assert await buyer.as_shop("GET", "/v1/mischief") == (200, told)

    references = []
    for _ in range(40):
        intent = await an_intent(adapter)
        await buyer.pay(intent)
        references.append(intent.reference)
    await eventually(lambda: _none_pending(buyer))
    arrivals = [len(own_receiver.accepted(reference)) for reference in references]
    assert set(arrivals) == {0, 1, 2}
    _, figures = await buyer.as_shop("GET", "/v1/deliveries")
    assert figures["dropped"] == arrivals.count(0)
    assert figures["copies"] == arrivals.count(2)
    assert figures["accepted"] == sum(arrivals)

    # The same seed again, after a restart: the same payments suffer the same.
    own_gateway.kill()
    own_gateway.start()
    assert await buyer.as_shop("GET", "/v1/mischief") == (200, told)
    repeated = []
    for _ in range(40):
        intent = await an_intent(adapter)
        await buyer.pay(intent)
        repeated.append(intent.reference)
    await eventually(lambda: _none_pending(buyer))
    assert [len(own_receiver.accepted(reference)) for reference in repeated] == arrivals


async def test_a_payment_with_mischief_of_its_own_is_left_out_of_the_gateways(
    own_gateway: RunningGateway,
    own_receiver: WebhookReceiver,
    connect: Connect,
    session: aiohttp.ClientSession,
) -> None:
    adapter = connect(own_gateway)
    buyer = Buyer(own_gateway, session)
    await buyer.as_shop("PUT", "/v1/mischief", {"drop_share": 1, "decline_share": 1})
    intent = await an_intent(adapter)
    assert (await buyer.pay(intent))[1]["status"] == "requires_payment"
    assert (await buyer.pay(intent, duplicate=1))[1] == {"status": "succeeded"}
    await eventually(lambda: len(own_receiver.accepted(intent.reference)) == 2)
    assert set(own_receiver.kinds(intent.reference)) == {"payment.succeeded"}


async def test_mischief_in_shares_above_one_is_refused(buyer: Buyer) -> None:
    for body in ({"drop_share": 1.5}, {"drop_share": -0.1}, {"drops": 1}, {"delay_ms": -1}):
        status, told = await buyer.as_shop("PUT", "/v1/mischief", body)
        assert (status, told["code"]) == (422, "invalid_request")


async def test_many_webhooks_wait_for_a_merchant_that_is_away(
    own_gateway: RunningGateway,
    own_receiver: WebhookReceiver,
    connect: Connect,
    session: aiohttp.ClientSession,
) -> None:
    """More than the sender keeps in memory, so that the table has to feed it."""
    adapter = connect(own_gateway)
    buyer = Buyer(own_gateway, session)
    own_receiver.refuse_all = True
    intent = await an_intent(adapter)
    for _ in range(30):
        await buyer.pay(intent, DECLINED, duplicate=20)
    assert await buyer.pending() == 630
    own_receiver.refuse_all = False
    await eventually(lambda: _none_pending(buyer))
    assert len(own_receiver.accepted(intent.reference)) == 630


async def _none_pending(buyer: Buyer) -> bool:
    return await buyer.pending() == 0
