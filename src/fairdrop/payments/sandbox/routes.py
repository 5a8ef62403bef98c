"""The gateway's addresses, on one screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.routing import Route

from .buyer_api import BuyerApi
from .exchange import Endpoint, json_answer, method_not_allowed, not_found
from .merchant_api import MerchantApi

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from .exchange import Answer, Call
    from .gateway_state import GatewayState

CREATE = "/v1/intents"
PAY = "/v1/intents/{intent}/pay"


async def livez(_call: Call) -> Answer:
    """GET /livez."""
    return json_answer({"status": "ok"})


class Shortcut:
    """The application, with the two addresses that every payment calls found at once.

    The framework's middleware and its patterns took a third of what a request costs here.
    """

    def __init__(self, app: ASGIApp, create: Endpoint, pay: Endpoint) -> None:
        """``create`` and ``pay`` are the endpoints that the application has at CREATE and PAY."""
        self._app = app
        self._create = create
        self._pay = pay
        self._before, self._after = PAY.split("{intent}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http" and scope["method"] == "POST":
            path: str = scope["path"]
            if path == CREATE:
                scope["path_params"] = {}
                await self._create(scope, receive, send)
                return
            if path.startswith(self._before) and path.endswith(self._after):
                intent = path[len(self._before) : -len(self._after)]
                if intent and "/" not in intent:
                    scope["path_params"] = {"intent": intent}
                    await self._pay(scope, receive, send)
                    return
        await self._app(scope, receive, send)


def make_application(state: GatewayState) -> ASGIApp:
    """The ASGI application of one gateway."""
    merchant = MerchantApi(state)
    buyer = BuyerApi(state)
    guarded = merchant.guarded
    create, pay = Endpoint(guarded(merchant.create_intent)), Endpoint(buyer.pay)
    table = (
        ("POST", CREATE, create),
        ("POST", PAY, pay),
        ("GET", "/v1/intents/{intent}", Endpoint(guarded(merchant.get_intent))),
        ("GET", "/v1/intents", Endpoint(guarded(merchant.find_intents))),
        ("POST", "/v1/intents/{intent}/status", Endpoint(buyer.status)),
        ("POST", "/v1/intents/{intent}/cancel", Endpoint(guarded(merchant.cancel_intent))),
        ("POST", "/v1/intents/{intent}/capture", Endpoint(guarded(merchant.capture_intent))),
        ("POST", "/v1/intents/{intent}/refunds", Endpoint(guarded(merchant.create_refund))),
        ("GET", "/v1/charges", Endpoint(guarded(merchant.list_charges))),
        ("GET", "/v1/refunds", Endpoint(guarded(merchant.list_refunds))),
        ("GET", "/v1/mischief", Endpoint(guarded(merchant.get_mischief))),
        ("PUT", "/v1/mischief", Endpoint(guarded(merchant.put_mischief))),
        ("GET", "/v1/deliveries", Endpoint(guarded(merchant.get_deliveries))),
        ("GET", "/pay/assets/{name}", Endpoint(buyer.asset)),
        ("GET", "/pay/{intent}", Endpoint(buyer.page)),
        ("GET", "/livez", Endpoint(livez)),
    )
    app = Starlette(
        routes=[Route(path, endpoint, methods=[method]) for method, path, endpoint in table],
        exception_handlers={404: not_found, 405: method_not_allowed},
    )
    return Shortcut(app, create, pay)
