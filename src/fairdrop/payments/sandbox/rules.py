"""The sandbox bank's decisions, pure. Each refusal has a name, and all are values."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import msgspec

from fairdrop.payments.model import CaptureMode, IntentStatus

from .mischief import REORDER_WINDOW_MS

if TYPE_CHECKING:
    from .cards import Card
    from .mischief import Mischief


class AttemptKind(enum.Enum):
    """What an attempt to pay comes to."""

    CHARGED = "charged"
    DECLINED = "declined"
    AUTHORIZED = "authorized"
    PROCESSING = "processing"
    ALREADY_AUTHORIZED = "already_authorized"
    ALREADY_SUCCEEDED = "already_succeeded"
    ALREADY_PROCESSING = "already_processing"
    REFUSED_CANCELED = "intent_canceled"


class Attempt(msgspec.Struct, frozen=True):
    """The attempt's outcome; ``decline_code`` and ``processing_ms`` where they apply."""

    kind: AttemptKind
    decline_code: str | None = None
    processing_ms: int = 0


_WITHOUT_ATTEMPT = {
    IntentStatus.REQUIRES_CAPTURE: Attempt(AttemptKind.ALREADY_AUTHORIZED),
    IntentStatus.SUCCEEDED: Attempt(AttemptKind.ALREADY_SUCCEEDED),
    IntentStatus.PROCESSING: Attempt(AttemptKind.ALREADY_PROCESSING),
    IntentStatus.CANCELED: Attempt(AttemptKind.REFUSED_CANCELED),
}


def decide_attempt(
    status: IntentStatus,
    card: Card,
    mischief: Mischief,
    capture: CaptureMode = CaptureMode.AUTOMATIC,
) -> Attempt:
    """Whether the bank takes the money, or sets it aside. Only an open intent is put to the bank."""
    settled = _WITHOUT_ATTEMPT.get(status)
    if settled is not None:
        return settled
    decline_code = mischief.decline or card.decline_code
    processing_ms = card.processing_ms + mischief.delay_ms
    if processing_ms:
        return Attempt(AttemptKind.PROCESSING, decline_code, processing_ms)
    if decline_code:
        return Attempt(AttemptKind.DECLINED, decline_code)
    manual = capture is CaptureMode.MANUAL
    return Attempt(AttemptKind.AUTHORIZED if manual else AttemptKind.CHARGED)


class Cancellation(enum.Enum):
    """What a request to cancel comes to."""

    CANCELS = "cancels"
    ALREADY_CANCELED = "already_canceled"
    REFUSED_SUCCEEDED = "intent_succeeded"
    REFUSED_PROCESSING = "intent_processing"


CANCELLATIONS = {
    IntentStatus.REQUIRES_CAPTURE: Cancellation.CANCELS,
    IntentStatus.REQUIRES_PAYMENT: Cancellation.CANCELS,
    IntentStatus.CANCELED: Cancellation.ALREADY_CANCELED,
    IntentStatus.SUCCEEDED: Cancellation.REFUSED_SUCCEEDED,
    IntentStatus.PROCESSING: Cancellation.REFUSED_PROCESSING,
}


class Capture(enum.Enum):
    """What a request to capture comes to."""

    CAPTURES = "captures"
    CAPTURED = "captured"
    REFUSED = "not_capturable"


def decide_capture(status: IntentStatus, intent_minor: int, amount_minor: int) -> Capture:
    """Whether the money that was set aside is taken: in full, and once."""
    if amount_minor != intent_minor:
        return Capture.REFUSED
    if status is IntentStatus.REQUIRES_CAPTURE:
        return Capture.CAPTURES
    return Capture.CAPTURED if status is IntentStatus.SUCCEEDED else Capture.REFUSED


def may_refund(received_minor: int, refunded_minor: int, amount_minor: int) -> bool:
    """Whether all refunds together stay within what was received."""
    return refunded_minor + amount_minor <= received_minor


def plan_deliveries(mischief: Mischief, now_ms: int) -> list[tuple[int, bool]]:
    """When each copy of an event goes out, and whether it lets the next event go first.

    Pairs (due_ms, held), one a copy; none if the event is dropped.
    """
    if mischief.drop:
        return []
    due_ms = now_ms + mischief.delay_webhook_ms
    if mischief.reorder:
        due_ms += REORDER_WINDOW_MS
    return [(due_ms, mischief.reorder)] * (1 + mischief.duplicate)
