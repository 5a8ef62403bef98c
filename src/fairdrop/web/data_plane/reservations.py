"""Endpoints of reservations: take units, look, give them back (H1 to H6)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import msgspec

from fairdrop import faults
from fairdrop.checkout import price_of
from fairdrop.ids import is_uuid, new_id
from fairdrop.inventory import ReleaseOutcome, ReserveOutcome, ReserveRequest, fingerprint
from fairdrop.waiting_room import Refusal
from fairdrop.web.wire import Problem, encode, read_body, send_json

from .admissions import HEADER, problem_of
from .base import decode, headers_of, idempotency_key, required_visitor, sale_of
from .documents import ReservationDocument, ReservationRequest, ReservedLine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairdrop.app import Parts
    from fairdrop.catalog import Sale
    from fairdrop.inventory import Reservation
    from fairdrop.waiting_room import Admission
    from fairdrop.web.wire import Receive, Scope, Send

_REQUEST = msgspec.json.Decoder(ReservationRequest)

_REFUSALS = {
    ReserveOutcome.SOLD_OUT: (409, "sold_out", "There are not enough units left."),
    ReserveOutcome.BUYER_LIMIT: (409, "buyer_limit", "That is more than one buyer may have."),
    ReserveOutcome.ORDER_LIMIT: (422, "order_limit", "That is more than one order may have."),
    ReserveOutcome.UNKNOWN_VARIANT: (422, "unknown_variant", "This sale has no such variant."),
    ReserveOutcome.SALE_CLOSED: (409, "sale_closed", "The sale is not selling."),
    ReserveOutcome.KEY_REUSED: (
        422,
        "idempotency_key_reused",
        "This Idempotency-Key came with another request before.",
    ),
}


async def reserve(parts: Parts, scope: Scope, receive: Receive, send: Send) -> None:
    """POST /v1/sales/{sale}/reservations."""
    headers = headers_of(scope)
    visitor = required_visitor(parts, headers)
    sale = await sale_of(parts, scope)
    admission = _admission(parts, sale, visitor, headers)
    key = idempotency_key(headers)
    query: bytes = scope["query_string"]
    body = query or await read_body(receive, headers)
    wanted = _asked(query) if query else decode(_REQUEST, body)
    lines: list[str | int] = []
    for line in wanted.lines:
        lines += (line.variant, line.quantity)
    answer = await parts.inventory.reserve(
        sale.ref, ReserveRequest(visitor, admission.jti, new_id(), key, fingerprint(body), lines)
    )
    faults.passing(faults.Point.HELD)
    outcome = answer.outcome
    if outcome is ReserveOutcome.RESERVED or outcome is ReserveOutcome.REPLAYED:
        await send_json(send, encode(_document(sale, answer)), 201)
        return
    raise _refused(answer)


def _asked(query: bytes) -> ReservationRequest:
    """One line as ``variant=...&quantity=...``, for which no body has to be waited for."""
    fields = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    try:
        return msgspec.convert({"lines": [fields]}, ReservationRequest, strict=False)
    except msgspec.ValidationError as error:
        raise Problem(422, "invalid_request", f"{error}.") from None


async def release(parts: Parts, scope: Scope, _receive: Receive, send: Send) -> None:
    """DELETE /v1/sales/{sale}/reservations/{reservation}."""
    visitor = required_visitor(parts, headers_of(scope))
    sale = await sale_of(parts, scope)
    hold = scope["path_params"]["reservation"]
    if not is_uuid(hold):
        raise Problem(404, "no_reservation", "There is no such reservation.")
    answer = await parts.inventory.release(sale.ref, hold, visitor)
    if answer.outcome is ReleaseOutcome.ORDER_STARTED:
        raise Problem(409, "order_started", "Checkout has begun: cancel the order instead.")
    await send_json(send, encode({"released": answer.units}))


def _admission(parts: Parts, sale: Sale, visitor: str, headers: Mapping[bytes, bytes]) -> Admission:
    token = headers.get(HEADER, b"").decode("latin-1")
    verified = parts.admissions.verify(token, sale=sale.id, buyer=visitor, now_s=time.time())
    if isinstance(verified, Refusal):
        raise problem_of(verified)
    return verified


def _refused(answer: Reservation) -> Problem:
    outcome = answer.outcome
    if outcome in (ReserveOutcome.NOT_ADMITTED, ReserveOutcome.OTHER_ADMISSION):
        return problem_of(Refusal.REVOKED)
    if outcome is ReserveOutcome.ALREADY_RESERVED:
        return Problem(
            409,
            "already_reserved",
            "This admission holds units already: check out, or give them back first.",
            reservation=answer.hold,
            deadline_ms=answer.deadline_ms,
        )
    status, code, detail = _REFUSALS[outcome]
    if answer.detail:
        return Problem(status, code, detail, variant=answer.detail)
    return Problem(status, code, detail)


def _document(sale: Sale, answer: Reservation) -> ReservationDocument:
    lines = []
    for variant_id, serials in answer.lines:
        variant = sale.variant(variant_id)
        if variant is None:
            # Held, and sold under a price that this process has yet to read: asking again shows it.
            raise Problem(503, "price_unknown", "Ask again.", headers=((b"retry-after", b"1"),))
        lines.append(ReservedLine(variant_id, len(serials), serials, variant.price_minor))
    price = price_of(sale, ((line.price_minor, line.quantity) for line in lines))
    return ReservationDocument(
        id=str(answer.hold),
        state="RESERVED",
        deadline_ms=answer.deadline_ms,
        lines=lines,
        subtotal_minor=price.subtotal_minor,
        fee_minor=price.fee_minor,
        total_minor=price.total_minor,
        currency=sale.currency,
    )
