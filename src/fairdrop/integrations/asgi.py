"""The door for ASGI applications: Starlette, FastAPI, Quart, Litestar and others.

::

    app = FairdropMiddleware(app, Door("https://tickets.example.org", "midnight-drop"))

The admission is in ``scope["fairdrop.admission"]``; None where none is needed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from .model import Answer, Visit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from .door import Door

    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    App = Callable[[Scope, Receive, Send], Awaitable[None]]

_FORM_LIMIT = 8_192


class FairdropMiddleware:
    """Wraps an ASGI application with a door. WebSockets are refused by closing (403)."""

    def __init__(self, app: App, door: Door) -> None:
        """Take the application and the door."""
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Decide, then go on or answer."""
        path = scope.get("root_path", "") + scope["path"] if "path" in scope else ""
        if scope["type"] not in ("http", "websocket") or not self._door.concerns(scope["path"]):
            await self._app(scope, receive, send)
            return
        visit = await _visit(scope, path, receive, self._door)
        decided = self._door.decide_at_once(visit)
        if decided is None:
            decided = await asyncio.to_thread(self._door.decide, visit)
        if isinstance(decided, Answer):
            await _answer(scope, send, decided)
            return
        scope["fairdrop.admission"] = decided.admission
        cookies = [(b"set-cookie", cookie.encode()) for cookie in decided.set_cookies]

        async def with_cookies(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.accept"):
                message["headers"] = [*message.get("headers", []), *cookies]
            await send(message)

        await self._app(scope, receive, with_cookies if cookies else send)


async def _visit(scope: Scope, path: str, receive: Receive, door: Door) -> Visit:
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    method = scope.get("method", "GET")
    body = b""
    if door.wants_body(method, scope["path"]):
        more = True
        while more and len(body) <= _FORM_LIMIT:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
    scheme = {"ws": "http", "wss": "https"}.get(scope["scheme"], scope["scheme"])
    query = scope.get("query_string", b"").decode("latin-1")
    address = f"{scheme}://{headers.get('host', '')}{path}" + (f"?{query}" if query else "")
    return Visit(method, scope["path"], address, headers, body)


async def _answer(scope: Scope, send: Send, answer: Answer) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": "not admitted"})
        return
    headers = [(name.encode(), value.encode("latin-1")) for name, value in answer.headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
