"""Endpoints that need no identity: sales, public documents, keys, and what gateways tell."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import structlog

from fairdrop.payments import WebhookRefusal
from fairdrop.web.wire import (
    Problem,
    encode,
    headers_of,
    read_body,
    rfc3339,
    send_json,
    send_raw,
    send_tagged,
)

from .base import sale_of

if TYPE_CHECKING:
    from fairdrop.app import Parts
    from fairdrop.web.live import Live
    from fairdrop.web.wire import Receive, Scope, Send

_log = structlog.get_logger(__name__)

_PUBLIC_CACHE = (b"cache-control", b"public, max-age=1, stale-while-revalidate=5")
_WEBHOOK_LIMIT = 65_536


async def sales(parts: Parts, _scope: Scope, _receive: Receive, send: Send) -> None:
    """GET /v1/sales."""
    body = encode(
        {
            "sales": [
                {
                    "id": sale.id,
                    "slug": sale.slug,
                    "name": sale.name,
                    "mode": sale.mode,
                    "opens_at": rfc3339(sale.opens_at),
                    "closes_at": rfc3339(sale.closes_at) if sale.closes_at else None,
                    "timezone": sale.timezone,
                    "currency": sale.currency,
                }
                for sale in await parts.catalog.sales()
            ]
        }
    )
    await send_raw(
        send,
        200,
        [
            (b"content-type", b"application/json"),
            (b"cache-control", b"public, max-age=5, stale-while-revalidate=10"),
        ],
        body,
    )


async def sale(parts: Parts, live: Live, scope: Scope, _receive: Receive, send: Send) -> None:
    """GET /v1/sales/{sale}: the same document for everybody (W6)."""
    document = await live.document(await sale_of(parts, scope))
    asked = headers_of(scope).get(b"if-none-match")
    await send_tagged(send, asked, document.etag, [_PUBLIC_CACHE], document.body)


async def jwks(parts: Parts, _scope: Scope, _receive: Receive, send: Send) -> None:
    """GET /.well-known/jwks.json: the keys that verify admission tokens (W12)."""
    headers = [
        (b"content-type", b"application/json"),
        (b"cache-control", b"public, max-age=300"),
    ]
    await send_raw(send, 200, headers, encode(parts.admissions.jwks()))


async def webhook(parts: Parts, scope: Scope, receive: Receive, send: Send) -> None:
    """POST /v1/webhooks/{gateway}: checked, stored, and only then answered (O6)."""
    name = scope["path_params"]["gateway"]
    gateway = parts.gateways.get(name)
    if gateway is None:
        raise Problem(404, "no_such_gateway", "No gateway of this name is configured.")
    body = await read_body(receive, headers_of(scope), _WEBHOOK_LIMIT)
    headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
    event = gateway.verify_webhook(headers, body, int(time.time()))
    if event is WebhookRefusal.KIND_UNKNOWN:
        await send_json(send, encode({"received": True, "ignored": True}))
        return
    if isinstance(event, WebhookRefusal):
        _log.warning("webhook_refused", gateway=name, reason=event.value)
        malformed = event is WebhookRefusal.BODY_MALFORMED
        raise Problem(400 if malformed else 401, event.value, "The webhook was not accepted.")
    await parts.inbox.store(name, event)
    await send_json(send, encode({"received": True}))
