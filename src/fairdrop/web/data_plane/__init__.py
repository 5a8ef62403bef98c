"""The data plane: what buyers call. Plain ASGI endpoints, hot, without per-request framework work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Route

from . import line, orders, public, reservations
from .base import endpoint

if TYPE_CHECKING:
    from fairdrop.app import Parts
    from fairdrop.web.live import Live

__all__ = ["routes"]


def routes(parts: Parts, live: Live) -> list[Route]:
    """The data plane's routes, the hottest first: the router tries them in order."""

    def route(path: str, method: str, handler: object, *args: object) -> Route:
        return Route(path, endpoint(parts, handler, *args), methods=[method])  # type: ignore[arg-type]

    return [
        route("/v1/sales/{sale}", "GET", public.sale, live),
        route("/v1/sales/{sale}/join", "POST", line.join),
        route("/v1/sales/{sale}/me", "GET", line.me),
        route("/v1/sales/{sale}/reservations", "POST", reservations.reserve),
        route("/v1/sales/{sale}/claim", "POST", line.claim),
        route("/v1/sales/{sale}/orders", "POST", orders.start),
        route("/v1/orders/{order}", "GET", orders.show),
        route("/v1/orders/{order}/pay", "POST", orders.pay),
        route("/v1/webhooks/{gateway}", "POST", public.webhook),
        route("/v1/orders/{order}/cancel", "POST", orders.cancel),
        route("/v1/sales/{sale}/me", "DELETE", line.leave),
        route("/v1/sales/{sale}/reservations/{reservation}", "DELETE", reservations.release),
        route("/v1/sales", "GET", public.sales),
        route("/.well-known/jwks.json", "GET", public.jwks),
    ]
