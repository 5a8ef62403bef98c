"""Requests and batches as metrics: plain numbers while serving, Prometheus only when somebody looks.

The histogram of the Prometheus client costs microseconds an observation, and several times that
over its shared files. So endpoints of the data plane count for themselves
(:class:`~fairdrop.web.tally.Tally`, 0.3 us a request), everything else is counted here, and the
sums are handed over when ``/metrics`` is read. With several web workers they also are once a
second, so that whichever of them is asked knows of all (``PROMETHEUS_MULTIPROC_DIR``).
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter as Totals
from collections.abc import Awaitable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from fairdrop.batching import Batcher
from fairdrop.drivers.sale_scripts import CoalescedScript

from .data_plane.base import Endpoint, Steps
from .tally import BOUNDS_S, SUCCESS, Tallies, Tally

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from starlette.applications import Starlette
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from fairdrop.app import Parts

HAND_OVER_EVERY_S = 1.0
SHARED = "PROMETHEUS_MULTIPROC_DIR"
_COUNTED_BY_ENDPOINTS = "/v1/"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SUCCESSES = range(200, 300)


class _Counted(NamedTuple):
    """An endpoint that counts for itself."""

    method: str
    route: str
    tallies: Tallies


class _SummedHistogram(Histogram):
    """A histogram that takes many observations at once."""

    def add(self, tally: Tally) -> None:
        """Add what was tallied."""
        for bucket, count in zip(self._buckets, tally.counts, strict=True):
            if count:
                bucket.inc(count)
        self._sum.inc(tally.seconds)


class Meter:
    """The application, with its requests and batches counted."""

    def __init__(self, app: Starlette, parts: Parts, *, serve: ASGIApp | None = None) -> None:
        """Wrap the application; its ``state.meter`` becomes this object, for ``/metrics``.

        ``serve`` is what requests go to, when that is not the application itself.
        """
        self._app = serve or app
        self._parts = parts
        self._endpoints = list(_endpoints(app.routes))
        self._others: dict[tuple[str, str], Tallies] = {}
        """(method, route) of what does not count for itself."""
        self._handed_over: Totals[tuple[str, str]] = Totals()
        self._shared = bool(os.environ.get(SHARED))
        self.registry = CollectorRegistry()
        own = None if self._shared else self.registry
        self._requests = _SummedHistogram(
            "fairdrop_http_request_seconds",
            "Time to answer, and number of answers, by route, method and status (2xx: no error)",
            ["route", "method", "status"],
            buckets=BOUNDS_S,
            registry=own,
        )
        self._batches = Counter(
            "fairdrop_batches", "Batches that coalesced calls were made in", ["batch"], registry=own
        )
        self._items = Counter(
            "fairdrop_batch_items", "Calls that were coalesced", ["batch"], registry=own
        )
        self._queues = Gauge(
            "fairdrop_batch_queue",
            "Calls that wait for a batch",
            ["batch"],
            registry=own,
            multiprocess_mode="livesum",
        )
        if self._shared:
            MultiProcessCollector(self.registry)  # type: ignore[no-untyped-call]
            self._hand_over_again()
        app.state.meter = self

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve the request, and see that it is counted.

        What counts for itself goes straight on: not even a coroutine is added.
        """
        if scope["type"] != "http" or scope["path"].startswith(_COUNTED_BY_ENDPOINTS):
            return self._app(scope, receive, send)
        return self._counting(scope, receive, send)

    async def _counting(self, scope: Scope, receive: Receive, send: Send) -> None:
        status = 500

        def counted(message: Message) -> Awaitable[None]:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            return send(message)

        began = perf_counter()
        try:
            await self._app(scope, receive, counted)
        finally:
            # Only names of ours become labels: whatever clients make up is one of each.
            method = scope["method"] if scope["method"] in _METHODS else "other"
            path = getattr(scope.get("route"), "path", None)
            route = "unknown" if path is None else scope.get("root_path", "") + path
            tallies = self._others.setdefault((method, route), Tallies())
            tallies[SUCCESS if status in _SUCCESSES else status].add(perf_counter() - began)

    def hand_over(self) -> None:
        """Give the sums since the last time to Prometheus."""
        counted = [
            *self._endpoints,
            *(_Counted(method, route, of) for (method, route), of in self._others.items()),
        ]
        for method, route, tallies in counted:
            for status, tally in tallies.take().items():
                label = str(status) if status else "2xx"
                self._requests.labels(route, method, label).add(tally)
        batches: Totals[str] = Totals()
        items: Totals[str] = Totals()
        waiting: Totals[str] = Totals()
        for batcher in _batchers(self._parts):
            batches[batcher.name] += batcher.batches
            items[batcher.name] += batcher.items
            waiting[batcher.name] += batcher.waiting
        for kind, totals, metric in (
            ("batches", batches, self._batches),
            ("items", items, self._items),
        ):
            for name, so_far in totals.items():
                metric.labels(name).inc(so_far - self._handed_over[kind, name])
                self._handed_over[kind, name] = so_far
        for name, number in waiting.items():
            self._queues.labels(name).set(number)

    def _hand_over_again(self) -> None:
        self.hand_over()
        asyncio.get_running_loop().call_later(HAND_OVER_EVERY_S, self._hand_over_again)

    def forget_the_dead(self) -> None:
        """Take queues of worker processes that are gone out of the shared files."""
        if not self._shared:
            return
        directory = os.environ[SHARED]
        for path in Path(directory).glob("gauge_live*.db"):
            pid = path.stem.rpartition("_")[2]
            if pid.isdigit() and not _lives(int(pid)):
                mark_process_dead(int(pid), directory)  # type: ignore[no-untyped-call]


def _endpoints(routes: Sequence[Any]) -> Iterator[_Counted]:
    """Every endpoint among the routes that counts for itself."""
    for route in routes:
        endpoint = getattr(route, "endpoint", None)
        if isinstance(endpoint, Steps):
            for (method, step), found in endpoint.endpoints.items():
                yield _Counted(method, route.path.replace("{step}", step), found.tallies)
        elif isinstance(endpoint, Endpoint):
            for method in (route.methods or {"any"}) - {"HEAD"}:
                yield _Counted(method, route.path, endpoint.tallies)


def _batchers(parts: Parts) -> Iterator[Batcher[Any, Any]]:
    """Every batcher of the services, those made for one sale included."""
    for service in (parts.waiting_room, parts.inventory, parts.checkout, parts.inbox):
        for part in vars(service).values():
            if isinstance(part, Batcher):
                yield part
            elif isinstance(part, CoalescedScript):
                yield from part.batchers


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
