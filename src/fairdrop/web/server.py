"""The web worker: one ASGI application with the data plane, the control plane and the pages."""

from __future__ import annotations

import gc
import os
import signal
from contextlib import AsyncExitStack, suppress
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Mount

from fairdrop.app import open_parts
from fairdrop.embedded import die_with_parent
from fairdrop.logs import configure_logs
from fairdrop.settings import Settings

from . import control_plane, data_plane, health, openapi, pages
from .cors import ShopOrigins
from .live import Live
from .meter import Meter
from .shortcut import Shortcut
from .wire import Problem

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from starlette.requests import Request
    from starlette.types import ASGIApp

    from fairdrop.app import Parts

    from .wire import Receive, Scope, Send


class WebWorker:
    """The application of one process; the server's lifespan opens and closes its parts."""

    def __init__(self, settings: Settings) -> None:
        """Take the settings; connections are made at startup."""
        self._settings = settings
        self._stack = AsyncExitStack()
        self._app: ASGIApp | None = None

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve one request, or run the lifespan; no coroutine is put around either."""
        if scope["type"] == "lifespan":
            return self._lifespan(receive, send)
        if self._app is None:
            raise RuntimeError("the server did not run the lifespan")
        return self._app(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            parts = await self._stack.enter_async_context(open_parts(self._settings))
            app = build(parts)
            serve: ASGIApp = Shortcut(app)
            if origins := self._settings.shop_addresses():
                serve = ShopOrigins(serve, origins)
            # The method itself, which Python calls faster than an object that has it.
            self._app = Meter(app, parts, serve=serve).__call__
            calm_garbage_collector()
            calm_scheduler()
        except Exception as error:  # noqa: BLE001 - told to the server, which stops
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._stack.aclose()
        await send({"type": "lifespan.shutdown.complete"})


def build(parts: Parts) -> Starlette:
    """All routes of a web worker, the hottest first."""
    live = Live(parts.inventory, push_url=parts.settings.push_url)
    control = control_plane.make(parts, live)
    return Starlette(
        routes=[
            *data_plane.routes(parts, live),
            *health.routes(parts, live),
            Mount(control_plane.PREFIX, control),
            *openapi.routes(control),
            *pages.routes(
                pages.Shop(
                    origins=parts.settings.shop_addresses(),
                    push_url=parts.settings.push_url,
                    widgets=parts.captcha.sources if parts.captcha is not None else (),
                )
            ),
        ],
        exception_handlers={HTTPException: _told_as_problem, 500: _failed},
    )


def calm_garbage_collector() -> None:
    """Collect rarely: a request makes no reference cycles, and its objects die by their counts.

    With the defaults, futures and structures of requests under way set off a collection every few
    hundred requests, each of which looks at all of them again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def calm_scheduler() -> None:
    """Ask the kernel not to interrupt the interpreter for the server's own threads (Linux).

    A packet wakes the server's network thread, which would preempt the Python thread at once, only to
    wait for the interpreter that the other holds: two switches, and cold caches, for every third join.
    As batch work (SCHED_BATCH of sched(7)) a thread that wakes waits for its turn, and finds more to do
    when it comes: 8 % less of the processor a join. Others that wake, the store's above all, still go first.
    """
    threads = Path("/proc/self/task")
    if not hasattr(os, "SCHED_BATCH") or not threads.is_dir():
        return
    for thread in threads.iterdir():
        with suppress(
            OSError
        ):  # the thread has ended, or a sandbox forbids it: the usual way works too
            os.sched_setscheduler(int(thread.name), os.SCHED_BATCH, os.sched_param(0))


async def _told_as_problem(_request: Request, error: Exception) -> Response:
    """What the router refuses, as a problem document."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    words = HTTPStatus(status).phrase
    problem = Problem(status, words.lower().replace(" ", "_"), f"{words}.")
    return _response(problem)


async def _failed(_request: Request, _error: Exception) -> Response:
    """A bug of ours; the server has logged it."""
    return _response(Problem(500, "internal_error", "Something went wrong on our side."))


def _response(problem: Problem) -> Response:
    return Response(
        problem.body(),
        problem.status,
        media_type="application/problem+json",
        headers={"cache-control": "no-store"},
    )


def make_app() -> Any:
    """The factory that the server calls in each worker process."""
    settings = Settings()
    configure_logs(settings.log_level)
    if os.environ.get("FAIRDROP_PARENT_DEATH") == "1":
        # The server's main process dies with the supervisor; its workers have to follow.
        die_with_parent(signal.SIGKILL)
    return WebWorker(settings)
