"""Endpoints of the draw: its public files, and proofs of entries (W4)."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from fairdrop.draw import ENTRIES_FILE, ORDER_FILE, PARAMETERS_FILE, DrawState, parameters
from fairdrop.waiting_room import EntryReceipt
from fairdrop.web.wire import (
    Problem,
    encode,
    headers_of,
    names_tag,
    read_body,
    send_json,
    send_raw,
    send_tagged,
)

from .base import decode, sale_of
from .documents import ProofDocument, ReceiptRequest

if TYPE_CHECKING:
    from fairdrop.app import Parts
    from fairdrop.catalog import Sale
    from fairdrop.web.wire import Header, Receive, Scope, Send

FRESH_S = 1.0
"""How old the parameters may be while the draw is under way."""
_REMEMBERED = 1_000
_WHILE_UNDER_WAY: Header = (b"cache-control", b"public, max-age=1, stale-while-revalidate=5")
_DONE: Header = (b"cache-control", b"public, max-age=300")
_FOR_EVER: Header = (b"cache-control", b"public, max-age=86400, immutable")
_ANY_ORIGIN: Header = (b"access-control-allow-origin", b"*")
"""Whoever checks a draw may do so with a page of their own."""
_request = msgspec.json.Decoder(ReceiptRequest)


class _Remembered(NamedTuple):
    until: float
    body: bytes
    etag: bytes
    state: DrawState


class Parameters:
    """GET /v1/sales/{sale}/draw, and …/draw/draw.json: one read of the database a second."""

    def __init__(self) -> None:
        """Start with nothing remembered."""
        self._known: dict[str, _Remembered] = {}

    async def __call__(self, parts: Parts, scope: Scope, _receive: Receive, send: Send) -> None:
        """Send the parameters, or 304."""
        sale = await sale_of(parts, scope)
        await self.send(parts, sale, scope, send)

    async def send(self, parts: Parts, sale: Sale, scope: Scope, send: Send) -> None:
        """Send ``draw.json`` of a sale."""
        found = self._known.get(sale.id)
        if found is None or found.until <= time.monotonic():
            record = await parts.draws.record(sale.id)
            if record is None:
                raise Problem(404, "no_draw", "This sale has no draw.")
            body = encode(parameters(record, parts.entry_proofs.public_keys()))
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            etag = b'"' + hashlib.sha256(body).hexdigest()[:24].encode() + b'"'
            found = _Remembered(time.monotonic() + FRESH_S, body, etag, record.state)
            self._known[sale.id] = found
        # Also when it is done: the keys in it may be rotated.
        cache = _DONE if found.state is DrawState.FILLED else _WHILE_UNDER_WAY
        asked = headers_of(scope).get(b"if-none-match")
        await send_tagged(send, asked, found.etag, [cache, _ANY_ORIGIN], found.body)


class PublishedFiles:
    """GET /v1/sales/{sale}/draw/{file}: files that never change, sent in pieces of a megabyte."""

    def __init__(self, parameters: Parameters) -> None:
        """The parameters come by this address too, so that one address leads to all files."""
        self._parameters = parameters

    async def __call__(self, parts: Parts, scope: Scope, _receive: Receive, send: Send) -> None:
        """Send one file; 404 while it is not published."""
        sale = await sale_of(parts, scope)
        name = scope["path_params"]["file"]
        if name == PARAMETERS_FILE:
            await self._parameters.send(parts, sale, scope, send)
            return
        if name not in {ENTRIES_FILE, ORDER_FILE}:
            raise Problem(404, "not_found", "There is no such file of a draw.")
        size = await parts.draws.file_size(sale.id, name)
        if size is None:
            raise Problem(404, "not_published", "This file of the draw is not published yet.")
        etag = f'"{sale.id}-{name}-{size}"'.encode()
        headers: list[Header] = [(b"etag", etag), _FOR_EVER, _ANY_ORIGIN]
        if names_tag(headers_of(scope).get(b"if-none-match"), etag):
            await send_raw(send, 304, headers)
            return
        headers += [
            (b"content-type", b"text/plain; charset=us-ascii"),
            (b"content-length", b"%d" % size),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async for part in parts.draws.file_parts(sale.id, name):
            await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def show_entry(parts: Parts, scope: Scope, _receive: Receive, send: Send) -> None:
    """GET /v1/sales/{sale}/draw/entries/{entry}: the short proof that an entry is in the list."""
    sale = await sale_of(parts, scope)
    found = await parts.draws.inclusion(sale.id, scope["path_params"]["entry"])
    if found is None:
        raise Problem(404, "entry_not_listed", "The list is not closed yet, or has no such entry.")
    etag = f'"{sale.id}-{found.entry}"'.encode()
    asked = headers_of(scope).get(b"if-none-match")
    await send_tagged(send, asked, etag, [_FOR_EVER, _ANY_ORIGIN], encode(found))


async def prove(parts: Parts, scope: Scope, receive: Receive, send: Send) -> None:
    """POST /v1/sales/{sale}/receipt: a receipt of an entry for a proof that anybody can check."""
    sale = await sale_of(parts, scope)
    body = await read_body(receive, headers_of(scope))
    asked: ReceiptRequest = decode(_request, body)
    receipt = parts.receipts.read(asked.receipt)
    if not isinstance(receipt, EntryReceipt) or receipt.sale != sale.id:
        raise Problem(
            422, "receipt_unknown", "This is no receipt of an entry in this sale's lobby."
        )
    proof = parts.entry_proofs.issue(receipt, sale.commitment or "")
    if proof is None:
        raise Problem(404, "no_signing_key", "This site has no Ed25519 key to sign proofs with.")
    await send_json(send, encode(ProofDocument(sale.id, receipt.entry, proof)))
