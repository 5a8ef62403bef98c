"""The sandbox bank's decisions, pure. Each refusal has a name, and all are values."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

import msgspec

from fairdrop.payments.model import IntentStatus

from .mischief import REORDER_WINDOW_MS

if TYPE_CHECKING:
    from .cards import Card
    from .mischief import Mischief


class AttemptKind(enum.Enum):
    """What an attempt to pay comes to."""

    CHARGED = "charged"
    DECLINED = "declined"
    PROCESSING = "processing"
    ALREADY_SUCCEEDED = "already_succeeded"
    ALREADY_PROCESSING = "already_processing"
    REFUSED_CANCELED = "intent_canceled"


class Attempt(msgspec.Struct, frozen=True):
    """The attempt's outcome; ``decline_code`` and ``processing_ms`` where they apply."""

    kind: AttemptKind
    decline_code: str | None = None
    processing_ms: int = 0


_WITHOUT_ATTEMPT = {
    IntentStatus.SUCCEEDED: Attempt(AttemptKind.ALREADY_SUCCEEDED),
    IntentStatus.PROCESSING: Attempt(AttemptKind.ALREADY_PROCESSING),
    IntentStatus.CANCELED: Attempt(AttemptKind.REFUSED_CANCELED),
}


def decide_attempt(status: IntentStatus, card: Card, mischief: Mischief) -> Attempt:
    """Whether the bank takes the money. Only an open intent is ever put to the bank."""
    settled = _WITHOUT_ATTEMPT.get(status)
    if settled is not None:
        return settled
    decline_code = mischief.decline or card.decline_code
    processing_ms = card.processing_ms + mischief.delay_ms
    if processing_ms:
        return Attempt(AttemptKind.PROCESSING, decline_code, processing_ms)
    if decline_code:
        return Attempt(AttemptKind.DECLINED, decline_code)
    return Attempt(AttemptKind.CHARGED)


class Cancellation(enum.Enum):
    """What a request to cancel comes to."""

    CANCELS = "cancels"
    ALREADY_CANCELED = "already_canceled"
    REFUSED_SUCCEEDED = "intent_succeeded"
    REFUSED_PROCESSING = "intent_processing"


CANCELLATIONS = {
    IntentStatus.REQUIRES_PAYMENT: Cancellation.CANCELS,
    IntentStatus.CANCELED: Cancellation.ALREADY_CANCELED,
    IntentStatus.SUCCEEDED: Cancellation.REFUSED_SUCCEEDED,
    IntentStatus.PROCESSING: Cancellation.REFUSED_PROCESSING,
}


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
