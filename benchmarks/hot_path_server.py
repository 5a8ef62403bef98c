"""The web worker under test, with two routes that only a benchmark needs.

``/empty`` does nothing, on the same server, router and middleware. ``/uncoalesced/...`` reserves
like the product does, but with one call to the store a request.
"""

from __future__ import annotations

import asyncio
import dataclasses
from typing import TYPE_CHECKING, Any

import msgspec
from redis.asyncio import BlockingConnectionPool, Redis
from starlette.routing import Route

from fairdrop.drivers.store import Script, Store
from fairdrop.inventory import Inventory, ReserveRequest
from fairdrop.inventory.model import Reservation, Reserved
from fairdrop.settings import Settings
from fairdrop.web import server
from fairdrop.web.data_plane import reservations
from fairdrop.web.data_plane.base import endpoint
from fairdrop.web.wire import send_json

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from fairdrop.app import Parts
    from fairdrop.ids import SaleRef
    from fairdrop.web.wire import Receive, Scope, Send


class Empty:
    """Answers ``{}``."""

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        """Answer."""
        await send_json(send, b"{}")


class Uncoalesced(Inventory):
    """The baseline: every reservation is a call of its own, made with redis-py as it comes."""

    def __init__(self, store: Store) -> None:
        """Load the same script."""
        super().__init__(store)
        # A connection for each request under way: nothing but the store itself holds it up.
        pool = BlockingConnectionPool.from_url(
            store.url, max_connections=1_000, timeout=10, protocol=2
        )
        self._redis: Redis = Redis.from_pool(pool)
        self._script = Script.load("fairdrop.inventory", "reserve")
        self._reply = msgspec.msgpack.Decoder(Reserved)

    def reserve(self, sale: SaleRef, request: ReserveRequest) -> asyncio.Future[Reservation]:
        """One call for this request alone."""
        return asyncio.ensure_future(self._one(sale, request))

    async def _one(self, sale: SaleRef, request: ReserveRequest) -> Reservation:
        keys = self._script.keys(sale.id, sale.epoch)
        batch = msgspec.msgpack.encode([request])
        reply = await self._redis.evalsha(self._script.sha, len(keys), *keys, "0", batch)
        return self._reply.decode(reply).outcomes[0]


def build(parts: Parts) -> Starlette:
    """The product's application, and the two routes before it."""
    app = product(parts)
    plain = dataclasses.replace(parts, inventory=Uncoalesced(parts.store))
    app.router.routes.insert(0, Route("/empty", Empty()))
    app.router.routes.append(
        Route(
            "/uncoalesced/{sale}/reservations",
            endpoint(plain, reservations.reserve),
            methods=["POST"],
        )
    )
    return app


product = server.build
server.build = build


def make_app() -> Any:
    """The factory for the server."""
    return server.WebWorker(Settings())
