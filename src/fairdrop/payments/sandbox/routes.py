"""The gateway's addresses, on one screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.routing import Route

from .buyer_api import BuyerApi
from .exchange import Endpoint, json_answer, method_not_allowed, not_found
from .merchant_api import MerchantApi

if TYPE_CHECKING:
    from .exchange import Answer, Call
    from .gateway_state import GatewayState


async def livez(_call: Call) -> Answer:
    """GET /livez."""
    return json_answer({"status": "ok"})


def make_application(state: GatewayState) -> Starlette:
    """The ASGI application of one gateway."""
    merchant = MerchantApi(state)
    buyer = BuyerApi(state)
    guarded = merchant.guarded
    table = (
        ("POST", "/v1/intents", guarded(merchant.create_intent)),
        ("POST", "/v1/intents/{intent}/pay", buyer.pay),
        ("GET", "/v1/intents/{intent}", guarded(merchant.get_intent)),
        ("GET", "/v1/intents", guarded(merchant.find_intents)),
        ("POST", "/v1/intents/{intent}/status", buyer.status),
        ("POST", "/v1/intents/{intent}/cancel", guarded(merchant.cancel_intent)),
        ("POST", "/v1/intents/{intent}/capture", guarded(merchant.capture_intent)),
        ("POST", "/v1/intents/{intent}/refunds", guarded(merchant.create_refund)),
        ("GET", "/v1/charges", guarded(merchant.list_charges)),
        ("GET", "/v1/refunds", guarded(merchant.list_refunds)),
        ("GET", "/v1/mischief", guarded(merchant.get_mischief)),
        ("PUT", "/v1/mischief", guarded(merchant.put_mischief)),
        ("GET", "/v1/deliveries", guarded(merchant.get_deliveries)),
        ("GET", "/pay/assets/{name}", buyer.asset),
        ("GET", "/pay/{intent}", buyer.page),
        ("GET", "/livez", livez),
    )
    return Starlette(
        routes=[
            Route(path, Endpoint(handler), methods=[method]) for method, path, handler in table
        ],
        exception_handlers={404: not_found, 405: method_not_allowed},
    )
