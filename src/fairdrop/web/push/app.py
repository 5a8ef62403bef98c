"""The application of the push process: streams, and what monitoring calls."""

from __future__ import annotations

import asyncio
import functools
import random
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from fairdrop.errors import DatabaseUnavailable
from fairdrop.web import health, metrics
from fairdrop.web.data_plane.base import sale_of
from fairdrop.web.data_plane.limits import limit_address
from fairdrop.web.live import Live
from fairdrop.web.wire import Problem, encode, headers_of, unavailable

from . import door, streams
from .connection import KEY, Connection
from .counts import Counts
from .feed import Feed
from .listener import Form, Listener, Message

if TYPE_CHECKING:
    from starlette.requests import Request

    from fairdrop.app import Parts
    from fairdrop.web.wire import Receive, Scope, Send

    from .listener import Broadcast

_PREFIX = "/v1/sales/"
_PARTS = 5
"""``/v1/sales/{sale}/{step}`` in parts: nothing, v1, sales, the sale, the step."""
_FORMS = {("http", "stream"): Form.SSE, ("websocket", "socket"): Form.WEBSOCKET}
COME_BACK_WITHIN_MS = 5_000
"""Over how long clients spread their return when this process stops."""
GOODBYE_S = 2.0
"""How long a stop waits for goodbyes to be read."""
_FULL = "Too many people listen at the moment. Ask for the sale from time to time instead."


class PushApp:
    """The ASGI application of one process."""

    def __init__(self, parts: Parts) -> None:
        """Take the parts; a feed begins with its first listener."""
        self._parts = parts
        self._live = Live(parts.inventory, push_url=parts.settings.push_url)
        self._feeds: dict[str, Feed] = {}
        self._stopping = False
        self._all_gone = asyncio.Event()
        self._door = door.Door(parts)
        self.counts = Counts()
        self._rest = Starlette(
            routes=[
                *(
                    route
                    for route in health.routes(parts, self._live)
                    if route.path in ("/livez", "/readyz")
                ),
                Route("/metrics", functools.partial(_metrics, parts, self._live, self.counts)),
            ]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a stream, or answer a request."""
        form = None
        if scope["type"] != "lifespan" and scope["path"].startswith(_PREFIX):
            parts = scope["path"].split("/")
            if len(parts) == _PARTS and parts[3] and scope.get("method", "GET") == "GET":
                form = _FORMS.get((scope["type"], parts[4]))
                scope["path_params"] = {"sale": parts[3]}
        if form is not None:
            await self._stream(form, scope, receive, send)
        elif scope["type"] == "websocket":
            await streams.refuse(
                scope, receive, send, Problem(404, "not_found", "There is no such address.")
            )
        else:
            await self._rest(scope, receive, send)

    async def say_goodbye(self) -> None:
        """Tell every listener when to come back, each another moment, and end their streams."""
        self._stopping = True
        for feed in self._feeds.values():
            feed.stop()
            for listener in list(feed.listeners):
                after_ms = random.randrange(COME_BACK_WITHIN_MS)  # noqa: S311 - only jitter
                listener.tell(Message("bye", encode({"reconnect_ms": after_ms})))
                listener.close()
        if any(self.counts.open.values()):
            with suppress(TimeoutError):
                async with asyncio.timeout(GOODBYE_S):
                    await self._all_gone.wait()

    async def _stream(self, form: Form, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            listener, feed, headers = await self._enter(form, scope)
        except Problem as problem:
            await streams.refuse(scope, receive, send, problem)
            return
        feed.add(listener)
        self.counts.open[form] += 1
        try:
            pump = streams.send_events if form is Form.SSE else streams.send_messages
            await pump(listener, headers, receive, send)
        finally:
            self.counts.open[form] -= 1
            if self._stopping and not any(self.counts.open.values()):
                self._all_gone.set()
            feed.remove(listener)
            if not feed.listeners and self._feeds.get(feed.sale_id) is feed:
                del self._feeds[feed.sale_id]

    async def _enter(
        self, form: Form, scope: Scope
    ) -> tuple[Listener, Feed, list[tuple[bytes, bytes]]]:
        """Who listens to what. Raises Problem."""
        limit_address(self._parts, scope, "requests")
        headers = headers_of(scope)
        self._door.check_origin(headers)
        try:
            sale = await sale_of(self._parts, scope)
        except DatabaseUnavailable as error:
            raise unavailable("database_unavailable", "The sale cannot be looked up.") from error
        visitor = self._door.visitor(scope, headers, sale.id)
        if (
            self._stopping
            or sum(self.counts.open.values()) >= self._parts.settings.push_connections
        ):
            self.counts.refused += 1
            raise unavailable("streams_full", _FULL, 30)
        connection: Connection | None = scope.get(KEY)
        listener = Listener(form, visitor, connection, self._sent)
        if connection is not None:
            connection.on_lost = listener.end
            if connection.lost:  # while the sale was looked up
                listener.end()
        feed = self._feeds.get(sale.id)
        if feed is None:
            feed = self._feeds[sale.id] = Feed(self._parts, self._live, sale.id, self.counts)
        return listener, feed, self._door.answer_headers(headers)

    def _sent(self, form: Form, broadcast: Broadcast | None) -> None:
        """One message has gone into its socket."""
        self.counts.sent[form] += 1
        if broadcast is not None:
            broadcast.left -= 1
            if broadcast.left == 0:
                self.counts.fan_outs.add(time.monotonic() - broadcast.began)


def make_push_app(parts: Parts) -> PushApp:
    """The application on these parts."""
    return PushApp(parts)


async def _metrics(parts: Parts, live: Live, counts: Counts, request: Request) -> Response:
    read = await metrics.read(parts, live)
    encoder, content_type = choose_encoder(request.headers.get("accept", ""))
    told = metrics.Told([*counts.families(), *read.families])
    return Response(encoder(told), headers={"cache-control": "no-store"}, media_type=content_type)
