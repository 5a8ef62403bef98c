"""Secrets of an intent stay out of logs and tracebacks (SPEC S4)."""

from __future__ import annotations

from fairdrop.payments import GatewayRefused, Intent, IntentStatus

INTENT = Intent(
    id="pi_1",
    status=IntentStatus.REQUIRES_PAYMENT,
    amount_minor=100,
    currency="EUR",
    reference="order-1",
    client_secret="a-secret-of-the-buyer",
    pay_url="http://gateway.example/pay/pi_1#a-secret-of-the-buyer",
    amount_received_minor=0,
    amount_refunded_minor=0,
    last_decline=None,
    created_ms=0,
)


def test_the_text_of_an_intent_has_no_secret() -> None:
    for text in (repr(INTENT), str(INTENT), f"{INTENT}", f"{[INTENT]}"):
        assert "pi_1" in text
        assert "a-secret-of-the-buyer" not in text


def test_a_refusal_says_why() -> None:
    assert str(GatewayRefused(422, "over_refund", "Too much.")) == "over_refund (422): Too much."
    assert str(GatewayRefused(404, "unknown_intent")) == "unknown_intent (404)"
