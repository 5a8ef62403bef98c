"""The API document covers both planes, and is true."""

from __future__ import annotations

import html.parser
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx
import jsonschema_rs
import pytest
from fastapi.routing import iter_route_contexts
from starlette.routing import Mount, Route

from fairdrop.app import Parts
from fairdrop.web.data_plane.base import Steps
from fairdrop.web.server import build
from tests.integration.checkout.shop import Shop
from tests.integration.control_plane.own_parts import created, opened

NewShop = Callable[..., Awaitable[Shop]]


OF_THE_PUSH_PROCESS = {
    ("GET", "/v1/sales/{sale}/stream"),
    ("GET", "/v1/sales/{sale}/socket"),
}
"""Described with the rest, and served by another process."""


async def openapi(client: httpx.AsyncClient) -> Any:
    answer = await client.get("/openapi.json")
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


def operations(routes: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """(method, path) of every route that is part of the API."""
    for context in iter_route_contexts(routes):
        route = context.original_route
        if isinstance(route, Mount):
            yield from operations(route.routes, prefix + route.path)
        elif isinstance(route, Route) and isinstance(route.endpoint, Steps):
            for method, step in route.endpoint.endpoints:
                yield method, prefix + route.path.replace("{step}", step)
        elif getattr(route, "include_in_schema", False):
            for method in (context.methods or set()) - {"HEAD"}:
                yield method, prefix + (context.path or "")


@pytest.mark.parametrize("compose", [build])
async def test_every_route_is_in_the_document_and_nothing_else_is(
    client: httpx.AsyncClient, parts: Parts, compose: Callable[[Parts], Any]
) -> None:
    document = await openapi(client)
    described = {
        (method.upper(), path) for path, item in document["paths"].items() for method in item
    }
    there = set(operations(compose(parts).routes))
    assert there - described == set()
    assert described - there == OF_THE_PUSH_PROCESS


async def test_operations_have_names_of_their_own_and_every_reference_leads_somewhere(
    client: httpx.AsyncClient,
) -> None:
    document = await openapi(client)
    found = [operation for item in document["paths"].values() for operation in item.values()]
    names = [operation["operationId"] for operation in found]
    assert len(set(names)) == len(names)
    assert all(operation["summary"] and operation["responses"] for operation in found)
    text = str(document)
    for name in set(re.findall(r"#/components/schemas/(\w+)", text)):
        assert name in document["components"]["schemas"]
    for path, item in document["paths"].items():
        for operation in item.values():
            named = {p["name"] for p in operation.get("parameters", ()) if p["in"] == "path"}
            assert named == set(re.findall(r"{(\w+)}", path)), path


async def test_real_answers_are_as_the_document_says(
    client: httpx.AsyncClient, sell: NewShop
) -> None:
    document = await openapi(client)
    shop = await sell(5)
    order = await shop.paid(1)
    sale = await opened(client)
    buyer = (
        await client.post(f"/v1/sales/{sale['id']}/join", headers={"authorization": ""})
    ).json()
    visitor = {"authorization": f"Bearer {buyer['visitor_token']}"}
    answers = [
        ("/v1/sales", "/v1/sales", {}),
        ("/v1/sales/{sale}", f"/v1/sales/{sale['id']}", {}),
        ("/v1/sales/{sale}/me", f"/v1/sales/{sale['id']}/me", visitor),
        ("/.well-known/jwks.json", "/.well-known/jwks.json", {}),
        ("/livez", "/livez", {}),
        ("/admin/v1/sales", "/admin/v1/sales", {}),
        ("/admin/v1/sales/{sale}", f"/admin/v1/sales/{sale['id']}", {}),
        ("/admin/v1/sales/{sale}/figures", f"/admin/v1/sales/{sale['id']}/figures", {}),
        ("/admin/v1/sales/{sale}/orders", f"/admin/v1/sales/{shop.sale.id}/orders", {}),
        ("/admin/v1/orders/{order}", f"/admin/v1/orders/{order.id}", {}),
    ]
    for path, url, headers in answers:
        answer = await client.get(url, headers=headers)
        assert answer.status_code == 200, (url, answer.text)
        content = document["paths"][path]["get"]["responses"]["200"]["content"]
        validate(document, content["application/json"]["schema"], answer.json())
    wrong = await client.get("/admin/v1/orders/none")
    content = document["paths"]["/admin/v1/orders/{order}"]["get"]["responses"]["404"]["content"]
    validate(document, content["application/problem+json"]["schema"], wrong.json())


def validate(document: Any, schema: Any, answer: Any) -> None:
    jsonschema_rs.validate({**schema, "components": document["components"]}, answer)


async def test_the_pages_need_nothing_from_elsewhere_and_no_script(
    client: httpx.AsyncClient,
) -> None:
    answer = await client.get("/docs")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "<script" not in answer.text
    assert re.findall(r'(?:src|href)="(https?:|//)', answer.text) == []
    (style,) = re.findall(r'rel="stylesheet" href="([^"]+)"', answer.text)
    assert (await client.get(style)).headers["content-type"] == "text/css; charset=utf-8"


class Outline(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.headings: list[int] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attrs)
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if given.get("id"):
            self.ids.append(given["id"] or "")
        if tag == "a" and (given.get("href") or "").startswith("#"):
            self.links.append((given["href"] or "")[1:])


async def test_the_page_shows_every_operation_and_can_be_walked_through(
    client: httpx.AsyncClient,
) -> None:
    page = Outline()
    text = (await client.get("/docs")).text
    page.feed(text)
    document = await openapi(client)
    for item in document["paths"].values():
        for operation in item.values():
            assert operation["operationId"] in page.ids
    assert len(set(page.ids)) == len(page.ids)
    assert set(page.links) <= set(page.ids), "a link that leads nowhere"
    assert page.headings[0] == 1
    assert all(
        after <= before + 1 for before, after in zip(page.headings, page.headings[1:], strict=False)
    )
    assert {"main", "nav", "caption"} <= set(page.tags)
    assert re.search(r">\s*None\s*<", text) is None


async def test_the_server_that_is_put_together_serves_the_document(parts: Parts) -> None:
    app = build(parts)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://shop.test") as client:
        for path in ("/openapi.json", "/docs", "/livez"):
            assert (await client.get(path)).status_code == 200
        assert (await client.get("/admin/v1/sales")).status_code == 401


async def test_what_the_document_calls_required_is_asked_for(client: httpx.AsyncClient) -> None:
    document = await openapi(client)
    schema = document["components"]["schemas"]["NewSaleBody"]
    sale = await created(client)
    for field in schema["required"]:
        body = {key: sale[key] for key in schema["required"] if key in sale and key != field}
        answer = await client.post("/admin/v1/sales", json=body)
        assert answer.status_code == 422
        assert f"body.{field}" in [error["field"] for error in answer.json()["errors"]]
