"""The gate before the control plane: the API key, the size of bodies, and what caches may keep."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from fastapi import HTTPException

from fairdrop.web.wire import Problem, send_problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_LIMIT = 262_144
"""Bytes of a body: a sale with a hundred variants and the longest of names stays below it."""


class Gate:
    """Lets requests with the right API key through, before anything of them is read or parsed."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        """``key`` empty: nobody gets in, and everybody is told why."""
        self._app = app
        self._key = key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the key, then pass the request on with its body bounded."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await send_problem(send, refusal)
            return

        async def uncached(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), (b"cache-control", b"no-store")]
            await send(message)

        await self._app(scope, _bounded(receive), uncached)

    def _refusal(self, scope: Scope) -> Problem | None:
        if not self._key:
            return Problem(
                503,
                "control_plane_disabled",
                "No API key is set. Set FAIRDROP_ADMIN_KEY and start the server again.",
            )
        given = b""
        for name, value in scope["headers"]:
            if name == b"authorization":
                scheme, _, token = value.partition(b" ")
                given = token.strip() if scheme.lower() == b"bearer" else b""
        if hmac.compare_digest(given, self._key):
            return None
        detail = (
            "The API key is wrong." if given else "Send the API key as 'Authorization: Bearer KEY'."
        )
        challenge = (b"www-authenticate", b"Bearer")
        return Problem(401, "api_key_required", detail, headers=(challenge,))


def _bounded(receive: Receive) -> Receive:
    size = 0

    async def bounded() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > BODY_LIMIT:
            # FastAPI's own class is the only one that passes through its reading of bodies.
            raise HTTPException(413, f"Send at most {BODY_LIMIT} bytes.")
        return message

    return bounded
