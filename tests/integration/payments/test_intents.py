"""Intents: one key is one intent, and a closed one stays closed (SPEC O5)."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from fairdrop.payments import (
    CaptureMode,
    Gateway,
    GatewayRefused,
    GatewayUnavailable,
    Intent,
    IntentStatus,
    SandboxGateway,
)
from tests.integration.payments.running_gateway import (
    DECLINED,
    SUCCEEDS,
    Buyer,
    Json,
    RunningGateway,
    a_request,
    all_charges,
    an_intent,
    eventually,
    new_reference,
)
from tests.integration.payments.webhook_receiver import WebhookReceiver


def a_body(reference: str, **changes: Json) -> dict[str, Json]:
    return {"amount_minor": 2_500, "currency": "EUR", "reference": reference, **changes}


async def test_the_adapter_fulfils_the_protocol(adapter: SandboxGateway) -> None:
    gateway: Gateway = adapter
    assert gateway.name == "sandbox"


async def test_a_new_intent_awaits_payment_of_what_was_asked(
    adapter: SandboxGateway, gateway: RunningGateway
) -> None:
    reference = new_reference()
    intent = await adapter.create(a_request(reference, 1_234, "KWD"))
    assert intent.status is IntentStatus.REQUIRES_PAYMENT
    assert (intent.amount_minor, intent.currency, intent.reference) == (1_234, "KWD", reference)
    assert (intent.amount_received_minor, intent.amount_refunded_minor) == (0, 0)
    assert intent.pay_url == f"{gateway.base_url}/pay/{intent.id}#{intent.client_secret}"
    assert await adapter.fetch(intent.id) == intent


async def test_the_same_key_and_body_give_the_same_intent(buyer: Buyer) -> None:
    reference = new_reference()
    first = await buyer.as_shop("POST", "/v1/intents", a_body(reference), key=reference)
    second = await buyer.as_shop("POST", "/v1/intents", a_body(reference), key=reference)
    assert (first[0], second[0]) == (201, 200)
    assert first[1] == second[1]


async def test_the_order_of_fields_makes_no_other_body(buyer: Buyer) -> None:
    reference = new_reference()
    _, first = await buyer.as_shop("POST", "/v1/intents", a_body(reference), key=reference)
    turned = dict(reversed(a_body(reference).items()))
    status, second = await buyer.as_shop("POST", "/v1/intents", turned, key=reference)
    assert (status, second["id"]) == (200, first["id"])


@pytest.mark.parametrize(
    "change",
    [{"amount_minor": 2_501}, {"currency": "USD"}, {"return_url": "https://shop.example/"}],
)
async def test_the_same_key_with_another_body_is_refused(
    buyer: Buyer, change: dict[str, Json]
) -> None:
    reference = new_reference()
    _, first = await buyer.as_shop("POST", "/v1/intents", a_body(reference), key=reference)
    status, told = await buyer.as_shop(
        "POST", "/v1/intents", a_body(reference, **change), key=reference
    )
    assert (status, told["code"]) == (422, "idempotency_key_reused")
    _, now = await buyer.as_shop("GET", f"/v1/intents/{first['id']}")
    assert now == first


async def test_ten_parallel_creates_with_one_key_make_one_intent(adapter: SandboxGateway) -> None:
    request = a_request(new_reference())
    intents = await asyncio.gather(*(adapter.create(request) for _ in range(10)))
    assert len({intent.id for intent in intents}) == 1


async def test_other_keys_make_other_intents(adapter: SandboxGateway) -> None:
    request = a_request(new_reference())
    other = msgspec.structs.replace(request, idempotency_key="another-" + request.reference)
    assert (await adapter.create(request)).id != (await adapter.create(other)).id


async def test_finding_prefers_the_intent_that_has_the_money(
    adapter: SandboxGateway, buyer: Buyer
) -> None:
    reference = new_reference()
    intents = [
        await adapter.create(
            msgspec.structs.replace(a_request(reference), idempotency_key=f"{reference}-{number}")
        )
        for number in range(3)
    ]
    assert await adapter.find(new_reference()) is None
    await adapter.cancel(intents[0].id)
    found = await adapter.find(reference)
    assert found is not None
    assert found.status is IntentStatus.REQUIRES_PAYMENT
    await buyer.pay(intents[1])
    found = await adapter.find(reference)
    assert found is not None
    assert (found.id, found.status) == (intents[1].id, IntentStatus.SUCCEEDED)


async def test_a_cancelled_intent_can_never_be_paid(adapter: SandboxGateway, buyer: Buyer) -> None:
    intent = await an_intent(adapter)
    first = await adapter.cancel(intent.id)
    again = await adapter.cancel(intent.id)
    assert first == again
    assert first.status is IntentStatus.CANCELED
    status, told = await buyer.pay(intent)
    assert (status, told["code"]) == (409, "intent_canceled")
    assert (await adapter.fetch(intent.id)).amount_received_minor == 0


async def test_a_paid_intent_cannot_be_cancelled(adapter: SandboxGateway, buyer: Buyer) -> None:
    intent = await an_intent(adapter)
    await buyer.pay(intent)
    with pytest.raises(GatewayRefused) as refused:
        await adapter.cancel(intent.id)
    assert (refused.value.status, refused.value.code) == (409, "intent_succeeded")


async def test_pay_and_cancel_at_the_same_instant_never_both_win(
    adapter: SandboxGateway, buyer: Buyer
) -> None:
    for _ in range(20):
        intent = await an_intent(adapter)
        paid, cancelled = await asyncio.gather(
            buyer.pay(intent), adapter.cancel(intent.id), return_exceptions=True
        )
        assert not isinstance(paid, BaseException)
        assert (paid[0] == 200) == isinstance(cancelled, GatewayRefused)


async def test_capture_agrees_with_what_automatic_capture_took(
    adapter: SandboxGateway, buyer: Buyer
) -> None:
    intent = await an_intent(adapter, 900)
    with pytest.raises(GatewayRefused, match="not_capturable"):
        await adapter.capture(intent.id, 900)
    await buyer.pay(intent)
    assert (await adapter.capture(intent.id, 900)).amount_received_minor == 900
    with pytest.raises(GatewayRefused, match="not_capturable"):
        await adapter.capture(intent.id, 500)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"amount_minor": 0}, "invalid_request"),
        ({"amount_minor": -5}, "invalid_request"),
        ({"amount_minor": 12.5}, "invalid_request"),
        ({"amount_minor": "100"}, "invalid_request"),
        ({"amount_minor": 10**13}, "invalid_request"),
        ({"currency": "eur"}, "invalid_currency"),
        ({"currency": "EURO"}, "invalid_currency"),
        ({"capture": "later"}, "invalid_request"),
        ({"amount": 100}, "invalid_request"),
        ({"return_url": "javascript:alert(1)"}, "invalid_return_url"),
        ({"return_url": "//shop.example/"}, "invalid_return_url"),
        ({"return_url": "/orders/1"}, "invalid_return_url"),
        ({"return_url": "https://user@shop.example/"}, "invalid_return_url"),
        ({"return_url": "https://shop.example:port/"}, "invalid_return_url"),
        ({"return_url": "https://shop.example/\n"}, "invalid_return_url"),
        ({"return_url": "data:text/html,hello"}, "invalid_return_url"),
    ],
)
async def test_a_wrong_request_is_refused_and_makes_nothing(
    buyer: Buyer, change: dict[str, Json], code: str
) -> None:
    reference = new_reference()
    status, told = await buyer.as_shop(
        "POST", "/v1/intents", a_body(reference, **change), key=reference
    )
    assert (status, told["code"]) == (422, code)
    _, found = await buyer.as_shop("GET", f"/v1/intents?reference={reference}")
    assert found == {"data": []}


@pytest.mark.parametrize("reference", ["", "two words", "ümlaut", "x" * 101, "line\n"])
async def test_a_reference_is_printable_and_short(buyer: Buyer, reference: str) -> None:
    key = new_reference()
    status, told = await buyer.as_shop("POST", "/v1/intents", a_body(reference), key=key)
    assert (status, told["code"]) == (422, "invalid_request")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "malformed_json"),
        (b"{", 400, "malformed_json"),
        (b"\xff\xfe", 400, "malformed_json"),
        (b"[]", 422, "invalid_request"),
        (b"{}", 422, "invalid_request"),
        (b"x" * 20_000, 413, "body_too_large"),
    ],
)
async def test_a_body_that_is_no_request_is_refused(
    buyer: Buyer, gateway: RunningGateway, body: bytes, status: int, code: str
) -> None:
    headers = {"Authorization": f"Bearer {gateway.secret_key}", "Idempotency-Key": new_reference()}
    answered, told = await buyer.call("POST", "/v1/intents", body=body, headers=headers)
    assert (answered, told["code"]) == (status, code)


@pytest.mark.parametrize(
    ("key", "code"),
    [
        (None, "idempotency_key_required"),
        ("", "idempotency_key_required"),
        ("a b", "idempotency_key_malformed"),
        ("k" * 101, "idempotency_key_malformed"),
    ],
)
async def test_a_change_needs_a_key(buyer: Buyer, key: str | None, code: str) -> None:
    status, told = await buyer.as_shop("POST", "/v1/intents", a_body(new_reference()), key=key)
    assert (status, told["code"]) == (400, code)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/intents"),
        ("GET", "/v1/intents?reference=x"),
        ("GET", "/v1/intents/pi_1"),
        ("POST", "/v1/intents/pi_1/cancel"),
        ("POST", "/v1/intents/pi_1/refunds"),
        ("GET", "/v1/charges"),
        ("GET", "/v1/refunds"),
        ("GET", "/v1/mischief"),
        ("PUT", "/v1/mischief"),
        ("GET", "/v1/deliveries"),
    ],
)
async def test_the_shops_side_needs_the_secret_key(
    buyer: Buyer, gateway: RunningGateway, method: str, path: str
) -> None:
    for authorization in (
        None,
        "Bearer ",
        gateway.secret_key,
        f"Bearer {gateway.secret_key}x",
        f"Bearer {gateway.secret_key[:-1]}",
        f"bearer {gateway.webhook_secret}",
    ):
        headers = {} if authorization is None else {"Authorization": authorization}
        status, told = await buyer.call(method, path, headers=headers)
        assert (status, told["code"]) == (401, "unauthorized")


async def test_what_is_not_there_is_a_problem_document(
    buyer: Buyer, adapter: SandboxGateway
) -> None:
    assert (await buyer.call("GET", "/nothing"))[1]["code"] == "not_found"
    assert (await buyer.call("DELETE", "/v1/intents"))[1]["code"] == "method_not_allowed"
    assert (await buyer.as_shop("GET", "/v1/intents"))[1]["code"] == "reference_required"
    with pytest.raises(GatewayRefused, match="unknown_intent"):
        await adapter.fetch("pi_unknown")
    with pytest.raises(GatewayRefused, match="unknown_intent"):
        await adapter.cancel("pi_unknown")
    with pytest.raises(GatewayRefused, match="not_found"):
        await adapter.fetch("../../livez?")


async def test_it_says_that_it_lives(buyer: Buyer) -> None:
    assert await buyer.call("GET", "/livez") == (200, {"status": "ok"})


async def test_a_gateway_that_does_not_answer_is_unavailable_not_refusing() -> None:
    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()  # until the other side gives up
        writer.close()

    silent = await asyncio.start_server(say_nothing, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    adapter = SandboxGateway(f"http://127.0.0.1:{port}", "s" * 16, "w" * 16, total_timeout_s=0.2)
    async with adapter:
        async with silent:
            with pytest.raises(GatewayUnavailable):
                await adapter.fetch("pi_1")
        with pytest.raises(GatewayUnavailable):
            await adapter.create(a_request(new_reference()))


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{}",
        b"not HTTP at all\r\n\r\n",
    ],
)
async def test_an_answer_that_proves_nothing_is_unavailable(answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, SandboxGateway(f"http://127.0.0.1:{port}", "s" * 16, "w" * 16) as adapter:
        with pytest.raises(GatewayUnavailable):
            await adapter.fetch("pi_1")


async def test_the_status_is_told_to_the_holder_of_the_client_secret_only(
    adapter: SandboxGateway, buyer: Buyer
) -> None:
    intent = await an_intent(adapter)
    path = f"/v1/intents/{intent.id}/status"
    right, wrong = {"client_secret": intent.client_secret}, {"client_secret": "0" * 64}
    assert await buyer.call("POST", path, json=right) == (200, {"status": "requires_payment"})
    await buyer.pay(intent, DECLINED)
    declined = {"status": "requires_payment", "decline_code": "card_declined"}
    assert await buyer.call("POST", path, json=right) == (200, declined)
    await buyer.pay(intent, SUCCEEDS)
    assert await buyer.call("POST", path, json=right) == (200, {"status": "succeeded"})
    assert (await buyer.call("POST", path, json=wrong))[0] == 403


async def a_manual_intent(adapter: SandboxGateway, amount_minor: int = 900) -> Intent:
    request = a_request(new_reference(), amount_minor)
    return await adapter.create(msgspec.structs.replace(request, capture=CaptureMode.MANUAL))


async def test_money_that_is_set_aside_is_taken_by_the_capture_once(
    adapter: SandboxGateway, buyer: Buyer, receiver: WebhookReceiver
) -> None:
    """O4, case 22: authorise, then capture; a capture that is repeated takes nothing more."""
    intent = await a_manual_intent(adapter)
    for _ in range(2):
        assert (await buyer.pay(intent))[1] == {"status": "requires_capture"}
    held = await adapter.fetch(intent.id)
    assert (held.status, held.amount_received_minor) == (IntentStatus.REQUIRES_CAPTURE, 0)
    assert await all_charges(adapter, intent.id) == []
    with pytest.raises(GatewayRefused, match="not_capturable"):
        await adapter.capture(intent.id, 899)
    captured = await asyncio.gather(*(adapter.capture(intent.id, 900) for _ in range(5)))
    assert {(one.status, one.amount_received_minor) for one in captured} == {
        (IntentStatus.SUCCEEDED, 900)
    }
    assert await all_charges(adapter, intent.id) == [900]
    await eventually(lambda: len(receiver.accepted(intent.reference)) == 2)
    assert [one.document["type"] for one in receiver.accepted(intent.reference)] == [
        "payment.authorized",
        "payment.succeeded",
    ]


async def test_money_that_is_let_go_is_never_taken(adapter: SandboxGateway, buyer: Buyer) -> None:
    intent = await a_manual_intent(adapter)
    await buyer.pay(intent)
    assert (await adapter.cancel(intent.id)).status is IntentStatus.CANCELED
    with pytest.raises(GatewayRefused, match="not_capturable"):
        await adapter.capture(intent.id, 900)
    assert await all_charges(adapter, intent.id) == []


async def test_with_manual_capture_nothing_can_be_refunded_before_it_is_taken(
    adapter: SandboxGateway, buyer: Buyer
) -> None:
    intent = await a_manual_intent(adapter)
    await buyer.pay(intent)
    with pytest.raises(GatewayRefused, match="over_refund"):
        await adapter.refund(intent.id, 900, new_reference())
