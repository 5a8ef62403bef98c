"""The two forms of a stream over ASGI: Server-Sent Events and WebSocket."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fairdrop.web.wire import send_problem

from .listener import Form

if TYPE_CHECKING:
    from fairdrop.web.wire import Header, Problem, Receive, Scope, Send

    from .listener import Listener

_EVENTS: list[Header] = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
_SERVICE_RESTART = 1012


async def send_events(
    listener: Listener, headers: list[Header], _receive: Receive, send: Send
) -> None:
    """Server-sent events until the listener is closed."""
    await send({"type": "http.response.start", "status": 200, "headers": [*_EVENTS, *headers]})
    # The browser's own attempts to come back: ours are better spread.
    await send({"type": "http.response.body", "body": b"retry: 5000\n\n", "more_body": True})

    async def put(body: bytes) -> None:
        await send({"type": "http.response.body", "body": body, "more_body": True})

    while True:
        personal, broadcast = await listener.take()
        if not personal and broadcast is None:
            break
        listener.busy_since = time.monotonic()
        for message in personal:
            await put(message.sse())
            listener.sent(Form.SSE, None)
        if broadcast is not None:
            await put(broadcast.message.sse())
            listener.sent(Form.SSE, broadcast)
        listener.busy_since = 0.0
    await send({"type": "http.response.body", "body": b""})


async def send_messages(
    listener: Listener, headers: list[Header], receive: Receive, send: Send
) -> None:
    """WebSocket messages until the listener is closed."""
    await receive()
    await send({"type": "websocket.accept", "headers": headers})
    while True:
        personal, broadcast = await listener.take()
        if not personal and broadcast is None:
            break
        listener.busy_since = time.monotonic()
        for message in personal:
            await send({"type": "websocket.send", "text": message.text()})
            listener.sent(Form.WEBSOCKET, None)
        if broadcast is not None:
            await send({"type": "websocket.send", "text": broadcast.message.text()})
            listener.sent(Form.WEBSOCKET, broadcast)
        listener.busy_since = 0.0
    if not listener.gone:
        await send({"type": "websocket.close", "code": _SERVICE_RESTART})


async def refuse(scope: Scope, receive: Receive, send: Send, problem: Problem) -> None:
    """A problem document, also as the answer to a WebSocket's handshake."""
    if scope["type"] == "http":
        await send_problem(send, problem)
        return
    await receive()

    async def denied(message: dict[str, object]) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    await send_problem(denied, problem)  # type: ignore[arg-type]
