"""The control plane: what operators, their scripts and the console call (FastAPI, an API key)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import FastAPI

from fairdrop import __version__

from .access import router as access_router
from .draws import router as draws_router
from .figures import SaleFigures
from .gate import Gate
from .keyed import Keyed
from .ledger import router as ledger_router
from .line import router as line_router
from .orders import router as orders_router
from .problems import PROBLEM_RESPONSES, install
from .sales import router as sales_router

if TYPE_CHECKING:
    from fastapi.routing import APIRoute

    from fairdrop.app import Parts
    from fairdrop.web.live import Live

__all__ = ["PREFIX", "make"]

PREFIX = "/admin/v1"
"""Where the application is mounted."""


def make(parts: Parts, live: Live) -> FastAPI:
    """The application to mount at :data:`PREFIX`. Every answer that is no success is a problem document.

    It has no documentation pages of its own: ``fairdrop.web.openapi`` shows both planes together.
    """
    app = FastAPI(
        title="Fairdrop control plane",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
        responses=PROBLEM_RESPONSES,
    )
    install(app)
    figures = SaleFigures(parts, live)
    app.include_router(sales_router(parts, figures))
    app.include_router(line_router(parts))
    app.include_router(draws_router(parts))
    app.include_router(access_router(parts))
    app.include_router(orders_router(parts))
    app.include_router(ledger_router(parts))
    app.add_middleware(Keyed, answers=parts.answers)
    key = parts.settings.admin_key
    app.add_middleware(Gate, key=key.get_secret_value() if key is not None else "")
    return app


def _operation_id(route: APIRoute) -> str:
    return route.name
