"""What a payment is to Fairdrop, whichever gateway takes the money.

All types are frozen, all amounts are integers in the currency's minor units, all times are
milliseconds since the Unix epoch. ``reference`` is the caller's own name for the thing paid for
(the order id); the gateway stores it and hands it back in every document and event.
"""

from __future__ import annotations

import enum
from types import MappingProxyType
from typing import Generic, TypeVar

import msgspec

Item = TypeVar("Item")


class IntentStatus(enum.Enum):
    """Where an intent stands at the gateway."""

    REQUIRES_PAYMENT = "requires_payment"
    """Nothing taken yet; declined attempts leave it here, so that the buyer can try again."""
    PROCESSING = "processing"
    """An attempt is under way at the bank: it can end either way and cannot be cancelled."""
    REQUIRES_CAPTURE = "requires_capture"
    """The bank has set the money aside (``CaptureMode.MANUAL``): capture takes it, cancel frees it."""
    SUCCEEDED = "succeeded"
    """The money was taken, once. Final."""
    CANCELED = "canceled"
    """Nothing was and nothing will be taken. Final."""


RANK = MappingProxyType(
    {
        IntentStatus.SUCCEEDED: 0,
        IntentStatus.REQUIRES_CAPTURE: 1,
        IntentStatus.PROCESSING: 2,
        IntentStatus.REQUIRES_PAYMENT: 3,
        IntentStatus.CANCELED: 4,
    }
)
"""Which intent of a reference matters most: where money is or may be."""


class CaptureMode(enum.Enum):
    """When the money moves after the buyer has agreed: at once, or when the shop says so."""

    AUTOMATIC = "automatic"
    MANUAL = "manual"


class PaymentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to ask of the buyer.

    ``idempotency_key`` names the logical operation ("the payment of this order"), so a retry after
    a timeout carries the same key and finds the same intent. ``return_url`` is where the buyer's
    browser goes afterwards (http or https).
    """

    reference: str
    amount_minor: int
    currency: str
    idempotency_key: str
    return_url: str | None = None
    capture: CaptureMode = CaptureMode.AUTOMATIC


class Intent(msgspec.Struct, frozen=True, kw_only=True):
    """One payment to be made: at most one charge ever comes of it.

    ``client_secret`` lets the buyer's browser pay this intent and nothing else. ``pay_url`` is the
    gateway's page for it, and carries the secret in its fragment, which browsers do not send.
    Both are left out of ``repr``, so that they cannot reach a log by way of a traceback.
    """

    id: str
    status: IntentStatus
    amount_minor: int
    currency: str
    reference: str
    client_secret: str
    pay_url: str
    amount_received_minor: int
    amount_refunded_minor: int
    last_decline: str | None
    created_ms: int

    def __repr__(self) -> str:
        """Everything but the secret."""
        return (
            f"Intent(id={self.id!r}, status={self.status.value}, "
            f"amount_minor={self.amount_minor}, currency={self.currency!r}, "
            f"reference={self.reference!r}, received={self.amount_received_minor}, "
            f"refunded={self.amount_refunded_minor})"
        )


class GatewayCharge(msgspec.Struct, frozen=True, kw_only=True):
    """Money taken, as the gateway's own record has it."""

    id: str
    intent: str
    reference: str
    amount_minor: int
    currency: str
    created_ms: int


class GatewayRefund(msgspec.Struct, frozen=True, kw_only=True):
    """Money given back, as the gateway's own record has it; ``reference`` is our refund id."""

    id: str
    status: str
    intent: str
    reference: str
    amount_minor: int
    currency: str
    created_ms: int


class Page(msgspec.Struct, Generic[Item], frozen=True, kw_only=True):
    """A stretch of the gateway's record.

    ``next`` is the cursor to go on from, None when there was nothing more. ``last`` is the cursor
    of the last item seen so far. The sandbox lists in commit order, oldest first: nothing ever turns
    up before a cursor already handed out, and whoever follows its record comes back with ``last``.
    """

    data: tuple[Item, ...]
    next: str | None
    last: str | None


class EventKind(enum.Enum):
    """What a gateway tells us unasked."""

    AUTHORIZED = "payment.authorized"
    SUCCEEDED = "payment.succeeded"
    FAILED = "payment.failed"
    CANCELED = "payment.canceled"
    REFUND_SUCCEEDED = "refund.succeeded"


class GatewayEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One authentic event. It may come late, twice or out of order; ``id`` says which are one."""

    id: str
    kind: EventKind
    created_ms: int
    intent_id: str
    reference: str
    amount_minor: int
    currency: str
    charge_id: str | None = None
    refund_id: str | None = None
    refund_reference: str | None = None
    decline_code: str | None = None


class WebhookRefusal(enum.Enum):
    """Why a webhook was not taken for an event."""

    SIGNATURE_MISSING = "signature_missing"
    SIGNATURE_MALFORMED = "signature_malformed"
    SIGNATURE_WRONG = "signature_wrong"
    TIMESTAMP_STALE = "timestamp_stale"
    """Authentic, but signed too long ago or ahead of our clock: a replay, or clocks apart."""
    BODY_MALFORMED = "body_malformed"
    """Authentic, but not an event as we know them."""
    KIND_UNKNOWN = "kind_unknown"
    """Authentic and well formed, of a kind we do not handle: answer 2xx, so it is not re-sent."""
