"""The web worker: one ASGI application with the data plane, the control plane and the pages."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.routing import Mount, Route

from fairdrop.app import open_parts
from fairdrop.settings import Settings

from . import data_plane
from .live import Live

if TYPE_CHECKING:
    from fairdrop.app import Parts

    from .wire import Receive, Scope, Send


class WebWorker:
    """The application of one process; the server's lifespan opens and closes its parts."""

    def __init__(self, settings: Settings) -> None:
        """Take the settings; connections are made at startup."""
        self._settings = settings
        self._stack = AsyncExitStack()
        self._app: Starlette | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or run the lifespan."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if self._app is None:
            raise RuntimeError("the server did not run the lifespan")
        await self._app(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            parts = await self._stack.enter_async_context(open_parts(self._settings))
            self._app = build(parts)
        except Exception as error:  # noqa: BLE001 - told to the server, which stops
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._stack.aclose()
        await send({"type": "lifespan.shutdown.complete"})


def build(parts: Parts) -> Starlette:
    """All routes of a web worker."""
    live = Live(parts.inventory)
    routes: list[Route | Mount] = [*data_plane.routes(parts, live)]
    return Starlette(routes=routes)


def make_app() -> Any:
    """The factory that the server calls in each worker process."""
    return WebWorker(Settings())
