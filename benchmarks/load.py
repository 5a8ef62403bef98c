"""A load generator that costs little: raw HTTP/1.1 over kept-open connections, one event loop.

Each connection has one request under way. Requests are bytes made beforehand, so that what is
measured is the server and not the making of requests.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_END_OF_HEAD = b"\r\n\r\n"
_LENGTH = b"content-length: "


def body_of(answer: bytes) -> bytes | None:
    """The body of an answer; None while some of it is still on its way."""
    head = answer.find(_END_OF_HEAD)
    if head < 0:
        return None
    at = answer.find(_LENGTH, 0, head + 2)
    length = int(answer[at + len(_LENGTH) : answer.find(b"\r", at)]) if at >= 0 else 0
    return answer[head + 4 :] if len(answer) >= head + 4 + length else None


@dataclass
class Measured:
    """What a run saw: its length, the answers by status, and (open loop) latencies in seconds."""

    seconds: float = 0.0
    statuses: Counter[bytes] = field(default_factory=Counter)
    latencies_s: list[float] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    @property
    def per_s(self) -> float:
        """Answers per second."""
        return self.statuses.total() / self.seconds

    def percentile_ms(self, share: float) -> float:
        """The latency that ``share`` of the answers stayed below, in milliseconds."""
        ordered = sorted(self.latencies_s)
        return 1_000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class _Connection(asyncio.Protocol):
    """One connection: sends what it is given, collects one answer, asks for the next request."""

    def __init__(self, run: _Run) -> None:
        self._run = run
        self._buffer = b""
        self._transport: asyncio.Transport
        self.sent_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def send(self, request: bytes, now: float) -> None:
        self.sent_at = now
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        if self._buffer:
            data = self._buffer + data
        body = body_of(data)
        if body is None:
            self._buffer = data
            return
        self._buffer = b""
        self._run.answered(self, data[9:12], body)

    def close(self) -> None:
        self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._run.lost(exc)


class _Run:
    def __init__(self, requests: Sequence[bytes], *, keep_bodies: bool) -> None:
        self.measured = Measured()
        self._requests = iter(requests)
        self._left = len(requests)
        self._keep_bodies = keep_bodies
        self.done = asyncio.get_running_loop().create_future()

    def answered(self, connection: _Connection, status: bytes, body: bytes) -> None:
        self.measured.statuses[status] += 1
        if self._keep_bodies:
            self.measured.bodies.append(body)
        self._left -= 1
        if self._left == 0 and not self.done.done():
            self.done.set_result(None)
        self.idle(connection)

    def idle(self, connection: _Connection) -> None:
        request = next(self._requests, None)
        if request is not None:
            connection.send(request, 0.0)

    def lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionError("the server closed a connection"))


class _PacedRun(_Run):
    """Requests leave at a given rate whether or not earlier ones were answered."""

    def __init__(self, requests: Sequence[bytes], per_s: float) -> None:
        super().__init__(requests, keep_bodies=False)
        self._per_s = per_s
        self._idle: list[_Connection] = []
        self._late: list[float] = []

    def idle(self, connection: _Connection) -> None:
        if self._late:
            # Sent late because all connections were busy: its latency counts from when it was due.
            connection.send(next(self._requests), self._late.pop(0))
        else:
            self._idle.append(connection)

    def answered(self, connection: _Connection, status: bytes, body: bytes) -> None:
        self.measured.latencies_s.append(time.perf_counter() - connection.sent_at)
        super().answered(connection, status, body)

    async def pace(self, total: int) -> None:
        began, sent = time.perf_counter(), 0
        while sent < total:
            due = min(total, int((time.perf_counter() - began) * self._per_s) + 1)
            while sent < due:
                at = began + sent / self._per_s
                if self._idle:
                    self._idle.pop().send(next(self._requests), at)
                else:
                    self._late.append(at)
                sent += 1
            await asyncio.sleep(0.001)


async def _connect(run: _Run, port: int, connections: int) -> list[_Connection]:
    loop = asyncio.get_running_loop()
    made = []
    for _ in range(connections):
        _, protocol = await loop.create_connection(lambda: _Connection(run), "127.0.0.1", port)
        made.append(protocol)
    return made


async def closed_loop(
    port: int, requests: Sequence[bytes], *, connections: int = 128, keep_bodies: bool = False
) -> Measured:
    """Send all requests as fast as the server answers; the server is what bounds it.

    The connections are open before the clock runs: shops' proxies keep theirs open too.
    """
    run = _Run(requests, keep_bodies=keep_bodies)
    made = await _connect(run, port, min(connections, len(requests)))
    began = time.perf_counter()
    for connection in made:
        run.idle(connection)
    await run.done
    run.measured.seconds = time.perf_counter() - began
    for connection in made:
        connection.close()
    return run.measured


async def paced(
    port: int, requests: Sequence[bytes], per_s: float, *, connections: int = 256
) -> Measured:
    """Send the requests at a rate, and measure how long each answer takes."""
    run = _PacedRun(requests, per_s)
    made = await _connect(run, port, connections)
    for connection in made:
        run.idle(connection)
    began = time.perf_counter()
    await run.pace(len(requests))
    await run.done
    run.measured.seconds = time.perf_counter() - began
    for connection in made:
        connection.close()
    return run.measured


class _MomentRun(_Run):
    """Each connection is one person, whose requests follow one another; all begin at one moment."""

    def __init__(self, people: Sequence[Sequence[bytes]]) -> None:
        super().__init__([request for person in people for request in person], keep_bodies=False)
        self._people = iter(people)
        self._next: dict[_Connection, list[bytes]] = {}

    def idle(self, connection: _Connection) -> None:
        if connection not in self._next:
            self._next[connection] = list(next(self._people))
        if self._next[connection]:
            connection.send(self._next[connection].pop(0), 0.0)


async def all_at_one_moment(port: int, people: Sequence[Sequence[bytes]]) -> Measured:
    """A connection for each person, opened beforehand; then all of them send at once."""
    run = _MomentRun(people)
    made = await _connect(run, port, len(people))
    began = time.perf_counter()
    for connection in made:
        run.idle(connection)
    await run.done
    run.measured.seconds = time.perf_counter() - began
    for connection in made:
        connection.close()
    return run.measured


def http(method: str, path: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    """One request as bytes."""
    lines = [f"{method} {path} HTTP/1.1", "host: 127.0.0.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body or method == "POST":
        lines.append(f"content-length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


class Caller(asyncio.Protocol):
    """A connection whose requests and answers belong together: one at a time, each awaited."""

    def __init__(self) -> None:
        self._buffer = b""
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._transport: asyncio.Transport

    @classmethod
    async def dial(cls, port: int) -> Caller:
        """Connect."""
        loop = asyncio.get_running_loop()
        _, caller = await loop.create_connection(cls, "127.0.0.1", port)
        return caller

    def ask(self, request: bytes) -> asyncio.Future[tuple[int, bytes]]:
        """Send the request; the future resolves to status and body."""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._answer

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write to."""
        self._transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        """Collect an answer."""
        data = self._buffer + data
        body = body_of(data)
        if body is None or self._answer is None:
            self._buffer = data
            return
        self._buffer = b""
        self._answer.set_result((int(data[9:12]), body))

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever waits."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionError("the server closed a connection"))
