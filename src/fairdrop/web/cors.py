"""Shops of another origin call the data plane from their pages (W20): those that the operator named.

Only the API of buyers, and never with cookies: such a page shows the visitor token that joining gave
it, so a foreign page that makes a browser call us gains nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.middleware.cors import CORSMiddleware

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from starlette.types import ASGIApp, Receive, Scope, Send

_PREFIX = "/v1/"
_METHODS = ("GET", "POST", "PATCH", "DELETE")
_HEADERS = (
    "Authorization",
    "Content-Type",
    "Fairdrop-Admission",
    "Fairdrop-Captcha",
    "Fairdrop-Invite",
    "Fairdrop-Proof",
    "Idempotency-Key",
)
_SHOWN = ("Date", "ETag", "Retry-After")


class ShopOrigins:
    """The application, open to pages of these origins below ``/v1/``."""

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        """Wrap the application."""
        self._app = app
        self._open = CORSMiddleware(
            app,
            allow_origins=list(origins),
            allow_methods=_METHODS,
            allow_headers=_HEADERS,
            expose_headers=_SHOWN,
            max_age=600,
        )

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve the request."""
        shared = scope["type"] == "http" and scope["path"].startswith(_PREFIX)
        return (self._open if shared else self._app)(scope, receive, send)
