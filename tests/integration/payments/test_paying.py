"""Paying: at most one charge, whatever the buyer does (SPEC O5, O8)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from fairdrop.payments import GatewayRefused, IntentStatus, SandboxGateway
from tests.integration.payments.running_gateway import (
    DECLINED,
    INSUFFICIENT_FUNDS,
    SLOW,
    SUCCEEDS,
    Buyer,
    Json,
    all_charges,
    an_intent,
    eventually,
)


def has_status(
    adapter: SandboxGateway, intent_id: str, status: IntentStatus
) -> Callable[[], Awaitable[bool]]:
    async def condition() -> bool:
        return (await adapter.fetch(intent_id)).status is status

    return condition


async def test_a_good_card_pays_the_whole_amount(adapter: SandboxGateway, buyer: Buyer) -> None:
    intent = await an_intent(adapter, 4_200)
    assert await buyer.pay(intent) == (200, {"status": "succeeded"})
    paid = await adapter.fetch(intent.id)
    assert paid.status is IntentStatus.SUCCEEDED
    assert paid.amount_received_minor == 4_200
    assert await all_charges(adapter, intent.id) == [4_200]


async def test_ten_parallel_pays_make_one_charge(adapter: SandboxGateway, buyer: Buyer) -> None:
    intent = await an_intent(adapter)
    answers = await asyncio.gather(*(buyer.pay(intent) for _ in range(10)))
    assert answers == [(200, {"status": "succeeded"})] * 10
    assert await all_charges(adapter, intent.id) == [2_500]


async def test_paying_again_later_charges_nothing(adapter: SandboxGateway, buyer: Buyer) -> None:
    intent = await an_intent(adapter)
    for card in (SUCCEEDS, SUCCEEDS, DECLINED, SLOW):
        assert await buyer.pay(intent, card) == (200, {"status": "succeeded"})
    assert await all_charges(adapter, intent.id) == [2_500]


async def test_a_declined_attempt_leaves_the_intent_open_for_the_next(
    adapter: SandboxGateway, buyer: Buyer
) -> None:
    intent = await an_intent(adapter)
    for card, code in ((DECLINED, "card_declined"), (INSUFFICIENT_FUNDS, "insufficient_funds")):
        answer = await buyer.pay(intent, card)
        assert answer == (200, {"status": "requires_payment", "decline_code": code})
        declined = await adapter.fetch(intent.id)
        assert declined.status is IntentStatus.REQUIRES_PAYMENT
        assert (declined.last_decline, declined.amount_received_minor) == (code, 0)
    assert await buyer.pay(intent) == (200, {"status": "succeeded"})
    assert await all_charges(adapter, intent.id) == [2_500]


async def test_a_slow_bank_is_asked_once_and_cannot_be_cancelled(
    adapter: SandboxGateway, buyer: Buyer
) -> None:
    intent = await an_intent(adapter)
    assert await buyer.pay(intent, delay_ms=700) == (200, {"status": "processing"})
    with pytest.raises(GatewayRefused, match="intent_processing"):
        await adapter.cancel(intent.id)
    assert await buyer.pay(intent) == (200, {"status": "processing"})
    assert await all_charges(adapter, intent.id) == []
    await eventually(has_status(adapter, intent.id, IntentStatus.SUCCEEDED))
    assert await all_charges(adapter, intent.id) == [2_500]


async def test_a_slow_bank_may_decline_and_the_buyer_tries_again(
    adapter: SandboxGateway, buyer: Buyer
) -> None:
    intent = await an_intent(adapter)
    answer = await buyer.pay(intent, DECLINED, delay_ms=50)
    assert answer == (200, {"status": "processing"})
    await eventually(has_status(adapter, intent.id, IntentStatus.REQUIRES_PAYMENT))
    assert (await adapter.fetch(intent.id)).last_decline == "card_declined"
    assert await buyer.pay(intent) == (200, {"status": "succeeded"})


async def test_the_slow_card_is_under_way_at_first(adapter: SandboxGateway, buyer: Buyer) -> None:
    intent = await an_intent(adapter)
    assert await buyer.pay(intent, SLOW) == (200, {"status": "processing"})
    assert (await adapter.fetch(intent.id)).status is IntentStatus.PROCESSING


async def test_a_wrong_client_secret_pays_nothing(adapter: SandboxGateway, buyer: Buyer) -> None:
    intent = await an_intent(adapter)
    other = await an_intent(adapter)
    for secret in ("", "0" * 64, intent.client_secret[:-1], other.client_secret, "ü"):
        body = {"client_secret": secret, "card": SUCCEEDS}
        status, told = await buyer.call("POST", f"/v1/intents/{intent.id}/pay", json=body)
        assert (status, told["code"]) == (403, "wrong_client_secret")
    assert (await adapter.fetch(intent.id)).status is IntentStatus.REQUIRES_PAYMENT


async def test_only_test_cards_are_taken(adapter: SandboxGateway, buyer: Buyer) -> None:
    intent = await an_intent(adapter)
    status, told = await buyer.pay(intent, "4111111111111111")
    assert (status, told["code"]) == (422, "unknown_card")
    assert "4111" not in str(told)
    assert (await adapter.fetch(intent.id)).last_decline is None
    assert await buyer.pay(intent, "4242 4242 4242 4242") == (200, {"status": "succeeded"})


@pytest.mark.parametrize(
    "mischief",
    [{"delay_ms": -1}, {"duplicate": 21}, {"drop": "yes"}, {"explode": True}, {"decline": "X Y"}],
)
async def test_mischief_that_makes_no_sense_is_refused(
    adapter: SandboxGateway, buyer: Buyer, mischief: dict[str, Json]
) -> None:
    intent = await an_intent(adapter)
    status, told = await buyer.pay(intent, **mischief)
    assert (status, told["code"]) == (422, "invalid_request")
    assert (await adapter.fetch(intent.id)).status is IntentStatus.REQUIRES_PAYMENT
