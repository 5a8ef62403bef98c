"""Endpoints of the line: join, me, claim, leave (W1, W5, W11)."""

from __future__ import annotations

import random
import re
import time
from typing import TYPE_CHECKING, Any

import msgspec

from fairdrop.checkout import ReceiptRefusal
from fairdrop.clock import now_ms
from fairdrop.waiting_room import (
    TICKET_TTL_MS,
    EntryReceipt,
    LeaveOutcome,
    RestoreOutcome,
    State,
    poll_after_ms,
    prospects,
    wait_range_s,
)
from fairdrop.web.wire import Problem, encode, headers_of, read_body, send_json

from . import admissions
from .base import (
    VISITOR_COOKIE,
    decode,
    known_sale,
    required_asker,
    required_visitor,
    sale_of,
    visitor_of,
)
from .checks import check_claim, check_join, checks_joins
from .documents import RestoreRequest, StatusDocument, TicketDocument
from .invitations import check_invitation, is_for_all
from .limits import limit_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairdrop.app import Parts
    from fairdrop.catalog import Sale
    from fairdrop.waiting_room import Line, Place
    from fairdrop.web.wire import Header, Receive, Scope, Send

_YEAR_S = 31_536_000
_FAR = 1_000
"""How many ahead a person in the lobby asks like: nothing changes for them before the draw."""
_RANDOM_KEY = re.compile(r"[A-Za-z0-9_-]{22,64}")
_RESTORE = msgspec.json.Decoder(RestoreRequest)
_RECEIPT_PROBLEMS = {
    ReceiptRefusal.FORGED: "The receipt is not one of ours, or was changed.",
    ReceiptRefusal.OTHER_SALE: "The receipt is for another sale.",
    ReceiptRefusal.OTHER_VISITOR: "The receipt is somebody else's.",
    ReceiptRefusal.VOID: "The sale was started anew: places from before count no more. Join the line.",
    ReceiptRefusal.OF_LOBBY: "This receipt is of the lobby. Join again: the draw gives you your place.",
}
_USELESS = (ReceiptRefusal.VOID, ReceiptRefusal.OF_LOBBY)
_NOTHING_BACK = {
    RestoreOutcome.PLACE_USED: ("place_used", "This place has had its order. Join the line again."),
    RestoreOutcome.SALE_CLOSED: ("sale_closed", "The sale takes nobody in any more."),
}


async def join(parts: Parts, scope: Scope, _receive: Receive, send: Send) -> None:
    """POST /v1/sales/{sale}/join."""
    sale = known_sale(parts, scope) or await sale_of(parts, scope)
    asked = headers_of(scope)
    known = visitor_of(parts, asked)
    visitor = None if known is None else known.key
    if checks_joins(parts):
        await check_join(parts, scope, asked, sale, visitor)
    headers: tuple[Header, ...] = ()
    token = None
    if visitor is None:
        limit_address(parts, scope, "identities")
        visitor, token = _new_visitor(parts, asked)
        headers = (_visitor_cookie(token, secure=scope["scheme"] == "https"),)
    if not is_for_all(parts, asked, sale):
        await check_invitation(parts, scope, asked, sale, visitor)
    place, line = await parts.waiting_room.join(sale.ref, visitor)
    if place.state is State.NOT_ENTERED:
        raise Problem(
            409, "sale_not_open", "The sale is not open yet.", headers=((b"retry-after", b"5"),)
        )
    if place.state is State.CLOSED:
        raise Problem(409, "sale_closed", "The sale takes nobody in any more.")
    if place.state is State.LINE_FULL:
        raise _line_full(line)
    body = status_body(parts, sale, visitor, place, line, new_token=token)
    await send_json(send, body, 200, headers)


def _new_visitor(parts: Parts, headers: Mapping[bytes, bytes]) -> tuple[str, str]:
    """A new visitor (id, token); for a client's own random key always the same one.

    So a first join that is repeated because its answer got lost takes no second place. Raises
    Problem 400 for a key that somebody could guess.
    """
    key = headers.get(b"idempotency-key")
    if key is None:
        return parts.visitors.new()
    text = key.decode("latin-1").strip('"')
    if _RANDOM_KEY.fullmatch(text) is None:
        raise Problem(
            400,
            "idempotency_key_weak",
            "The Idempotency-Key of a first join stands for the visitor: send 22 to 64 letters,"
            " digits, - or _ with at least 128 bits of chance, or none.",
        )
    return parts.visitors.derived(text)


def _line_full(line: Line) -> Problem:
    """As many people wait as the units that are left allow (W16)."""
    return Problem(
        409,
        "line_full",
        "More people wait already than there are units left. Try again in a while: places come free"
        " when people leave or units come back.",
        headers=((b"retry-after", b"30"),),
        total_waiting=line.waiting,
    )


async def restore(parts: Parts, scope: Scope, receive: Receive, send: Send) -> None:
    """POST /v1/sales/{sale}/restore: the place that a receipt proves, after a lost line (W15).

    Repeating it changes nothing; the answer is where the visitor stands.
    """
    headers = headers_of(scope)
    visitor = required_visitor(parts, headers)
    sale = await sale_of(parts, scope)
    wanted: RestoreRequest = decode(_RESTORE, await read_body(receive, headers))
    outcome = await parts.restoration.present(
        sale, visitor, wanted.receipt, wanted.token, now_s=time.time()
    )
    if isinstance(outcome, ReceiptRefusal):
        raise Problem(409 if outcome in _USELESS else 403, outcome, _RECEIPT_PROBLEMS[outcome])
    if outcome in _NOTHING_BACK:
        raise Problem(409, *_NOTHING_BACK[outcome])
    place, line = await parts.waiting_room.status(sale.ref, visitor)
    await send_json(send, status_body(parts, sale, visitor, place, line))


