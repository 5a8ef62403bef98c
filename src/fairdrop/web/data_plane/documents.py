"""The documents of the data plane: what buyers send and what they get."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Text = Annotated[str, msgspec.Meta(max_length=300)]
Identifier = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class StatusDocument(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Where a visitor stands (W5)."""

    state: str
    position: int
    rank: int
    total_waiting: int
    served: int
    poll_after_ms: int
    mode: str
    epoch: int
    receipt: str | None = None
    restoring_until_ms: int | None = None
    entry: str | None = None
    visitor: str | None = None
    visitor_token: str | None = None
    # What belongs to one state: ``_of_state`` of the line gives these in this order.
    wait_s: tuple[int, int] | None = None
    forecast: str | None = None
    claim_by_ms: int | None = None
    token: str | None = None
    token_expires_ms: int | None = None


class RestoreRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A receipt that proves a place in a line that was lost; the token too for those inside (W15)."""

    receipt: Annotated[str, msgspec.Meta(min_length=1, max_length=2_048)]
    token: Annotated[str, msgspec.Meta(max_length=4_096)] = ""


class WantedLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """What a buyer asks for; the price is ours to know."""

    variant: Identifier
    quantity: Annotated[int, msgspec.Meta(ge=1, le=1000)]


class Verified(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """What the shop has verified of the buyer; each has one active reservation in a sale (H6)."""

    phone: Annotated[str, msgspec.Meta(min_length=1, max_length=40)] | None = None
    payment_method: Annotated[str, msgspec.Meta(min_length=1, max_length=200)] | None = None


class ReservationRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a reservation; ``verified`` counts with the shop's API key only."""

    lines: Annotated[list[WantedLine], msgspec.Meta(min_length=1, max_length=20)]
    verified: Verified | None = None


class LineToHave(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """How many units of a variant the reservation shall have; 0: none."""

    variant: Identifier
    quantity: Annotated[int, msgspec.Meta(ge=0, le=1000)]


class ReservationChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Other quantities for a reservation; variants that are not named stay as they are."""

    lines: Annotated[list[LineToHave], msgspec.Meta(min_length=1, max_length=20)]


class LineToRelease(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """Units to give back; without a quantity all of the variant."""

    variant: Identifier
    quantity: Annotated[int, msgspec.Meta(ge=1, le=1000)] | None = None


class PartialRelease(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to give back of a reservation."""

    lines: Annotated[list[LineToRelease], msgspec.Meta(min_length=1, max_length=20)]


class ReservedLine(msgspec.Struct, frozen=True, gc=False):
    """What is held of one variant."""

    variant: str
    quantity: int
    serials: list[int]
    price_minor: int


class ReservationDocument(msgspec.Struct, frozen=True, gc=False):
    """Units held for a buyer until the deadline, with the price that will be charged."""

    id: str
    state: str
    deadline_ms: int
    lines: list[ReservedLine]
    subtotal_minor: int
    fee_minor: int
    total_minor: int
    currency: str


class ReleasedDocument(msgspec.Struct, frozen=True, omit_defaults=True):
    """How many units are free again; 0 when none were held. ``reservation`` is what is left."""

    released: int
    reservation: ReservationDocument | None = None


class OrderRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a checkout's start; ``verified`` counts with the shop's API key only."""

    reservation: Identifier
    email: Annotated[str, msgspec.Meta(max_length=254, pattern=r"^[^@\s]+@[^@\s]+$")] | None = None
    name: Text | None = None
    verified: Verified | None = None


class OrderLineDocument(msgspec.Struct, frozen=True):
    """What an order has of one variant."""

    variant: str
    product: str
    name: str
    quantity: int
    serials: list[int]
    price_minor: int


class PaymentDocument(msgspec.Struct, frozen=True):
    """How the order is paid."""

    url: str | None
    state: str
    declines: int
    attempts_left: int
    last_decline: str | None


class OrderDocument(msgspec.Struct, frozen=True):
    """An order, as its buyer sees it."""

    id: str
    sale: str
    state: str
    currency: str
    currency_exponent: int
    subtotal_minor: int
    fee_minor: int
    total_minor: int
    refunded_minor: int
    deadline_ms: int
    server_time_ms: int
    lines: list[OrderLineDocument]
    payment: PaymentDocument | None
    email: str | None
    name: str | None


class VariantDocument(msgspec.Struct, frozen=True):
    """A variant with its live stock: ``free + held + sold = total``, without the safety buffer."""

    id: str
    product: str
    name: str
    price_minor: int
    total: int
    held: int
    sold: int
    free: int


class OutlookDocument(msgspec.Struct, frozen=True):
    """What the stock means to those who wait (W16).

    ``state`` is available, sold_out_may_return or sold_out. Units will probably last for positions up
    to ``lasts_until``.
    """

    state: str
    lasts_until: int


class PublicDocument(msgspec.Struct, frozen=True):
    """What everybody may know of a sale; one document for all (W6)."""

    id: str
    slug: str
    name: str
    description: str
    timezone: str
    opens_at: str
    closes_at: str | None
    mode: str
    currency: str
    currency_exponent: int
    fee_bps: int
    fee_step_minor: int
    order_limit: int
    buyer_limit: int
    hold_ttl_ms: int
    lobby_opens_at: str | None
    window_ms: int
    commitment: str | None
    lobby: int
    served: int
    tail: int
    waiting: int
    called: int
    inside: int
    rate_per_s: float
    measured_rate_per_s: float
    server_time_ms: int
    variants: list[VariantDocument]
    outflow_per_s: float | None = None
    outlook: OutlookDocument | None = None
    line_full: bool = False
    restoring_until_ms: int | None = None
    epoch: int = 0
    push_url: str | None = None


class TicketDocument(msgspec.Struct, frozen=True):
    """A ticket for one stream: shown in its address, and good for half a minute (W7)."""

    ticket: str
    expires_in_ms: int


class ReceiptRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The receipt of an entry, as joining the lobby gave it."""

    receipt: Annotated[str, msgspec.Meta(min_length=1, max_length=2_048)]


class ProofDocument(msgspec.Struct, frozen=True):
    """A proof of the entry that anybody can check: a JWT, signed with Ed25519 (W4)."""

    sale: str
    entry: str
    proof: str


class CompletionRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a checkout of the shop's own ended; the admission by its token, or by id and buyer."""

    outcome: Literal["completed", "failed"]
    token: Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)] | None = None
    buyer: Identifier | None = None
    admission: Identifier | None = None
    reference: Annotated[str, msgspec.Meta(max_length=200)] = ""


class CompletionDocument(msgspec.Struct, frozen=True):
    """What is on record; ``place_freed`` is false while the store has yet to hear of it."""

    sale: str
    buyer: str
    admission: str
    outcome: str
    reference: str
    place_freed: bool


class RevocationsDocument(msgspec.Struct, frozen=True):
    """How the ids (``jti``) of tokens begin that ended early; tokens of another epoch are over too."""

    sale: str
    slug: str
    epoch: int
    revoked: list[str]
