"""Stripe's webhooks in their recorded shapes: signature and age checked, then read (O6)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import stripe

from fairdrop.payments import EventKind, GatewayEvent, WebhookRefusal
from fairdrop.payments.stripe import API_VERSION, StripeGateway

SECRET = "whsec_of_this_test"
NOW_S = 1_800_000_000
ORDER = "019b0000-0000-7000-8000-000000000001"
PAYMENT = {
    "id": "pi_1",
    "object": "payment_intent",
    "amount": 4_950,
    "amount_capturable": 0,
    "amount_received": 4_950,
    "capture_method": "automatic",
    "client_secret": "pi_1_secret_x",
    "created": NOW_S - 60,
    "currency": "eur",
    "last_payment_error": None,
    "latest_charge": "ch_1",
    "metadata": {"reference": ORDER},
    "status": "succeeded",
}
REFUND = {
    "id": "re_1",
    "object": "refund",
    "amount": 100,
    "charge": "ch_1",
    "created": NOW_S - 5,
    "currency": "eur",
    "metadata": {"reference": "refund-1", "order": ORDER},
    "payment_intent": "pi_1",
    "status": "succeeded",
}
SESSION = {
    "id": "cs_test_1",
    "object": "checkout.session",
    "amount_total": 4_950,
    "client_reference_id": ORDER,
    "created": NOW_S - 60,
    "currency": "eur",
    "payment_intent": None,
    "status": "expired",
    "url": None,
}


def body(kind: str, about: dict[str, Any], **changes: Any) -> str:
    document = {
        "id": "evt_1",
        "object": "event",
        "api_version": API_VERSION,
        "created": NOW_S - 1,
        "type": kind,
        "data": {"object": {**about, **changes}},
    }
    return msgspec.json.encode(document).decode()


def verify(
    text: str, *, secret: str = SECRET, signed_s: int = NOW_S, header: str | None = None
) -> GatewayEvent | WebhookRefusal:
    adapter = StripeGateway("sk_of_this_test", SECRET)
    if header is None:
        header = stripe.WebhookSignature.generate_signature_header(text, secret, signed_s)
    headers = {"content-type": "application/json", "Stripe-Signature": header}
    return adapter.verify_webhook(headers, text.encode(), NOW_S)


def event(kind: EventKind, amount: int = 4_950, **changes: Any) -> GatewayEvent:
    return GatewayEvent(
        **{
            "id": "evt_1",
            "kind": kind,
            "created_ms": (NOW_S - 1) * 1_000,
            "intent_id": "pi_1",
            "reference": ORDER,
            "amount_minor": amount,
            "currency": "EUR",
            **changes,
        }
    )


EVENTS = [
    ("payment_intent.succeeded", PAYMENT, {}, event(EventKind.SUCCEEDED)),
    # What came in counts, not what was asked for (case 33).
    (
        "payment_intent.succeeded",
        PAYMENT,
        {"amount_received": 4_949},
        event(EventKind.SUCCEEDED, 4_949),
    ),
    (
        "payment_intent.amount_capturable_updated",
        PAYMENT,
        {"status": "requires_capture", "amount_capturable": 4_950, "amount_received": 0},
        event(EventKind.AUTHORIZED),
    ),
    (
        "payment_intent.payment_failed",
        PAYMENT,
        {
            "status": "requires_payment_method",
            "last_payment_error": {"code": "card_declined", "decline_code": "insufficient_funds"},
        },
        event(EventKind.FAILED, decline_code="insufficient_funds"),
    ),
    ("payment_intent.canceled", PAYMENT, {"status": "canceled"}, event(EventKind.CANCELED)),
    ("checkout.session.expired", SESSION, {}, event(EventKind.CANCELED, intent_id="cs_test_1")),
    (
        "refund.updated",
        REFUND,
        {},
        event(EventKind.REFUND_SUCCEEDED, 100, refund_id="re_1", refund_reference="refund-1"),
    ),
    # Case 23: yen are yen, and crowns are told with two decimals that are always 0.
    (
        "payment_intent.succeeded",
        PAYMENT,
        {"currency": "jpy", "amount_received": 80},
        event(EventKind.SUCCEEDED, 80, currency="JPY"),
    ),
    (
        "payment_intent.succeeded",
        PAYMENT,
        {"currency": "isk", "amount_received": 8_000},
        event(EventKind.SUCCEEDED, 80, currency="ISK"),
    ),
    # Nothing for us: of another shop on the account, not done yet, of no interest.
    ("payment_intent.succeeded", PAYMENT, {"metadata": {}}, WebhookRefusal.KIND_UNKNOWN),
    ("refund.updated", REFUND, {"status": "pending"}, WebhookRefusal.KIND_UNKNOWN),
    ("refund.created", REFUND, {"metadata": {}}, WebhookRefusal.KIND_UNKNOWN),
    ("customer.created", {"id": "cus_1"}, {}, WebhookRefusal.KIND_UNKNOWN),
    ("payment_intent.succeeded", {"id": "pi_1"}, {}, WebhookRefusal.BODY_MALFORMED),
    ("payment_intent.succeeded", PAYMENT, {"amount": "4950"}, WebhookRefusal.BODY_MALFORMED),
]


@pytest.mark.parametrize(("kind", "about", "changes", "expected"), EVENTS)
def test_an_authentic_webhook_says_what_happened(
    kind: str,
    about: dict[str, Any],
    changes: dict[str, Any],
    expected: GatewayEvent | WebhookRefusal,
) -> None:
    assert verify(body(kind, about, **changes)) == expected


@pytest.mark.parametrize("text", ["", "no JSON", "[]", "{}", '"text"'])
def test_an_authentic_body_that_is_no_event_is_refused(text: str) -> None:
    assert verify(text) is WebhookRefusal.BODY_MALFORMED


def test_a_signature_of_somebody_else_is_refused() -> None:
    text = body("payment_intent.succeeded", PAYMENT)
    assert verify(text, secret="whsec_of_another") is WebhookRefusal.SIGNATURE_WRONG
    signed = stripe.WebhookSignature.generate_signature_header(text + " ", SECRET, NOW_S)
    assert verify(text, header=signed) is WebhookRefusal.SIGNATURE_WRONG


@pytest.mark.parametrize(
    ("seconds", "fresh"), [(0, True), (-300, True), (300, True), (-301, False), (301, False)]
)
def test_a_signature_is_good_for_five_minutes(seconds: int, fresh: bool) -> None:
    answer = verify(body("payment_intent.succeeded", PAYMENT), signed_s=NOW_S + seconds)
    assert (answer is WebhookRefusal.TIMESTAMP_STALE) is not fresh


@pytest.mark.parametrize(
    "header", ["", "t=,v1=", "v1=abc", "t=abc,v1=abc", "t=1", "t=1,t=2,v1=a", "\x00", "t=²,v1=a"]
)
def test_a_header_that_is_no_signature_is_refused_and_never_raises(header: str) -> None:
    answer = verify(body("payment_intent.succeeded", PAYMENT), header=header)
    assert answer in (WebhookRefusal.SIGNATURE_MALFORMED, WebhookRefusal.SIGNATURE_WRONG)


def test_a_webhook_without_a_signature_is_refused() -> None:
    adapter = StripeGateway("sk", SECRET)
    assert adapter.verify_webhook({}, b"{}", NOW_S) is WebhookRefusal.SIGNATURE_MISSING


def test_a_body_that_is_no_text_is_refused() -> None:
    adapter = StripeGateway("sk", SECRET)
    headers = {"stripe-signature": f"t={NOW_S},v1=abc"}
    assert adapter.verify_webhook(headers, b"\xff\xfe", NOW_S) is WebhookRefusal.SIGNATURE_WRONG
