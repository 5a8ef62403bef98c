"""Changes that may carry an Idempotency-Key, answered once for each visitor and key (H3)."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from fairdrop.web.idempotency import answer_once, key_of
from fairdrop.web.wire import Problem, headers_of, read_body, send_problem

from .base import Endpoint, named_visitor

if TYPE_CHECKING:
    from fairdrop.app import Parts
    from fairdrop.web.watch import CheckoutWatch
    from fairdrop.web.wire import Receive, Scope, Send

    from .base import Handler


class KeyedEndpoint(Endpoint):
    """An endpoint whose answers are kept under the request's key, if it has one."""

    __slots__ = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request. Without a key, or a visitor, as any other endpoint does."""
        if key_of(scope) is None:
            await super().__call__(scope, receive, send)
            return
        headers = headers_of(scope)
        try:
            visitor = named_visitor(self._parts, headers)
        except Problem:
            visitor = None  # which the endpoint tells
        if visitor is None:
            await super().__call__(scope, receive, send)
            return
        try:
            body = await read_body(receive, headers)
        except Problem as problem:
            await send_problem(send, problem)
            return
        client = f"visitor:{visitor}"
        answers = self._parts.answers
        await answer_once(answers, client, body, super().__call__, scope, send)


def keyed(
    parts: Parts, handler: Handler, *args: Any, watch: CheckoutWatch | None = None
) -> KeyedEndpoint:
    """As ``endpoint``, for a change that may carry a key."""
    return KeyedEndpoint(parts, functools.partial(handler, parts, *args), watch=watch)
