"""Endpoints of the line: join, me, claim, leave (W1, W5, W11)."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from fairdrop.waiting_room import EntryReceipt, LeaveOutcome, State, poll_after_ms, wait_range_s
from fairdrop.web.wire import Problem, encode, send_json

from . import admissions
from .base import VISITOR_COOKIE, headers_of, required_visitor, sale_of, visitor_of
from .documents import StatusDocument
from .limits import limit_identities

if TYPE_CHECKING:
    from fairdrop.app import Parts
    from fairdrop.catalog import Sale
    from fairdrop.waiting_room import Line, Place
    from fairdrop.web.wire import Header, Receive, Scope, Send

_YEAR_S = 31_536_000
_FAR = 1_000
"""How many ahead a person in the lobby asks like: nothing changes for them before the draw."""


async def join(parts: Parts, scope: Scope, _receive: Receive, send: Send) -> None:
    """POST /v1/sales/{sale}/join."""
    sale = await sale_of(parts, scope)
    visitor = visitor_of(parts, headers_of(scope))
    headers: tuple[Header, ...] = ()
    token = None
    if visitor is None:
        limit_identities(parts, scope)
        visitor, token = parts.visitors.new()
        headers = (_visitor_cookie(token, secure=scope["scheme"] == "https"),)
    place, line = await parts.waiting_room.join(sale.ref, visitor)
    if place.state is State.NOT_ENTERED:
        raise Problem(
            409, "sale_not_open", "The sale is not open yet.", headers=((b"retry-after", b"5"),)
        )
    if place.state is State.CLOSED:
        raise Problem(409, "sale_closed", "The sale takes nobody in any more.")
    body = status_body(parts, sale, visitor, place, line, new_token=token)
    await send_json(send, body, 200, headers)


async def me(parts: Parts, scope: Scope, _receive: Receive, send: Send) -> None:
    """GET /v1/sales/{sale}/me."""
    visitor = required_visitor(parts, headers_of(scope))
    sale = await sale_of(parts, scope)
    place, line = await parts.waiting_room.status(sale.ref, visitor)
    await send_json(send, status_body(parts, sale, visitor, place, line))


async def claim(parts: Parts, scope: Scope, _receive: Receive, send: Send) -> None:
    """POST /v1/sales/{sale}/claim."""
    visitor = required_visitor(parts, headers_of(scope))
    sale = await sale_of(parts, scope)
    place = await parts.waiting_room.claim(sale.ref, visitor)
    if place.state is State.MISSED:
        raise Problem(
            409, "missed", "Your turn has passed. Join again: your place is kept, at the front."
        )
    if place.state is not State.ADMITTED:
        raise Problem(409, "not_called", "It is not your turn yet.", state=place.state)
    _, line = await parts.waiting_room.status(sale.ref, visitor)
    token = _admission_token(parts, sale, visitor, place)
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
    waiting = state is State.WAITING
    admitted = state is State.ADMITTED
    return encode(
        StatusDocument(
            state=state,
            position=place.position,
            rank=place.rank,
            total_waiting=line.waiting + line.lobby,
            served=line.served,
            poll_after_ms=poll_after_ms(
                _FAR if state is State.LOBBY else place.rank,
                random.random(),  # noqa: S311 - only jitter
            ),
            mode=line.mode,
            wait_s=wait_range_s(place.rank, line.measured_milli, round(sale.rate_per_s * 1_000))
            if waiting
            else None,
            claim_by_ms=place.deadline_ms if state is State.READY else None,
            token=_admission_token(parts, sale, visitor, place) if admitted else None,
            token_expires_ms=place.deadline_ms if admitted else None,
            visitor=visitor if new_token else None,
            visitor_token=new_token,
            entry=place.entry or None,
            receipt=parts.receipts.issue(EntryReceipt(sale.id, visitor, sale.epoch, place.entry))
            if place.entry
            else None,
        )
    )


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
