"""Whatever is sent, the answer is a success or a problem document, never an error of ours (S1)."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import httpx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairdrop.web.control_plane.bodies import NewSaleBody, RefundBody, SaleChangeBody, StockBody
from tests.integration.control_plane.own_parts import a_sale, created

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
TIMES = ["2026-03-29T02:30", "2026-01-01T00:00Z", "9999-12-31T23:59:59-23:59", "0000-01-01T00:00"]
WORDS = ["", "\0", "\ud800", "EUR", "UTC", "Europe/Zurich", "a-b"]
NUMBERS = [0, 1, -1, 2**31, 2**63, 1e308]
LIKELY = st.sampled_from([*TIMES, *WORDS, *NUMBERS, [], {}])
relaxed = settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)


def body(model: Any) -> st.SearchStrategy[Any]:
    """Fields of the model, and others, with values of any kind."""
    names = st.sampled_from([*model.model_fields, "other"])
    return JSON | st.dictionaries(names, LIKELY | JSON, max_size=6)


def told(answer: httpx.Response) -> None:
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == answer.status_code


@relaxed
@given(body(NewSaleBody))
async def test_creating_with_anything(client: httpx.AsyncClient, sent: Any) -> None:
    told(await client.post("/admin/v1/sales", content=encoded(sent)))
    if isinstance(sent, dict):
        told(await client.post("/admin/v1/sales", content=encoded({**a_sale(), **sent})))


@relaxed
@given(body(SaleChangeBody), body(StockBody), body(RefundBody), st.text(max_size=70))
async def test_changing_and_naming_anything(
    client: httpx.AsyncClient, change: Any, stock: Any, refund: Any, name: str
) -> None:
    sale = await created(client)
    path = f"/admin/v1/sales/{sale['id']}"
    variant = sale["variants"][0]["id"]
    told(await client.patch(path, content=encoded(change)))
    told(await client.post(f"{path}/variants/{variant}/stock", content=encoded(stock)))
    key = {"idempotency-key": "k"}
    for order in (variant, quoted(name)):
        path = f"/admin/v1/orders/{order}/refund"
        told(await client.post(path, content=encoded(refund), headers=key))
    for path in (f"sales/{quoted(name)}", f"orders/{quoted(name)}", f"sales/{quoted(name)}/orders"):
        told(await client.get(f"/admin/v1/{path}"))
    params = {"state": name, "limit": name, "after": name}
    told(await client.get(f"/admin/v1/sales/{sale['id']}/orders", params=params))


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def quoted(name: str) -> str:
    return quote(name, safe="", errors="replace") or "x"
