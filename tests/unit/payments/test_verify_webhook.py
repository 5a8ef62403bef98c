"""The sandbox adapter turns a webhook into an event, or names why not; it does no I/O."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fairdrop.payments import EventKind, GatewayEvent, SandboxGateway, WebhookRefusal, signatures

SECRET = "whsec_of_this_test"
NOW_S = 1_800_000_000
DOCUMENT: dict[str, Any] = {
    "id": "evt_1",
    "type": "refund.succeeded",
    "created_ms": 1_799_999_999_000,
    "data": {
        "intent": "pi_1",
        "refund": "re_1",
        "reference": "order-1",
        "refund_reference": "refund-1",
        "amount_minor": 250,
        "currency": "JPY",
    },
}


def verify(body: bytes, header_name: str = "Sandbox-Signature") -> GatewayEvent | WebhookRefusal:
    adapter = SandboxGateway("http://gateway.example", "sk_of_this_test", SECRET)
    headers = {"Content-Type": "json", header_name: signatures.sign(SECRET.encode(), body, NOW_S)}
    return adapter.verify_webhook(headers, body, NOW_S)


@pytest.mark.parametrize("name", ["Sandbox-Signature", "sandbox-signature", "SANDBOX-SIGNATURE"])
def test_an_authentic_event_is_read_whole_whatever_the_case_of_the_header(name: str) -> None:
    assert verify(msgspec.json.encode(DOCUMENT), name) == GatewayEvent(
        id="evt_1",
        kind=EventKind.REFUND_SUCCEEDED,
        created_ms=1_799_999_999_000,
        intent_id="pi_1",
        reference="order-1",
        amount_minor=250,
        currency="JPY",
        refund_id="re_1",
        refund_reference="refund-1",
    )


def test_fields_added_later_do_no_harm() -> None:
    assert isinstance(verify(msgspec.json.encode({**DOCUMENT, "livemode": False})), GatewayEvent)


@pytest.mark.parametrize("kind", list(EventKind))
def test_every_kind_is_known_by_its_name_on_the_wire(kind: EventKind) -> None:
    event = verify(msgspec.json.encode({**DOCUMENT, "type": kind.value}))
    assert isinstance(event, GatewayEvent)
    assert event.kind is kind


def test_an_unknown_kind_is_told_apart_from_a_broken_body() -> None:
    unknown = msgspec.json.encode({**DOCUMENT, "type": "payout.paid"})
    assert verify(unknown) is WebhookRefusal.KIND_UNKNOWN


@pytest.mark.parametrize("body", [b"", b"null", b"{}", b"\xff", b'{"id":1}', b"[" * 5_000])
def test_an_authentic_body_that_is_no_event_is_malformed(body: bytes) -> None:
    assert verify(body) is WebhookRefusal.BODY_MALFORMED


def test_a_malformed_header_is_named() -> None:
    adapter = SandboxGateway("http://gateway.example", "sk_of_this_test", SECRET)
    refusal = adapter.verify_webhook({"Sandbox-Signature": "hello"}, b"{}", NOW_S)
    assert refusal is WebhookRefusal.SIGNATURE_MALFORMED
