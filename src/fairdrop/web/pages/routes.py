"""Which page answers where. Every page is made once, here, and is the same for everybody."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import RedirectResponse
from starlette.routing import Mount, Route

from .assets import Assets
from .documents import Document
from .headers import PAGE_CACHE, SHARED_WITH_ALL, page_headers

_CLIENT_HEADERS: Final = {
    "cache-control": PAGE_CACHE,
    **{name.decode(): value.decode() for name, value in SHARED_WITH_ALL},
}
"""The client module's lasting address leads to this release's: what it imports stands beside it."""
_WEB: Final = Path(__file__).parents[1]
_PAGES: Final = {
    "/": "sales",
    "/s/{sale}": "sale",
    "/s/{sale}/draw": "draw",
    "/enter/{sale}": "enter",
    "/orders/{order}": "order",
    "/console": "console",
}
"""Address → the template and the script of that name. What the braces stand for is read by the
script, never by the template: nothing of a request reaches a page."""


@dataclass(frozen=True, slots=True)
class Shop:
    """What an operator may change about the pages."""

    name: str = "Fairdrop"
    origins: tuple[str, ...] = ()
    """Shops that the waiting room may hand people over to, like ``https://shop.example.org``."""
    push_url: str | None = None
    """Where the push process is, when that is not behind the same address."""

    widgets: tuple[str, ...] = ()
    """Where the widget of a CAPTCHA loads from, on the pages where people join."""

    def streams(self) -> tuple[str, ...]:
        """The origins of streams that pages may open, besides their own."""
        if self.push_url is None or self.push_url == "/":
            return ()
        origin = self.push_url.rstrip("/")
        return (origin, origin.replace("http", "ws", 1))


def routes(shop: Shop | None = None) -> list[Route | Mount]:
    """The pages and their assets. Needs no database and no store; reads the files once."""
    shop = shop or Shop()
    assets = Assets(_WEB / "static")
    templates = Environment(
        loader=FileSystemLoader(_WEB / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals["asset"] = assets.url
    found: list[Route | Mount] = [
        Route(Assets.ROUTE, assets, methods=["GET"], name="asset", include_in_schema=False)
    ]
    for name in ("fairdrop.js", "fairdrop.d.ts"):
        client = RedirectResponse(assets.url(name), 302, _CLIENT_HEADERS)
        found.append(Route(f"/{name}", client, methods=["GET"], include_in_schema=False))
    for path, name in _PAGES.items():
        modules = [assets.url(module) for module in assets.modules(f"js/{name}.js")]
        html = templates.get_template(f"{name}.html").render(shop=shop, modules=modules)
        headers = page_headers(
            shop.origins if name == "enter" else (),
            shop.streams(),
            shop.widgets if name in ("sale", "enter") else (),
        )
        page = Document.of(html.encode(), media_type="text/html; charset=utf-8", headers=headers)
        found.append(
            Route(path, page, methods=["GET"], name=f"{name}_page", include_in_schema=False)
        )
    return found
