"""Stripe's documents as we read them, and what they are to Fairdrop: plain values in and out.

Only the fields named here are read. A payment of ours is known by ``metadata.reference``, which
Stripe copies from the session to its PaymentIntent and from there to the charge; whatever has none is
somebody else's business on the same account.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import msgspec

from .model import EventKind, GatewayCharge, GatewayEvent, GatewayRefund, Intent, IntentStatus
from .units import from_stripe


class _Reference(msgspec.Struct):
    reference: str = ""


class _RefundReference(msgspec.Struct):
    reference: str = ""
    order: str = ""


class _Failure(msgspec.Struct):
    code: str | None = None
    decline_code: str | None = None


class Charge(msgspec.Struct):
    """A charge; captured in part or in full, or only authorised."""

    id: str
    amount_captured: int
    amount_refunded: int
    currency: str
    created: int
    status: str = "succeeded"
    payment_intent: str | None = None
    metadata: _Reference = msgspec.field(default_factory=_Reference)


class PaymentIntent(msgspec.Struct):
    """A PaymentIntent, with its latest charge expanded where we asked for it."""

    id: str
    status: str
    amount: int
    currency: str
    created: int
    amount_received: int = 0
    amount_capturable: int = 0
    client_secret: str | None = None
    last_payment_error: _Failure | None = None
    latest_charge: Charge | str | None = None
    metadata: _Reference = msgspec.field(default_factory=_Reference)


class Session(msgspec.Struct):
    """A Checkout Session: Stripe's own page for one payment. Its PaymentIntent comes later."""

    id: str
    status: str
    amount_total: int
    currency: str
    created: int
    client_reference_id: str | None = None
    url: str | None = None
    payment_intent: PaymentIntent | str | None = None


class Refund(msgspec.Struct):
    """Money given back, or on its way. Its metadata name our refund, and our order."""

    id: str
    amount: int
    currency: str
    created: int
    status: str | None = None
    payment_intent: str | None = None
    metadata: _RefundReference = msgspec.field(default_factory=_RefundReference)


class _Data(msgspec.Struct):
    object: msgspec.Raw


class Event(msgspec.Struct):
    """A webhook's body; what it is about is read by its type."""

    id: str
    type: str
    created: int
    data: _Data


_STATUSES = MappingProxyType(
    {
        "requires_payment_method": IntentStatus.REQUIRES_PAYMENT,
        "requires_confirmation": IntentStatus.REQUIRES_PAYMENT,
        "requires_action": IntentStatus.REQUIRES_PAYMENT,
        "processing": IntentStatus.PROCESSING,
        "requires_capture": IntentStatus.REQUIRES_CAPTURE,
        "succeeded": IntentStatus.SUCCEEDED,
        "canceled": IntentStatus.CANCELED,
    }
)
_OPEN, _EXPIRED = "open", "expired"
_PAID_BACK = "succeeded"


def intent_of_session(session: Session) -> Intent:
    """The payment that a session is for. Its id is the session's: it is there from the start."""
    payment = session.payment_intent
    if isinstance(payment, PaymentIntent):
        intent = intent_of_payment(payment)
        over = session.status == _EXPIRED and intent.status is IntentStatus.REQUIRES_PAYMENT
        return msgspec.structs.replace(
            intent,
            id=session.id,
            status=IntentStatus.CANCELED if over else intent.status,
            reference=session.client_reference_id or intent.reference,
            pay_url=session.url or "",
        )
    currency = session.currency.upper()
    return Intent(
        id=session.id,
        status=IntentStatus.CANCELED
        if session.status == _EXPIRED
        else IntentStatus.REQUIRES_PAYMENT,
        amount_minor=from_stripe(session.amount_total, currency),
        currency=currency,
        reference=session.client_reference_id or "",
        client_secret="",
        pay_url=session.url or "",
        amount_received_minor=0,
        amount_refunded_minor=0,
        last_decline=None,
        created_ms=session.created * 1_000,
    )


