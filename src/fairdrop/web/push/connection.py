"""The server's protocols, with what ASGI does not give: dropping a peer, its end, writing at once.

An application that wants to know of a disconnect has to wait in ``receive``, which takes a second
task for each stream; it cannot drop a peer that reads nothing, since closing waits for what is
buffered to be sent; and a message for ten thousand streams takes ten thousand turns of their tasks,
each framing it anew. All three are a few lines where the transport is at hand.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import State

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
    from websockets.http11 import Request

HIGH_WATER_BYTES = 16_384
"""What may wait in the process for a peer that reads slowly; more than that makes it wait itself."""
SEND_BUFFER_BYTES = 32_768
REQUEST_TIMEOUT_S = 10.0
REQUEST_BYTES = 32_768
KEY = "fairdrop.connection"
"""Where an application finds the :class:`Connection` in its scope."""
_POLICY_VIOLATION = 1008


class Connection:
    """One connection, for the application."""

    __slots__ = ("_keeps_up", "_transport", "lost", "on_lost")

    def __init__(self, transport: asyncio.Transport, keeps_up: Callable[[], bool]) -> None:
        """Take the transport, and what tells whether the peer reads what it is sent."""
        self._transport = transport
        self._keeps_up = keeps_up
        self.on_lost: Callable[[], None] | None = None
        """Called once, when the connection has ended; who sets it looks at ``lost`` as well."""
        self.lost = False

    def write(self, data: bytes) -> bool:
        """Put whole frames or chunks out at once; False, with nothing done, for a peer to wait for.

        Only between two messages of the application, once its answer has begun.
        """
        if self._transport.is_closing() or not self._keeps_up():
            return False
        self._transport.write(data)
        return True

    def end(self) -> None:
        """The connection has ended: tell whoever wants to know."""
        self.lost = True
        on_lost, self.on_lost = self.on_lost, None
        if on_lost is not None:
            on_lost()

    def abort(self) -> None:
        """End it at once; what is buffered is thrown away."""
        self._transport.abort()


class HttpProtocol(HttpToolsProtocol):
    """HTTP/1.1, with a connection in each scope."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Bound what is buffered."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=HIGH_WATER_BYTES)
        # The system's own buffer would grow to megabytes for a peer that does not read.
        sock = transport.get_extra_info("socket")
        with suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        self._connection = Connection(transport, self._keeps_up)
        self._patience = self.loop.call_later(REQUEST_TIMEOUT_S, self._give_up)
        self._head_bytes = 0
        self._asked = False

    def _give_up(self) -> None:
        """No request has come."""
        if not self._asked and not self.transport.is_closing():
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take what came, as long as it is not more than a request for a stream can be (S1)."""
        self._head_bytes += len(data)
        if self._head_bytes > REQUEST_BYTES and not self._asked:
            self.transport.abort()
            return
        super().data_received(data)

    def on_message_begin(self) -> None:
        """Put the connection into the new scope."""
        before: RequestResponseCycle | None = self.cycle
        if before is not None and not before.response_complete:
            # Behind a stream no other request is answered, and the end of the connection not seen.
            before.disconnected = True
            self.loop.call_soon(self.transport.abort)
        super().on_message_begin()
        scope: dict[str, Any] = self.scope  # type: ignore[assignment]
        scope[KEY] = self._connection

    def _keeps_up(self) -> bool:
        return not self.flow.write_paused

    def on_headers_complete(self) -> None:
        """The request is whole: from here on the application decides how long it takes."""
        self._asked = True
        self._patience.cancel()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the application."""
        self._patience.cancel()
        super().connection_lost(exc)
        self._connection.end()


class WebSocketProtocol(WebSocketsSansIOProtocol):
    """WebSocket, with a connection in the scope; a stream has nothing to be told."""

    def handle_connect(self, event: Request) -> None:
        """Put the connection into the scope; the application starts in the loop's next turn."""
        super().handle_connect(event)
        scope: dict[str, Any] | None = getattr(self, "scope", None)
        if scope is not None:
            scope[KEY] = Connection(self.transport, self._keeps_up)

    def _keeps_up(self) -> bool:
        return self.writable.is_set() and self.conn.state is State.OPEN and not self.close_sent

    def send_receive_event_to_app(self) -> None:
        """Whatever it was, nobody waits for it."""
        self.frames = []
        if not self.close_sent:
            self.conn.fail(_POLICY_VIOLATION, "nothing is to be sent")
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the application."""
        super().connection_lost(exc)
        scope: dict[str, Any] | None = getattr(self, "scope", None)
        if scope is not None and KEY in scope:
            scope[KEY].end()
