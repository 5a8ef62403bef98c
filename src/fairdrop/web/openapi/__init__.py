"""The OpenAPI document of both planes at ``/openapi.json``, and a page that shows it at ``/docs``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi.openapi.utils import get_openapi
from starlette.routing import Route

from fairdrop import __version__
from fairdrop.web import control_plane
from fairdrop.web.pages.documents import Document
from fairdrop.web.pages.headers import page_headers
from fairdrop.web.wire import encode

from . import data_plane
from .page import render, stylesheet

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["document", "routes"]

_ABOUT = """\
Fairdrop's HTTP API has two planes. Buyers use the data plane under `/v1`: they join the line of a \
sale, claim their turn, reserve, check out and pay. Operators use the control plane under \
`/admin/v1`: they set sales up, steer them, look at orders and refund them.

Amounts are integers in the currency's minor units (1995 is 19.95 EUR). Whatever is not a success \
is a problem document (RFC 9457, `application/problem+json`) whose `code` is for programs and \
whose `detail` is for people; it has changed nothing. 503 comes with `Retry-After`."""


def routes(control: FastAPI) -> list[Route]:
    """``/openapi.json`` and ``/docs`` for the data plane and this control plane.

    Both are made once, here, and need no script and nothing from elsewhere to be read.
    """
    described = document(control)
    headers = page_headers()

    def route(path: str, body: bytes, media_type: str) -> Route:
        fixed = Document.of(body, media_type=media_type, headers=headers)
        return Route(path, fixed, methods=["GET"], include_in_schema=False)

    return [
        route("/openapi.json", encode(described), "application/json"),
        route("/docs", render(described).encode(), "text/html; charset=utf-8"),
        route("/docs/style.css", stylesheet(), "text/css; charset=utf-8"),
    ]


def document(control: FastAPI) -> dict[str, Any]:
    """The OpenAPI 3.1 document of both planes. Raises ValueError when two schemas share a name."""
    admin = get_openapi(title=control.title, version=__version__, routes=control.routes)
    schemas, items = data_plane.described()
    for name, schema in admin.get("components", {}).get("schemas", {}).items():
        if name in _FRAMEWORK_SCHEMAS:
            continue
        if schemas.setdefault(name, schema) is not schema:
            raise ValueError(f"both planes have a schema named {name}")
    for path, item in admin["paths"].items():
        for operation in item.values():
            operation["security"] = [{"adminKey": []}]
            operation["summary"] = operation["operationId"].replace("_", " ").capitalize()
            for parameter in operation.get("parameters", ()):
                if parameter["name"] == "Idempotency-Key":
                    # Optional for the framework only: its absence has a problem of its own (400).
                    parameter |= {"required": True, "schema": {"type": "string"}}
        items[control_plane.PREFIX + path] = item
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Fairdrop",
            "version": __version__,
            "description": _ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [*data_plane.TAGS, *_TAGS],
        "paths": items,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": _SECURITY,
        },
    }


_FRAMEWORK_SCHEMAS = ("HTTPValidationError", "ValidationError")
"""Described by the framework, answered by none of our operations."""
_TAGS = [
    {"name": "sales", "description": "Control plane: set sales up and steer them."},
    {"name": "stock", "description": "Control plane: put units on sale and take them out."},
    {"name": "access", "description": "Control plane: who may join a sale, and who first."},
    {"name": "orders", "description": "Control plane: look at orders and refund them."},
    {"name": "ledger", "description": "Control plane: the books, and what they come to."},
]
_SECURITY = {
    "visitor": {
        "type": "http",
        "scheme": "bearer",
        "description": "The `visitor_token` that joining a sale gave, which browsers send as the cookie"
        " `fairdrop_visitor` instead; or a JWT of the shop's own login (S2).",
    },
    "visitorCookie": {"type": "apiKey", "in": "cookie", "name": "fairdrop_visitor"},
    "shopKey": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key of the shop's servers (`FAIRDROP_SHOP_KEYS`).",
    },
    "adminKey": {
        "type": "http",
        "scheme": "bearer",
        "description": "The API key of the control plane (`FAIRDROP_ADMIN_KEY`).",
    },
}
