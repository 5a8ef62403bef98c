"""One open stream: what it has yet to be sent, bounded, and how it is told in its own form."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from websockets.frames import Frame, Opcode

if TYPE_CHECKING:
    from collections.abc import Callable

    from .connection import Connection

    Sent = Callable[["Form", "Broadcast | None"], None]

MOST_PERSONAL = 8
"""Messages for one person that may wait; who is further behind than that does not listen."""


class Form(Enum):
    """The two forms of a stream."""

    SSE = "sse"
    WEBSOCKET = "websocket"


class Message:
    """One message in both forms, made once however many get it."""

    __slots__ = ("_wire", "body", "kind")

    def __init__(self, kind: str, body: bytes) -> None:
        """``body`` is JSON in one line."""
        self.kind = kind
        self.body = body
        self._wire: dict[Form, bytes] = {}

    def sse(self) -> bytes:
        """As a server-sent event."""
        return b"event: %b\ndata: %b\n\n" % (self.kind.encode(), self.body)

    def text(self) -> str:
        """As the text of a WebSocket's message."""
        return f'{{"type":"{self.kind}","data":{self.body.decode()}}}'

    def wire(self, form: Form) -> bytes:
        """As the bytes of a whole chunk (RFC 9112, section 7.1) or frame (RFC 6455, section 5.2)."""
        found = self._wire.get(form)
        if found is None:
            if form is Form.SSE:
                event = self.sse()
                found = b"%x\r\n%b\r\n" % (len(event), event)
            else:
                found = Frame(Opcode.TEXT, self.text().encode()).serialize(mask=False)
            self._wire[form] = found
        return found


@dataclass(slots=True)
class Broadcast:
    """A public document on its way to everybody."""

    message: Message
    began: float
    left: int = 0

    @classmethod
    def of(cls, body: bytes) -> Broadcast:
        """The document, from now on."""
        return cls(Message("sale", body), time.monotonic())


class Listener:
    """What waits for one stream: the newest public document, and a few messages for its person.

    While its client reads, what is offered goes into the socket at once. Otherwise a newer document
    replaces one that was not sent yet, so the memory of a stream does not grow however slowly its
    client reads. One task sends what had to wait; anything may offer.
    """

    __slots__ = (
        "_broadcast",
        "_closing",
        "_personal",
        "_waiter",
        "busy_since",
        "connection",
        "form",
        "gone",
        "sent",
        "shown",
        "visitor",
    )

    def __init__(
        self, form: Form, visitor: str | None, connection: Connection | None, sent: Sent
    ) -> None:
        """Nothing waits yet; ``sent`` is told of each message that went into the socket."""
        self.form = form
        self.visitor = visitor
        self.connection = connection
        self.sent = sent
        self.busy_since = 0.0
        """Since when a message has been on its way into the socket; 0 while none is."""
        self.gone = False
        """Whether the connection has ended."""
        self.shown: Message | None = None
        """The last public document that went out together with a message for the person."""
        self._broadcast: Broadcast | None = None
        self._personal: tuple[Message, ...] = ()
        self._closing = False
        self._waiter: asyncio.Future[None] | None = None

    def offer(self, broadcast: Broadcast) -> bool:
        """Let it be the next public document; True when that replaces one that was never sent."""
        if self._put(broadcast.message):
            self.sent(self.form, broadcast)
            return False
        replaced, self._broadcast = self._broadcast, broadcast
        if replaced is not None:
            replaced.left -= 1
        self._wake()
        return replaced is not None

    def tell(self, message: Message, document: Message | None = None) -> bool:
        """Add a message for the person; False when too many wait already.

        The public document that is due goes into the socket with it, if that takes any: then it is
        ``shown``. One call into the system for both, in which most of their cost lies.
        """
        if self._put(message, document):
            self.sent(self.form, None)
            if document is not None:
                self.sent(self.form, None)
                self.shown = document
            return True
        if len(self._personal) >= MOST_PERSONAL:
            return False
        self._personal += (message,)
        self._wake()
        return True

    def close(self) -> None:
        """Send what waits, then end."""
        self._closing = True
        self._wake()

    def end(self) -> None:
        """The connection has ended: whatever waits will not be sent."""
        self.gone = True
        if self._broadcast is not None:
            self._broadcast.left -= 1
        self._personal, self._broadcast = (), None
        self.close()

    async def take(self) -> tuple[tuple[Message, ...], Broadcast | None]:
        """What is to be sent now; nothing at all when the stream is to end."""
        while not self._personal and self._broadcast is None and not self._closing:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        taken = self._personal, self._broadcast
        self._personal, self._broadcast = (), None
        return taken

    def _put(self, message: Message, document: Message | None = None) -> bool:
        """Send it without the task's turn, while that has nothing to do and the client reads."""
        if self._waiter is None or self.connection is None:
            return False
        data = message.wire(self.form)
        if document is not None:  # First, since a place counts in the epoch of the document.
            data = document.wire(self.form) + data
        return self.connection.write(data)

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
