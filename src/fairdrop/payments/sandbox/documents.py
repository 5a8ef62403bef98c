"""The shapes on the wire: what requests must look like, and what answers and webhooks do.

Requests refuse unknown fields, so a misspelt one is told instead of ignored.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from .mischief import Mischief

MAX_AMOUNT_MINOR = 1_000_000_000_000
MAX_PAGE = 1_000

_AmountMinor = Annotated[int, Meta(gt=0, le=MAX_AMOUNT_MINOR)]
_Reference = Annotated[str, Meta(pattern=r"\A[!-~]{1,100}\Z")]
_Secret = Annotated[str, Meta(max_length=200)]


class CreateIntent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of ``POST /v1/intents``."""

    amount_minor: _AmountMinor
    currency: str
    reference: _Reference
    return_url: Annotated[str, Meta(max_length=2_048)] | None = None
    capture: Literal["automatic", "manual"] = "automatic"


class CaptureIntent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of ``POST /v1/intents/{id}/capture``. The sandbox captures in full."""

    amount_minor: _AmountMinor


class CreateRefund(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of ``POST /v1/intents/{id}/refunds``."""

    amount_minor: _AmountMinor
    reference: _Reference


class PayIntent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of ``POST /v1/intents/{id}/pay``, sent by the buyer's browser."""

    client_secret: _Secret
    card: Annotated[str, Meta(max_length=40)]
    mischief: Mischief | None = None


class AskStatus(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Body of ``POST /v1/intents/{id}/status``, sent by the buyer's browser."""

    client_secret: _Secret


class IntentDocument(Struct, frozen=True, kw_only=True):
    """An intent, as the merchant sees it."""

    id: str
    status: str
    amount_minor: int
    currency: str
    reference: str
    client_secret: str
    pay_url: str
    amount_received_minor: int
    amount_refunded_minor: int
    last_decline: str | None
    created_ms: int


class IntentList(Struct, frozen=True):
    """Intents of one reference, newest first."""

    data: list[IntentDocument]


class ChargeDocument(Struct, frozen=True, kw_only=True):
    """Money taken."""

    id: str
    intent: str
    reference: str
    amount_minor: int
    currency: str
    created_ms: int


class RefundDocument(Struct, frozen=True, kw_only=True):
    """Money given back. The sandbox's refunds succeed at once."""

    id: str
    intent: str
    reference: str
    amount_minor: int
    currency: str
    created_ms: int
    status: str = "succeeded"


class RecordPage(Struct, frozen=True, kw_only=True):
    """A page of the record; cursors are opaque to the reader."""

    data: list[ChargeDocument] | list[RefundDocument]
    next: str | None
    last: str | None


class PayAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the buyer's browser is told of an attempt or of where the intent stands."""

    status: str
    decline_code: str | None = None


class EventData(Struct, frozen=True, kw_only=True):
    """What an event is about."""

    intent: str
    reference: str
    amount_minor: int
    currency: str
    charge: str | UnsetType = UNSET
    refund: str | UnsetType = UNSET
    refund_reference: str | UnsetType = UNSET
    decline_code: str | UnsetType = UNSET


class EventDocument(Struct, frozen=True, kw_only=True):
    """Body of a webhook."""

    id: str
    type: str
    created_ms: int
    data: EventData


class DeliveryFigures(Struct, frozen=True, kw_only=True):
    """Webhooks: how many wait, and what became of the others since the process started."""

    pending: int
    accepted: int
    refused: int
    given_up: int
    dropped: int
    copies: int
