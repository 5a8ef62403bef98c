"""Whether the process lives, whether it can serve, and how it is doing (S5)."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING

from prometheus_client.exposition import choose_encoder
from starlette.responses import Response
from starlette.routing import Route

from fairdrop.errors import DatabaseUnavailable, StoreUnavailable

from . import metrics
from .wire import encode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from fairdrop.app import Parts
    from fairdrop.web.live import Live

    from .meter import Meter

__all__ = ["routes"]

PART_TIMEOUT_S = 1.0
_NO_STORE = {"cache-control": "no-store"}
_OK = "ok"


def routes(parts: Parts, live: Live) -> list[Route]:
    """``/livez``, ``/readyz`` and ``/metrics``.

    Requests and batches are among the metrics when the application runs inside a
    :class:`~fairdrop.web.meter.Meter`.
    """

    def route(path: str, answer: Callable[[Parts, Live, Request], Awaitable[Response]]) -> Route:
        return Route(path, functools.partial(answer, parts, live), methods=["GET"], name=path[1:])

    return [
        route("/livez", _live),
        route("/readyz", _ready),
        route("/metrics", _metrics),
    ]


async def _live(_parts: Parts, _live: Live, _request: Request) -> Response:
    return _json({"live": True})


async def _ready(parts: Parts, live: Live, _request: Request) -> Response:
    store, database, sales = await asyncio.gather(
        _store(parts), _database(parts), _sales(parts, live)
    )
    checks = {"store": store, "database": database, "sales": sales}
    ready = all(check == _OK for check in checks.values())
    return _json({"ready": ready, "checks": checks}, 200 if ready else 503)


async def _store(parts: Parts) -> str:
    """Answers, and never throws a key away: an evicted key would be a lost place (case 9)."""
    try:
        policy = await parts.store.eviction_policy()
    except StoreUnavailable:
        return "does not answer"
    if policy != "noeviction":
        return f"evicts keys (maxmemory-policy is {policy}; set it to noeviction)"
    return _OK


async def _database(parts: Parts) -> str:
    try:
        async with asyncio.timeout(PART_TIMEOUT_S), parts.database.connection() as connection:
            await connection.execute("SELECT")
    except (DatabaseUnavailable, TimeoutError):
        return "does not answer"
    return _OK


async def _sales(parts: Parts, live: Live) -> str:
    """Every running sale is in the store: until then the store would refuse its buyers."""
    try:
        async with asyncio.timeout(PART_TIMEOUT_S):
            running = await parts.catalog.running()
            loaded = await asyncio.gather(
                *(live.figures(sale) for sale in running), return_exceptions=True
            )
    except (DatabaseUnavailable, TimeoutError):
        return "unknown, the database does not answer"
    missing = [
        sale.slug
        for sale, figures in zip(running, loaded, strict=True)
        if isinstance(figures, BaseException)
    ]
    return f"not in the store: {', '.join(missing)}" if missing else _OK


async def _metrics(parts: Parts, live: Live, request: Request) -> Response:
    read = await metrics.read(parts, live)
    meter: Meter | None = getattr(request.app.state, "meter", None)
    if meter is not None:
        meter.hand_over()
        meter.forget_the_dead()
        read = metrics.Told([*meter.registry.collect(), *read.families])
    encoder, content_type = choose_encoder(request.headers.get("accept", ""))
    return Response(encoder(read), headers=_NO_STORE, media_type=content_type)


def _json(document: dict[str, object], status: int = 200) -> Response:
    return Response(encode(document), status, _NO_STORE, "application/json")
