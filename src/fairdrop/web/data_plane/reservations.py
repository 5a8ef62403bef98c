"""Endpoints of reservations: take units, have more or fewer, give them back (H1 to H6)."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar
from urllib.parse import parse_qsl

import msgspec

from fairdrop import faults
from fairdrop.checkout import price_of
from fairdrop.ids import is_uuid, new_id
from fairdrop.inventory import (
    ChangeOutcome,
    ChangeRequest,
    ReleaseOutcome,
    ReserveOutcome,
    ReserveRequest,
    fingerprint,
)
from fairdrop.waiting_room import Refusal
from fairdrop.web.wire import Problem, encode, headers_of, read_body, send_json

from .admissions import HEADER, problem_of
from .base import (
    decode,
    idempotency_key,
    known_sale,
    required_asker,
    required_visitor,
    sale_of,
    verified_marks,
)
from .documents import (
    PartialRelease,
    ReleasedDocument,
    ReservationChange,
    ReservationDocument,
    ReservationRequest,
    ReservedLine,
    Verified,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairdrop.app import Parts
    from fairdrop.catalog import Sale
    from fairdrop.inventory import Change, Lines, Reservation
    from fairdrop.web.wire import Receive, Scope, Send

_REQUEST = msgspec.json.Decoder(ReservationRequest)
_CHANGE = msgspec.json.Decoder(ReservationChange)
_PARTIAL = msgspec.json.Decoder(PartialRelease)
_QUERY_LONGEST = 400
"""Bytes of a query: the longest variant id, percent-encoded, and a quantity."""
Request = TypeVar("Request", ReservationRequest, ReservationChange, PartialRelease)

_REFUSALS: dict[str, tuple[int, str, str]] = {
    ReserveOutcome.SOLD_OUT: (409, "sold_out", "There are not enough units left."),
    ReserveOutcome.BUYER_LIMIT: (409, "buyer_limit", "That is more than one buyer may have."),
    ReserveOutcome.ORDER_LIMIT: (422, "order_limit", "That is more than one order may have."),
    ReserveOutcome.PERSON_LIMIT: (
        409,
        "person_limit",
        "This phone or payment method has another reservation in this sale.",
    ),
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
    asker = required_asker(parts, headers)
    sale = known_sale(parts, scope) or await sale_of(parts, scope)
    admission = parts.admissions.verify_for(
        asker, headers.get(HEADER, b""), sale=sale.id, now_s=time.time()
    )
    if isinstance(admission, Refusal):
        raise problem_of(admission)
    key = idempotency_key(headers)
    # One line may come in the address, for which no body has to be waited for.
    query: bytes = scope["query_string"]
    asked = _asked_in_address(query) if query else _asked(await read_body(receive, headers))
    marks = [] if asked.verified is None else verified_marks(parts, sale, headers, asked.verified)
    answer = await parts.inventory.reserve(
        sale.ref,
        ReserveRequest(
            asker.key, admission.jti, new_id(), key, asked.fingerprint, asked.lines, marks
        ),
    )
    faults.passing(faults.Point.HELD)
    outcome = answer.outcome
    if outcome is ReserveOutcome.RESERVED or outcome is ReserveOutcome.REPLAYED:
        document = _document(sale, str(answer.hold), answer.deadline_ms, answer.lines)
        await send_json(send, encode(document), 201)
        return
    raise _refused(answer)


class _Asked(NamedTuple):
    """What a reservation asks for, as the store takes it."""

    lines: list[str | int]
    fingerprint: str
    verified: Verified | None


def _asked(body: bytes) -> _Asked:
    return _as_store_takes(decode(_REQUEST, body), body)


@lru_cache(maxsize=1_024)
def _asked_in_address(query: bytes) -> _Asked:
    """The same from the address; most of a crowd ask for the same, so it is read once for all."""
    if len(query) > _QUERY_LONGEST:
        raise Problem(422, "invalid_request", "The address is too long: send the lines as a body.")
    return _as_store_takes(_line(query, ReservationRequest), query)


def _as_store_takes(wanted: ReservationRequest, body: bytes) -> _Asked:
    lines: list[str | int] = []
    for line in wanted.lines:
        lines += (line.variant, line.quantity)
    return _Asked(lines, fingerprint(body), wanted.verified)


async def change(parts: Parts, scope: Scope, receive: Receive, send: Send) -> None:
    """PATCH /v1/sales/{sale}/reservations/{reservation}: other quantities, all or nothing (H4, H5)."""
    headers = headers_of(scope)
    visitor = required_visitor(parts, headers)
    sale, hold = await sale_of(parts, scope), _hold_of(scope)
    key = idempotency_key(headers)
    query: bytes = scope["query_string"]
    body = query or await read_body(receive, headers)
    wanted = _line(query, ReservationChange) if query else decode(_CHANGE, body)
    lines = _alternating((line.variant, line.quantity) for line in wanted.lines)
    answer = await _change(parts, sale, hold, visitor, key, b"PATCH" + body, lines)
    if answer.outcome is ChangeOutcome.NOTHING_HELD:
        raise Problem(404, "no_reservation", "There is no such reservation of yours.")
    if answer.outcome is ChangeOutcome.EXPIRED:
        raise Problem(409, "reservation_expired", "The reservation's time is over. Reserve again.")
    document = _document(sale, hold, answer.deadline_ms, answer.lines)
    await send_json(send, encode(document))


async def release(parts: Parts, scope: Scope, receive: Receive, send: Send) -> None:
    """DELETE /v1/sales/{sale}/reservations/{reservation}: all of it, a line, or units of a line (H5)."""
    headers = headers_of(scope)
    visitor = required_visitor(parts, headers)
    sale, hold = await sale_of(parts, scope), _hold_of(scope)
    query: bytes = scope["query_string"]
    body = query or await read_body(receive, headers)
    if not body:
        answer = await parts.inventory.release(sale.ref, hold, visitor)
        if answer.outcome is ReleaseOutcome.ORDER_STARTED:
            raise _order_started()
        await send_json(send, encode(ReleasedDocument(answer.units)))
        return
    wanted = _line(query, PartialRelease) if query else decode(_PARTIAL, body)
    # A whole line is gone however often it is asked for. Units of it are told apart by the key.
    by_units = any(line.quantity is not None for line in wanted.lines)
    key = idempotency_key(headers) if by_units else ""
    lines = _alternating((line.variant, -(line.quantity or 0)) for line in wanted.lines)
    part = await _change(parts, sale, hold, visitor, key, b"DELETE" + body, lines)
    left = None
    if part.lines:
        left = _document(sale, hold, part.deadline_ms, part.lines)
    await send_json(send, encode(ReleasedDocument(part.units, left)))


async def _change(  # noqa: PLR0913 - what a change is made of
    parts: Parts,
    sale: Sale,
    hold: str,
    visitor: str,
    key: str,
    asked: bytes,
    lines: list[str | int],
) -> Change:
    """Have the quantities. Raises Problem for what is refused."""
    request = ChangeRequest(visitor, hold, key, fingerprint(hold.encode() + asked), lines)
    answer = await parts.inventory.change(sale.ref, request)
    if answer.outcome is ChangeOutcome.ORDER_STARTED:
        raise _order_started()
    if answer.outcome is ChangeOutcome.NOT_ADMITTED:
        raise problem_of(Refusal.REVOKED)
    refused = _REFUSALS.get(answer.outcome)
    if refused is not None:
        raise _problem(refused, answer.detail)
    return answer


def _order_started() -> Problem:
    return Problem(409, "order_started", "Checkout has begun: cancel the order instead.")


def _hold_of(scope: Scope) -> str:
    hold: str = scope["path_params"]["reservation"]
    if not is_uuid(hold):
        raise Problem(404, "no_reservation", "There is no such reservation.")
    return hold


def _alternating(lines: Iterable[tuple[str, int]]) -> list[str | int]:
    """Variants and quantities in turn. Raises Problem 422 for a variant that is named twice."""
    found: dict[str, int] = {}
    for variant, quantity in lines:
        if variant in found:
            raise Problem(422, "invalid_request", "Name each variant once.")
        found[variant] = quantity
    return [part for line in found.items() for part in line]


def _line(query: bytes, kind: type[Request]) -> Request:
    """One line as ``variant=...&quantity=...``. Raises Problem 422."""
    fields = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
    try:
        return msgspec.convert({"lines": [fields]}, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Problem(422, "invalid_request", f"{error}.") from None


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
    return _problem(_REFUSALS[outcome], answer.detail)


def _problem(refused: tuple[int, str, str], variant: str) -> Problem:
    if variant:
        return Problem(*refused, variant=variant)
    return Problem(*refused)


def _document(sale: Sale, hold: str, deadline_ms: int, held: Lines) -> ReservationDocument:
    """The reservation with its price; RELEASED when nothing is left in it."""
    lines, subtotal = [], 0
    for variant_id, serials in held:
        variant = sale.variant(variant_id)
        if variant is None:
            # Held, and sold under a price that this process has yet to read: asking again shows it.
            raise Problem(503, "price_unknown", "Ask again.", headers=((b"retry-after", b"1"),))
        quantity, price_minor = len(serials), variant.price_minor
        lines.append(ReservedLine(variant_id, quantity, serials, price_minor))
        subtotal += quantity * price_minor
    state = "RESERVED" if lines else "RELEASED"
    price = price_of(sale, subtotal)
    return ReservationDocument(hold, state, deadline_ms, lines, *price, sale.currency)