async def me(parts: Parts, scope: Scope, _receive: Receive, send: Send) -> None:
    """GET /v1/sales/{sale}/me."""
    visitor = required_visitor(parts, headers_of(scope))
    sale = known_sale(parts, scope) or await sale_of(parts, scope)
    place, line = await parts.waiting_room.status(sale.ref, visitor)
    await send_json(send, status_body(parts, sale, visitor, place, line))


async def claim(parts: Parts, scope: Scope, _receive: Receive, send: Send) -> None:
    """POST /v1/sales/{sale}/claim."""
    headers = headers_of(scope)
    asker = required_asker(parts, headers)
    visitor = asker.key
    sale = known_sale(parts, scope) or await sale_of(parts, scope)
    await check_claim(parts, scope, headers, sale, visitor)
    place, line = await parts.waiting_room.claim(sale.ref, visitor)
    if place.state is State.MISSED:
        raise Problem(
            409, "missed", "Your turn has passed. Join again: your place is kept, at the front."
        )
    if place.state is not State.ADMITTED:
        raise Problem(409, "not_called", "It is not your turn yet.", state=place.state)
    token = _admission_token(parts, sale, visitor, place)
    # So that the reservation, which comes next, finds it with the visitor.
    parts.admissions.verify_for(asker, token.encode(), sale=sale.id, now_s=time.time())
    # For a checkout on the same host, behind a proxy or our middleware (W20).
    left_s = max(0, place.deadline_ms // 1_000 - int(time.time()))
    cookie = admissions.cookie(sale, token, left_s, secure=scope["scheme"] == "https")
    await send_json(send, status_body(parts, sale, visitor, place, line), 200, (cookie,))


async def leave(parts: Parts, scope: Scope, _receive: Receive, send: Send) -> None:
    """DELETE /v1/sales/{sale}/me."""
    visitor = required_visitor(parts, headers_of(scope))
    sale = await sale_of(parts, scope)
    outcome = await parts.waiting_room.leave(sale.ref, visitor)
    await send_json(
        send,
        encode({"state": State.NOT_ENTERED, "left": outcome is LeaveOutcome.LEFT}),
    )


async def ticket(parts: Parts, scope: Scope, _receive: Receive, send: Send) -> None:
    """POST /v1/sales/{sale}/ticket: for a stream of a browser that sends us no cookie (W7)."""
    visitor = required_visitor(parts, headers_of(scope))
    sale = await sale_of(parts, scope)
    text = parts.tickets.issue(sale.id, visitor, now_ms())
    await send_json(send, encode(TicketDocument(text, TICKET_TTL_MS)))


def status_body(  # noqa: PLR0913 - all that the document shows
    parts: Parts,
    sale: Sale,
    visitor: str,
    place: Place,
    line: Line,
    *,
    new_token: str | None = None,
) -> bytes:
    """The status document; an admission's token is signed here, the same one each time."""
    state = place.state
    rank = place.rank
    # By position: names would take as long as everything else about this document.
    document = StatusDocument(
        state,
        place.position,
        rank,
        line.waiting + line.lobby,
        line.served,
        poll_after_ms(_FAR if state is State.LOBBY else rank, random.random()),  # noqa: S311 - jitter
        line.mode,
        sale.epoch,
        _receipt(parts, sale, visitor, place),
        line.restoring_until_ms or None,
        place.entry or None,
        visitor if new_token else None,
        new_token,
        *_of_state(parts, sale, visitor, place, line),
    )
    return encode(document)


def _of_state(parts: Parts, sale: Sale, visitor: str, place: Place, line: Line) -> tuple[Any, ...]:
    """What only people in one state are told: the document's last members, from ``wait_s`` on."""
    state = place.state
    if state is State.WAITING:
        wait_s = wait_range_s(place.rank, line.outflow_milli, round(sale.rate_per_s * 1_000))
        return wait_s, prospects(line.outlook, sale.order_limit).of(place.rank)
    if state is State.READY:
        return None, None, place.deadline_ms
    if state is State.ADMITTED:
        token = _admission_token(parts, sale, visitor, place)
        return None, None, None, token, place.deadline_ms
    return ()


def _receipt(parts: Parts, sale: Sale, visitor: str, place: Place) -> str | None:
    """What proves the place: in the lobby its entry, in the line its position (W4, W15)."""
    if place.entry:
        return parts.receipts.issue(EntryReceipt(sale.id, visitor, sale.epoch, place.entry))
    if place.position > 0:  # a place at the front is kept by its invitation
        return parts.receipts.of_place(sale.id, visitor, sale.epoch, place.position)
    return None


def _admission_token(parts: Parts, sale: Sale, visitor: str, place: Place) -> str:
    return parts.admissions.issue(
        sale=sale.id,
        buyer=visitor,
        admission=place.admission,
        issued_s=place.issued_s,
        deadline_ms=place.deadline_ms,
        epoch=sale.epoch,
    )


def _visitor_cookie(token: str, *, secure: bool) -> Header:
    flags = "; Secure" if secure else ""
    value = f"{VISITOR_COOKIE}={token}; Path=/; Max-Age={_YEAR_S}; HttpOnly; SameSite=Lax{flags}"
    return (b"set-cookie", value.encode())
