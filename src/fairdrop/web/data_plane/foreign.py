"""Endpoints for checkouts that are not ours: verify, list what is revoked, report the end (W20)."""

from __future__ import annotations

import asyncio
import hashlib
import time
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from fairdrop.waiting_room import CompletionConflict, CompletionOutcome, Refusal, State
from fairdrop.web.wire import (
    Problem,
    encode,
    headers_of,
    read_body,
    send_json,
    send_raw,
    send_tagged,
)

from .admissions import problem_of, token_of
from .base import bearer_of, decode, sale_of, shop_buyer, visitor_by_cookie
from .documents import CompletionDocument, CompletionRequest, RevocationsDocument

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairdrop.app import Parts
    from fairdrop.catalog import Sale
    from fairdrop.ids import SaleRef
    from fairdrop.waiting_room import Admission
    from fairdrop.web.wire import Receive, Scope, Send

_REQUEST = msgspec.json.Decoder(CompletionRequest)
_CACHE = (b"cache-control", b"public, max-age=1, stale-while-revalidate=1")
_FRESH_S = 0.5
"""How old the list may be that is sent; with a second in a cache a revoked token is known in two."""


async def auth(parts: Parts, scope: Scope, _receive: Receive, send: Send) -> None:
    """GET /v1/sales/{sale}/auth: 204 for somebody inside, else 401 or 403 with the reason (W20).

    The store says whether the admission is alive at this moment, so nothing here is ever stale.
    """
    headers = headers_of(scope)
    sale = await sale_of(parts, scope)
    verified = parts.admissions.verify(
        token_of(sale, headers), sale=sale.id, buyer=_named(parts, headers), now_s=time.time()
    )
    if isinstance(verified, Refusal):
        raise problem_of(verified)
    place, _ = await parts.waiting_room.status(sale.ref, verified.sub)
    alive = place.state is State.ADMITTED and place.admission == verified.jti
    if not alive or verified.epoch != sale.epoch:
        raise problem_of(Refusal.REVOKED)
    await send_raw(
        send,
        204,
        [
            (b"cache-control", b"no-store"),
            (b"fairdrop-buyer", verified.sub.encode()),
            (b"fairdrop-sale", sale.id.encode()),
            (b"fairdrop-admission-id", verified.jti.encode()),
            (b"fairdrop-expires", b"%d" % verified.exp),
        ],
    )


def _named(parts: Parts, headers: Mapping[bytes, bytes]) -> str | None:
    """The visitor whom the request names, if any: what else is in its headers is the shop's business."""
    try:
        buyer = shop_buyer(parts, headers)
    except Problem:
        buyer = None
    if buyer is not None:
        return parts.visitors.of_buyer(buyer.subject)
    return visitor_by_cookie(parts, headers)


class _Listed(NamedTuple):
    until: float
    body: bytes
    etag: bytes


class Revocations:
    """GET /v1/sales/{sale}/revocations: tokens that ended before their expiry (W12).

    The same for everybody; one read of the store for each half second, however many ask.
    """

    def __init__(self) -> None:
        """Start with nothing remembered."""
        self._lists: dict[SaleRef, _Listed] = {}
        self._reading: dict[SaleRef, asyncio.Task[_Listed]] = {}

    async def __call__(self, parts: Parts, scope: Scope, _receive: Receive, send: Send) -> None:
        """Send the list, or 304 when the copy at hand is still right."""
        sale = await sale_of(parts, scope)
        listed = self._lists.get(sale.ref)
        if listed is None or listed.until <= time.monotonic():
            listed = await self._read(parts, sale)
        asked = headers_of(scope).get(b"if-none-match")
        await send_tagged(send, asked, listed.etag, [_CACHE], listed.body)

    async def _read(self, parts: Parts, sale: Sale) -> _Listed:
        task = self._reading.get(sale.ref)
        if task is None:
            task = asyncio.get_running_loop().create_task(_listed(parts, sale))
            self._reading[sale.ref] = task
            task.add_done_callback(lambda _: self._reading.pop(sale.ref, None))
        listed = await asyncio.shield(task)
        if len(self._lists) > 1_000:  # noqa: PLR2004 - far more sales than run at one time
            self._lists.clear()
        self._lists[sale.ref] = listed
        return listed


async def _listed(parts: Parts, sale: Sale) -> _Listed:
    ids = sorted(await parts.waiting_room.revocations(sale.ref))
    body = encode(RevocationsDocument(sale=sale.id, slug=sale.slug, epoch=sale.epoch, revoked=ids))
    etag = b'"' + hashlib.blake2b(body, digest_size=12).hexdigest().encode() + b'"'
    return _Listed(time.monotonic() + _FRESH_S, body, etag)


async def complete(parts: Parts, scope: Scope, receive: Receive, send: Send) -> None:
    """POST /v1/sales/{sale}/completions: how the shop's own checkout ended (W20, W13)."""
    headers = headers_of(scope)
    _require_key(parts, headers)
    sale = await sale_of(parts, scope)
    wanted: CompletionRequest = decode(_REQUEST, await read_body(receive, headers))
    buyer, admission = _who(parts, sale, wanted)
    reported = await parts.completions.report(
        sale.ref, buyer, admission, CompletionOutcome(wanted.outcome), wanted.reference
    )
    if isinstance(reported, CompletionConflict):
        raise Problem(
            409,
            "admission_used",
            "This admission has ended otherwise: undo this order.",
            outcome=reported.outcome,
            reference=reported.reference,
        )
    document = CompletionDocument(
        sale=sale.id,
        buyer=buyer,
        admission=admission,
        outcome=reported.outcome,
        reference=reported.reference,
        place_freed=reported.told,
    )
    await send_json(send, encode(document))


def _who(parts: Parts, sale: Sale, wanted: CompletionRequest) -> tuple[str, str]:
    """The buyer and the admission that a report is about. Raises Problem 403 or 422.

    The token may have expired: an order that was paid at the last moment is reported after it.
    """
    if wanted.token is None:
        if wanted.buyer is None or wanted.admission is None:
            raise Problem(
                422, "invalid_request", "Name the admission: its token, or its id and its buyer."
            )
        return wanted.buyer, wanted.admission
    claims: Admission | None = parts.admissions.read(wanted.token)
    if claims is None:
        raise problem_of(Refusal.FORGED)
    if claims.aud != sale.id:
        raise problem_of(Refusal.OTHER_SALE)
    return claims.sub, claims.jti


def _require_key(parts: Parts, headers: Mapping[bytes, bytes]) -> None:
    given = bearer_of(headers)
    if given is None or given.encode("latin-1") not in parts.server_keys:
        detail = (
            "The API key is wrong."
            if given
            else "Send the shop's API key as 'Authorization: Bearer KEY'."
        )
        raise Problem(401, "api_key_required", detail, headers=((b"www-authenticate", b"Bearer"),))
