"""Calls to one server over connections that stay open: what a payment needs of HTTP/1.1, and no more.

A purchase makes two of them, to the gateway and back with its webhook, and a general client took more
of the machine for these two than the database for the whole purchase (docs/decisions/0007). The bytes
of an answer are read by llhttp, through httptools, as Uvicorn reads requests.

Each call has one connection to itself while it lasts, and there are as many connections as calls at
once: whoever calls keeps these within bounds. A call is made once: an answer that does not come, or
is not one, raises :class:`NoAnswer`, and the connection is closed. Redirects are answers like others;
an answer says how long it is, or comes in chunks: what ends with the connection counts as cut off.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import httptools

from fairdrop.errors import FairdropError

if TYPE_CHECKING:
    from collections.abc import Mapping

IDLE_S = 15.0
"""Connections that have rested longer are not used again: servers close them some time."""
ANSWER_BYTES = 4_194_304
"""More than a page of 1,000 charges; whatever is longer is no answer."""

_OK_FROM = 200


class NoAnswer(FairdropError):
    """No answer, or none that could be read, in time. Whether the call took effect is unknown."""


class Answer(NamedTuple):
    """What the server said."""

    status: int
    body: bytes


class Calls:
    """Calls to one address, all with the same headers. :meth:`close` it in the end."""

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        *,
        connect_timeout_s: float,
        timeout_s: float,
    ) -> None:
        """``base_url`` is http or https; ``timeout_s`` is for a call as a whole."""
        parts = urlsplit(base_url)
        secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if secure else 80)
        self._ssl = ssl.create_default_context() if secure else None
        self._connect_timeout_s = connect_timeout_s
        self._timeout_s = timeout_s
        self._path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        host = parts.netloc.rpartition("@")[2]
        self._head = "".join(_line(*header) for header in {"host": host, **headers}.items())
        self._idle: list[_Connection] = []
        """The longest idle first."""

    async def call(
        self,
        method: str,
        path: str = "",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Make one call. Raises NoAnswer. ``path`` is added to that of the base.

        Cost: 15 to 20 us where a connection rests.
        """
        length = "" if body is None else f"content-length: {len(body)}\r\n"
        lines = "".join(_line(*header) for header in headers.items()) if headers else ""
        target = _target(self._path + path)
        head = f"{method} {target} HTTP/1.1\r\n{self._head}{lines}{length}\r\n"
        request = head.encode("latin-1") + (body or b"")
        loop = asyncio.get_running_loop()
        began = loop.time()
        connection = self._rested(began) or await self._connect(loop)
        answer = await connection.ask(request, began + self._timeout_s)
        connection.idle_since = loop.time()
        if connection.usable:
            self._idle.append(connection)
        return answer

    def close(self) -> None:
        """Close what rests. Calls under way end as they would; a later call connects anew."""
        while self._idle:
            self._idle.pop().close()

    def _rested(self, now: float) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if now - connection.idle_since > IDLE_S:
                connection.close()
                self.close()  # all others have rested even longer
            elif connection.usable:
                return connection
        return None

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> _Connection:
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                _, connection = await loop.create_connection(
                    lambda: _Connection(loop), self._host, self._port, ssl=self._ssl
                )
        except (OSError, TimeoutError) as error:
            raise NoAnswer(f"no connection: {type(error).__name__}") from error
        return connection


class _Connection(asyncio.Protocol):
    """One connection, with at most one call under way."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport
        self._answer: asyncio.Future[Answer] | None = None
        self._parts: list[bytes] = []
        self._bytes = 0
        self.usable = False
        self.idle_since = 0.0

    async def ask(self, request: bytes, ends: float) -> Answer:
        """Send the request and wait for its answer until a time of the loop's."""
        answer: asyncio.Future[Answer] = self._loop.create_future()
        self._answer = answer
        timer = self._loop.call_at(ends, self._fail, "no answer in time")
        try:
            self._transport.write(request)
            return await answer
        except asyncio.CancelledError:
            self.close()  # its answer would be taken for that of the next call
            raise
        finally:
            timer.cancel()
            self._answer = None

    def close(self) -> None:
        """Close the connection."""
        self.usable = False
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self.usable = True

    def connection_lost(self, exc: Exception | None) -> None:
        self.usable = False
        self._fail(f"the connection ended: {type(exc).__name__}" if exc else "it hung up")

    def data_received(self, data: bytes) -> None:
        if self._answer is None:
            self.close()  # nothing was asked
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(f"not HTTP: {type(error).__name__}")
            self.close()

    def on_message_begin(self) -> None:
        if self._answer is None or self._answer.done():
            self.close()  # a second answer

    def on_body(self, body: bytes) -> None:
        self._bytes += len(body)
        if self._bytes > ANSWER_BYTES:
            self._fail("the answer is too long")
        else:
            self._parts.append(body)

    def on_message_complete(self) -> None:
        status, body = self._parser.get_status_code(), b"".join(self._parts)
        self._parts.clear()
        self._bytes = 0
        if status < _OK_FROM:
            return  # the server has begun; the answer is still to come
        if not self._parser.should_keep_alive():
            self.close()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(Answer(status, body))

    def _fail(self, why: str) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(NoAnswer(why))
            self.close()


def _line(name: str, value: str) -> str:
    if "\r" in value or "\n" in value:
        raise ValueError(f"the header {name} has a line break")
    return f"{name}: {value}\r\n"


def _target(path: str) -> str:
    if not path.isascii() or not path.isprintable() or " " in path:
        raise ValueError("a path is printable ASCII without spaces")
    return path or "/"