def intent_of_payment(payment: PaymentIntent) -> Intent:
    """A PaymentIntent as an intent. A status that we do not know is one that may still be paid."""
    currency = payment.currency.upper()
    charge = payment.latest_charge
    refunded = charge.amount_refunded if isinstance(charge, Charge) else 0
    return Intent(
        id=payment.id,
        status=_STATUSES.get(payment.status, IntentStatus.PROCESSING),
        amount_minor=from_stripe(payment.amount, currency),
        currency=currency,
        reference=payment.metadata.reference,
        client_secret=payment.client_secret or "",
        pay_url="",
        amount_received_minor=from_stripe(payment.amount_received, currency),
        amount_refunded_minor=from_stripe(refunded, currency),
        last_decline=_decline(payment),
        created_ms=payment.created * 1_000,
    )


def _decline(payment: PaymentIntent) -> str | None:
    failure = payment.last_payment_error
    return None if failure is None else failure.decline_code or failure.code


def charge_of(charge: Charge) -> GatewayCharge | None:
    """Money taken for us; None when nothing was taken, or not for us."""
    if not charge.metadata.reference or charge.amount_captured <= 0:
        return None
    currency = charge.currency.upper()
    return GatewayCharge(
        id=charge.id,
        intent=charge.payment_intent or "",
        reference=charge.metadata.reference,
        amount_minor=from_stripe(charge.amount_captured, currency),
        currency=currency,
        created_ms=charge.created * 1_000,
    )


def refund_of(refund: Refund) -> GatewayRefund:
    """A refund as the protocol has it."""
    currency = refund.currency.upper()
    return GatewayRefund(
        id=refund.id,
        status=refund.status or "pending",
        intent=refund.payment_intent or "",
        reference=refund.metadata.reference,
        amount_minor=from_stripe(refund.amount, currency),
        currency=currency,
        created_ms=refund.created * 1_000,
    )


_PAYMENTS = MappingProxyType(
    {
        "payment_intent.succeeded": EventKind.SUCCEEDED,
        "payment_intent.amount_capturable_updated": EventKind.AUTHORIZED,
        "payment_intent.payment_failed": EventKind.FAILED,
        "payment_intent.canceled": EventKind.CANCELED,
    }
)
_REFUNDS = frozenset({"refund.created", "refund.updated", "charge.refund.updated"})
_SESSION_EXPIRED = "checkout.session.expired"


def event_of(event: Event) -> GatewayEvent | None:
    """What the event tells; None when it is none of our business.

    Raises msgspec.DecodeError when it is not as Stripe writes such events.
    """
    kind = _PAYMENTS.get(event.type)
    if kind is not None:
        return _payment_event(event, kind, _read(event, PaymentIntent))
    if event.type == _SESSION_EXPIRED:
        intent = intent_of_session(_read(event, Session))
        return _event(event, EventKind.CANCELED, intent, intent.amount_minor)
    if event.type in _REFUNDS:
        refund = _read(event, Refund)
        if refund.status != _PAID_BACK or not refund.metadata.reference:
            return None
        told = refund_of(refund)
        return GatewayEvent(
            id=event.id,
            kind=EventKind.REFUND_SUCCEEDED,
            created_ms=event.created * 1_000,
            intent_id=told.intent,
            reference=refund.metadata.order,
            amount_minor=told.amount_minor,
            currency=told.currency,
            refund_id=told.id,
            refund_reference=told.reference,
        )
    return None


def _payment_event(event: Event, kind: EventKind, payment: PaymentIntent) -> GatewayEvent | None:
    amounts = {
        EventKind.SUCCEEDED: payment.amount_received,
        EventKind.AUTHORIZED: payment.amount_capturable,
    }
    intent = intent_of_payment(payment)
    amount = from_stripe(amounts.get(kind, payment.amount), intent.currency)
    return _event(event, kind, intent, amount)


def _event(event: Event, kind: EventKind, intent: Intent, amount_minor: int) -> GatewayEvent | None:
    if not intent.reference:
        return None
    return GatewayEvent(
        id=event.id,
        kind=kind,
        created_ms=event.created * 1_000,
        intent_id=intent.id,
        reference=intent.reference,
        amount_minor=amount_minor,
        currency=intent.currency,
        decline_code=intent.last_decline if kind is EventKind.FAILED else None,
    )


def _read(event: Event, kind: Any) -> Any:
    return msgspec.json.decode(event.data.object, type=kind)
