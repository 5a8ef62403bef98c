"""Changes of operators that carry an Idempotency-Key are answered once (H3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import HTTPException

from fairdrop.web.idempotency import CHANGES, answer_once, key_of
from fairdrop.web.wire import Problem, send_problem, too_large

from .gate import BODY_LIMIT

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from fairdrop.checkout import Answers

CLIENT = "operator"
"""Whose keys they are: there is one API key."""
_OWN_KEYS = "/refund"
"""Refunds keep their keys in their own rows, and answer with how the refund stands now."""


class Keyed:
    """Keeps the answers to requests with a key, behind the gate: the key's holder has been checked."""

    def __init__(self, app: ASGIApp, answers: Answers) -> None:
        """Wrap the application."""
        self._app = app
        self._answers = answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or repeat the answer it got before."""
        changes = scope["type"] == "http" and scope["method"] in CHANGES
        if not changes or key_of(scope) is None or scope["path"].endswith(_OWN_KEYS):
            await self._app(scope, receive, send)
            return
        try:
            body = await _whole(receive)
        except HTTPException:  # the gate's own, for a body beyond the limit
            await send_problem(send, too_large(BODY_LIMIT))
            return
        except Problem as problem:
            await send_problem(send, problem)
            return
        await answer_once(self._answers, CLIENT, body, self._app, scope, send)


async def _whole(receive: Receive) -> bytes:
    parts, more = [], True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Problem(400, "body_incomplete", "The connection ended before the body did.")
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)
