"""The data plane: what buyers call. Plain ASGI endpoints, hot, without per-request framework work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from fairdrop.web.watch import CheckoutWatch

from . import draws, foreign, line, orders, public, reservations
from .base import Steps, endpoint
from .keyed import keyed

if TYPE_CHECKING:
    from fairdrop.app import Parts
    from fairdrop.web.live import Live

    from .base import Handler

__all__ = ["routes"]


def routes(parts: Parts, live: Live) -> list[Route]:
    """The data plane's routes, the hottest first: the router tries them in order.

    The steps of a sale share one route, so that the router matches one pattern for all of them.
    """
    watch = CheckoutWatch(parts.catalog, parts.waiting_room)

    def route(path: str, method: str, handler: Handler, *args: Any, **how: Any) -> Route:
        return Route(path, endpoint(parts, handler, *args, **how), methods=[method])

    parameters = draws.Parameters()
    steps = Steps(
        {
            ("POST", "join"): endpoint(parts, line.join),
            ("GET", "me"): endpoint(parts, line.me),
            ("DELETE", "me"): endpoint(parts, line.leave),
            ("POST", "restore"): endpoint(parts, line.restore),
            ("POST", "claim"): endpoint(parts, line.claim),
            ("POST", "reservations"): endpoint(parts, reservations.reserve, watch=watch),
            ("POST", "orders"): keyed(parts, orders.start, watch=watch),
            ("POST", "ticket"): endpoint(parts, line.ticket),
            ("GET", "draw"): endpoint(parts, parameters),
            ("POST", "receipt"): endpoint(parts, draws.prove),
            ("GET", "auth"): endpoint(parts, foreign.auth),
            ("GET", "revocations"): endpoint(parts, foreign.Revocations(), limited=False),
            ("POST", "completions"): endpoint(parts, foreign.complete, limited=False),
        }
    )
    return [
        Route("/v1/sales/{sale}/{step}", steps),
        route("/v1/sales/{sale}", "GET", public.sale, live),
        route("/v1/orders/{order}", "GET", orders.show),
        Route("/v1/orders/{order}/pay", keyed(parts, orders.pay, watch=watch), methods=["POST"]),
        route("/v1/webhooks/{gateway}", "POST", public.webhook, limited=False),
        Route("/v1/orders/{order}/cancel", keyed(parts, orders.cancel), methods=["POST"]),
        route("/v1/sales/{sale}/reservations/{reservation}", "DELETE", reservations.release),
        route("/v1/sales/{sale}/reservations/{reservation}", "PATCH", reservations.change),
        route("/v1/sales/{sale}/draw/{file}", "GET", draws.PublishedFiles(parameters)),
        route("/v1/sales/{sale}/draw/entries/{entry}", "GET", draws.show_entry),
        route("/v1/sales", "GET", public.sales),
        route("/.well-known/jwks.json", "GET", public.jwks, limited=False),
    ]
