"""Refunds: never more than was received, and each of our refunds once (SPEC O9)."""

from __future__ import annotations

import asyncio

import pytest

from fairdrop.payments import GatewayRefund, GatewayRefused, Intent, SandboxGateway
from tests.integration.payments.running_gateway import Buyer, an_intent, new_reference


@pytest.fixture
async def paid(adapter: SandboxGateway, buyer: Buyer) -> Intent:
    """An intent that has received 1,000."""
    intent = await an_intent(adapter, 1_000)
    await buyer.pay(intent)
    return intent


async def refunded_minor(adapter: SandboxGateway, intent: Intent) -> int:
    """What the refunds in the record add up to, which the intent has to agree with."""
    total, after = 0, None
    while True:
        page = await adapter.refunds(after, limit=1_000)
        total += sum(refund.amount_minor for refund in page.data if refund.intent == intent.id)
        if page.next is None:
            break
        after = page.next
    assert (await adapter.fetch(intent.id)).amount_refunded_minor == total
    return total


async def test_a_refund_in_parts_up_to_the_whole(adapter: SandboxGateway, paid: Intent) -> None:
    refund = await adapter.refund(paid.id, 400, "refund-a-" + paid.reference)
    assert (refund.status, refund.amount_minor, refund.intent) == ("succeeded", 400, paid.id)
    assert (refund.reference, refund.currency) == ("refund-a-" + paid.reference, "EUR")
    await adapter.refund(paid.id, 600, "refund-b-" + paid.reference)
    assert await refunded_minor(adapter, paid) == 1_000
    with pytest.raises(GatewayRefused) as refused:
        await adapter.refund(paid.id, 1, "refund-c-" + paid.reference)
    assert (refused.value.status, refused.value.code) == (422, "over_refund")
    assert await refunded_minor(adapter, paid) == 1_000


async def test_parallel_refunds_never_exceed_what_was_received(
    adapter: SandboxGateway, paid: Intent
) -> None:
    results = await asyncio.gather(
        *(adapter.refund(paid.id, 300, f"{paid.reference}-{number}") for number in range(10)),
        return_exceptions=True,
    )
    made = [result for result in results if isinstance(result, GatewayRefund)]
    refused = [result for result in results if isinstance(result, GatewayRefused)]
    assert (len(made), len(refused)) == (3, 7)
    assert {error.code for error in refused} == {"over_refund"}
    assert await refunded_minor(adapter, paid) == 900


async def test_the_same_refund_id_gives_the_money_back_once(
    adapter: SandboxGateway, paid: Intent
) -> None:
    refund_id = new_reference()
    refunds = await asyncio.gather(*(adapter.refund(paid.id, 300, refund_id) for _ in range(10)))
    assert len({refund.id for refund in refunds}) == 1
    assert await refunded_minor(adapter, paid) == 300


async def test_the_same_refund_id_with_another_amount_is_refused(
    adapter: SandboxGateway, paid: Intent
) -> None:
    refund_id = new_reference()
    await adapter.refund(paid.id, 300, refund_id)
    with pytest.raises(GatewayRefused) as refused:
        await adapter.refund(paid.id, 301, refund_id)
    assert (refused.value.status, refused.value.code) == (422, "idempotency_key_reused")
    assert await refunded_minor(adapter, paid) == 300


async def test_a_reference_under_another_key_is_the_same_refund(buyer: Buyer, paid: Intent) -> None:
    path, reference = f"/v1/intents/{paid.id}/refunds", new_reference()
    body = {"amount_minor": 300, "reference": reference}
    first = await buyer.as_shop("POST", path, body, key=f"{reference}-1")
    second = await buyer.as_shop("POST", path, body, key=f"{reference}-2")
    assert (first[0], second[0]) == (201, 200)
    assert first[1] == second[1]
    body["amount_minor"] = 200
    status, told = await buyer.as_shop("POST", path, body, key=f"{reference}-3")
    assert (status, told["code"]) == (422, "reference_reused")


async def test_what_was_never_paid_cannot_be_refunded(adapter: SandboxGateway) -> None:
    intent = await an_intent(adapter)
    with pytest.raises(GatewayRefused, match="over_refund"):
        await adapter.refund(intent.id, 1, new_reference())
    with pytest.raises(GatewayRefused, match="unknown_intent"):
        await adapter.refund("pi_unknown", 1, new_reference())


@pytest.mark.parametrize("amount", [0, -1, 1.5, "1"])
async def test_a_refund_is_of_a_positive_whole_amount(
    buyer: Buyer, paid: Intent, amount: object
) -> None:
    body = {"amount_minor": amount, "reference": new_reference()}
    status, told = await buyer.as_shop(
        "POST", f"/v1/intents/{paid.id}/refunds", body, key=new_reference()
    )
    assert (status, told["code"]) == (422, "invalid_request")
