"""The crowd's HTTP client: one pool of connections, and patience with a shop that is restarting.

Every request is repeated, with the same idempotency key and ever more slowly, while the answer
promises nothing either way: no connection, no answer in time, 429, 502, 503 or 504. That is what a
buyer's browser does, so a process that is killed costs a buyer time and nothing else.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import defaultdict
from http import HTTPStatus
from types import TracebackType
from typing import Self

import aiohttp
import msgspec
from yarl import URL

from .turnstile import Turnstile

CONNECTIONS = 512
ATTEMPT_TIMEOUT_S = 15.0
KEEP_ALIVE_S = 5.0
"""Less than the server's patience with an idle connection, or requests meet one being closed."""
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 2.0
_BUSY = frozenset({429, 502, 503, 504})
_UNHURRIED = frozenset({"join", "leave"})
"""Steps without a deadline of the buyer's."""


class _Problem(msgspec.Struct, frozen=True):
    code: str = ""


_problem = msgspec.json.Decoder(_Problem)


class Answer(msgspec.Struct, frozen=True):
    """What came back."""

    status: int
    body: bytes
    etag: str = ""

    @property
    def code(self) -> str:
        """The machine-readable code of a problem document; empty for anything else."""
        if self.status < HTTPStatus.BAD_REQUEST:
            return ""
        try:
            return _problem.decode(self.body).code
        except msgspec.MsgspecError:
            return ""


class Client:
    """Sends the crowd's requests; an asynchronous context manager.

    ``latencies_ms`` has, for each named step, the time of every attempt that got a real answer: from
    the moment a connection was to be had until the body was read. ``repeats`` counts attempts
    that had to be made again.
    """

    def __init__(self, *, connections: int = CONNECTIONS) -> None:
        """At most ``connections`` requests are under way at one time."""
        self.latencies_ms: dict[str, list[float]] = defaultdict(list)
        self.requests = 0
        self.repeats = 0
        self._turnstile = Turnstile(connections)
        self._jitter = random.Random()
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        """Open the pool."""
        self._session = aiohttp.ClientSession(
            # The turnstile is the limit: a buyer's time begins when it is their turn to connect.
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=ATTEMPT_TIMEOUT_S),
            skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent"),
            auto_decompress=False,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the pool."""
        await self._session.close()

    async def call(
        self,
        step: str,
        method: str,
        url: URL,
        headers: dict[str, str] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        """Send the request until there is a real answer, for ever: the caller has the time limit.

        ``step`` names the latency. Headers and body are the same each time, the idempotency key
        among them.
        """
        hurried = step not in _UNHURRIED
        pause_s = FIRST_PAUSE_S
        while True:
            async with self._turnstile.passage(hurried=hurried):
                answer = await self._attempt(step, method, url, headers, body)
            if answer is not None:
                return answer
            raise_if_cancelled()
            self.repeats += 1
            await asyncio.sleep(pause_s * (0.5 + self._jitter.random()))
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _attempt(
        self, step: str, method: str, url: URL, headers: dict[str, str] | None, body: bytes | None
    ) -> Answer | None:
        """One attempt; None when it promised nothing."""
        self.requests += 1
        began = time.perf_counter()
        try:
            async with self._session.request(
                method, url, data=body, headers=headers, allow_redirects=False
            ) as response:
                raw = await response.read()
        except (aiohttp.ClientError, OSError, TimeoutError):
            return None
        if response.status in _BUSY:
            return None
        self.latencies_ms[step].append((time.perf_counter() - began) * 1_000)
        return Answer(response.status, raw, response.headers.get("ETag", ""))


def raise_if_cancelled() -> None:
    """Raise CancelledError if this task was told to end, and an error that it survived hid it.

    A connection that breaks at the moment of the cancellation can do that below us; a loop that
    goes on after errors would then never end.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def percentile(samples: list[float], share: float) -> float | None:
    """The smallest sample that at least ``share`` (0 to 1) of all do not exceed; None without any.

    >>> percentile([4.0, 1.0, 3.0, 2.0], 0.5), percentile([], 0.99)
    (2.0, None)
    """
    if not samples:
        return None
    ordered = sorted(samples)
    rank = -(-len(ordered) * share // 1)  # rounded up: the nearest-rank method
    return ordered[max(0, int(rank) - 1)]
