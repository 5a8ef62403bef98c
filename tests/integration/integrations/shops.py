"""The same small shop behind each of the four doors, and a buyer of a real site."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
from django.conf import settings as django_settings
from flask import Flask
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from fairdrop.integrations import Completion, Door, asgi, wsgi
from fairdrop.integrations.flask import Fairdrop

EXAMPLES = Path(__file__).parents[3] / "examples"
Ask = Callable[..., Awaitable[httpx.Response]]


def load(name: str, **environment: str) -> ModuleType:
    """The example as a module, made anew."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        spec.loader.exec_module(module)
    finally:
        os.environ.clear()
        os.environ.update(before)
    return module


def asgi_shop(**door: Any) -> Any:
    here = Door(**door)

    async def home(_: Request) -> PlainTextResponse:
        return PlainTextResponse("home")

    async def checkout(request: Request) -> PlainTextResponse:
        inside = request.scope["fairdrop.admission"]
        if request.method == "GET":
            return PlainTextResponse(inside.sub)
        order = f"order-of-{inside.jti}"
        answer = await asyncio.to_thread(here.complete, inside, order)
        return PlainTextResponse(order, 201 if answer is Completion.RECORDED else 409)

    routes = [Route("/", home), Route("/checkout", checkout, methods=["GET", "POST"])]
    return asgi.FairdropMiddleware(Starlette(routes=routes), here)


def wsgi_shop(**door: Any) -> Any:
    here = Door(**door)

    def app(environ: Any, start_response: Any) -> list[bytes]:
        if environ["PATH_INFO"] == "/":
            start_response("200 OK", [("Content-Type", "text/plain")])
            return [b"home"]
        inside = environ[wsgi.ADMISSION]
        if environ["REQUEST_METHOD"] == "GET":
            start_response("200 OK", [("Content-Type", "text/plain")])
            return [inside.sub.encode()]
        order = f"order-of-{inside.jti}"
        recorded = here.complete(inside, order) is Completion.RECORDED
        start_response("201 Created" if recorded else "409 Conflict", [])
        return [order.encode()]

    return wsgi.FairdropMiddleware(app, here)


def flask_shop(**door: Any) -> Any:
    if "stale_s" in door:
        app = Flask("impatient")
        Fairdrop(app, **door)
        app.add_url_rule("/", "home", lambda: "home")
        app.add_url_rule("/checkout", "checkout", lambda: "in")
        return app.wsgi_app
    return load(
        "flask_shop",
        FAIRDROP_URL=door["url"],
        FAIRDROP_SALE=door["sale"],
        FAIRDROP_SHOP_KEY=door["api_key"],
    ).app.wsgi_app


def django_shop(**door: Any) -> Any:
    import fairdrop.integrations.django as adapter

    # One Django lives in a process: its settings are made once, and changed for each sale.
    if not django_settings.configured:
        load(
            "django_shop",
            FAIRDROP_URL=door["url"],
            FAIRDROP_SALE=door["sale"],
            FAIRDROP_SHOP_KEY=door["api_key"],
        )
    django_settings.FAIRDROP = door
    adapter.door.cache_clear()
    return sys.modules["example_django_shop"].application


SHOPS: dict[str, Callable[..., Any]] = {
    "asgi": asgi_shop,
    "wsgi": wsgi_shop,
    "flask": flask_shop,
    "django": django_shop,
}


def asking(kind: str, app: Any) -> Ask:
    """``await ask("GET", "/checkout", accept="text/html")``: one request, no cookies kept."""

    async def ask(
        method: str, path: str, body: str = "", base: str = "http://shop.test", **headers: str
    ) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if body:
            named["content-type"] = "application/x-www-form-urlencoded"
        if kind == "asgi":
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url=base) as client:
                return await client.request(method, path, headers=named, content=body)

        def call() -> httpx.Response:
            with httpx.Client(transport=httpx.WSGITransport(app=app), base_url=base) as client:
                return client.request(method, path, headers=named, content=body)

        return await asyncio.to_thread(call)

    return ask


class Buyer:
    """Somebody in a sale of a running site, over plain HTTP."""

    def __init__(self, url: str, slug: str) -> None:
        self.url, self.slug = url, slug
        deadline = time.monotonic() + 10
        while "visitor" not in (joined := self.call("POST", "/join")):
            # The worker opens a sale a moment after it was created.
            assert time.monotonic() < deadline, joined
            time.sleep(0.02)
        self.visitor: str = joined["visitor"]
        self.visitor_token: str = joined["visitor_token"]

    def call(self, method: str, step: str) -> Any:
        token = getattr(self, "visitor_token", None)
        request = urllib.request.Request(  # noqa: S310 - our own address
            f"{self.url}/v1/sales/{self.slug}{step}",
            method=method,
            headers={"authorization": f"Bearer {token}"} if token else {},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)

    async def until(self, state: str) -> Any:
        async with asyncio.timeout(30):
            while (place := await asyncio.to_thread(self.call, "GET", "/me"))["state"] != state:
                await asyncio.sleep(0.02)
        return place

    async def admitted(self) -> str:
        """The admission token, once it is their turn."""
        await self.until("READY")
        place = await asyncio.to_thread(self.call, "POST", "/claim")
        return str(place["token"])
