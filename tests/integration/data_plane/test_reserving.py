"""Reserving over HTTP: both forms of the request, and what neither of them may do (H1, H3, W12)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from tests.integration.checkout.shop import Shop
from tests.integration.control_plane.conftest import NewShop
from tests.integration.control_plane.own_parts import problem

Ask = Callable[..., Awaitable[httpx.Response]]


@pytest.fixture
async def shop(sell: NewShop) -> Shop:
    return await sell(3, 5)


@pytest.fixture
async def headers(client: httpx.AsyncClient, shop: Shop) -> dict[str, str]:
    """Those of a buyer who is inside, all over HTTP."""
    return await entered(client, shop)


async def entered(client: httpx.AsyncClient, shop: Shop) -> dict[str, str]:
    client.headers.pop("authorization", None)
    path = f"/v1/sales/{shop.sale.id}"
    joined = (await client.post(f"{path}/join")).json()
    client.cookies.clear()
    who = {"authorization": f"Bearer {joined['visitor_token']}"}
    await shop.parts.waiting_room.tick(shop.sale.ref)
    claimed = (await client.post(f"{path}/claim", headers=who)).json()
    return {**who, "fairdrop-admission": claimed["token"], "idempotency-key": "a-key"}


async def by_query(
    client: httpx.AsyncClient, shop: Shop, headers: dict[str, str], **line: Any
) -> httpx.Response:
    path = f"/v1/sales/{shop.sale.id}/reservations?{urlencode(line)}"
    return await client.post(path, headers=headers)


async def by_body(
    client: httpx.AsyncClient, shop: Shop, headers: dict[str, str], **line: Any
) -> httpx.Response:
    path = f"/v1/sales/{shop.sale.id}/reservations"
    return await client.post(path, headers=headers, json={"lines": [line]})


@pytest.mark.parametrize("ask", [by_query, by_body])
async def test_a_line_is_held_at_the_price_that_we_know(
    client: httpx.AsyncClient, shop: Shop, headers: dict[str, str], ask: Ask
) -> None:
    variant = shop.sale.variants[0]
    answer = await ask(client, shop, headers, variant=variant.id, quantity=2)
    assert answer.status_code == 201
    document = answer.json()
    assert document["lines"][0]["quantity"] == 2
    assert document["subtotal_minor"] == 2 * variant.price_minor
    assert await shop.stock() == (1, 2, 0)
    again = await ask(client, shop, headers, variant=variant.id, quantity=2)
    assert (again.status_code, again.json()) == (201, document)
    assert await shop.stock() == (1, 2, 0)


async def test_the_same_key_with_another_line_is_refused_in_either_form(
    client: httpx.AsyncClient, shop: Shop, headers: dict[str, str]
) -> None:
    variant = shop.sale.variants[0].id
    assert (await by_query(client, shop, headers, variant=variant, quantity=1)).status_code == 201
    other = await by_query(client, shop, headers, variant=variant, quantity=2)
    problem(other, 422, "idempotency_key_reused")
    other = await by_body(client, shop, headers, variant=variant, quantity=1)
    problem(other, 422, "idempotency_key_reused")
    assert await shop.stock() == (2, 1, 0)


BAD: list[dict[str, Any]] = [
    {},
    {"quantity": 1},
    {"variant": "x"},
    {"variant": "x", "quantity": ""},
    {"variant": "x", "quantity": 0},
    {"variant": "x", "quantity": -1},
    {"variant": "x", "quantity": "two"},
    {"variant": "x", "quantity": 1.5},
    {"variant": "x", "quantity": 1001},
    {"variant": "", "quantity": 1},
    {"variant": "x" * 65, "quantity": 1},
    {"variant": "x", "quantity": 1, "price_minor": 1},
]


@pytest.mark.parametrize("line", BAD[1:])
async def test_a_query_that_is_no_line_is_refused_and_changes_nothing(
    client: httpx.AsyncClient, shop: Shop, headers: dict[str, str], line: dict[str, Any]
) -> None:
    problem(await by_query(client, shop, headers, **line), 422, "invalid_request")
    assert await shop.stock() == (3, 0, 0)


@pytest.mark.parametrize("line", BAD)
async def test_a_body_that_is_no_line_is_refused_and_changes_nothing(
    client: httpx.AsyncClient, shop: Shop, headers: dict[str, str], line: dict[str, Any]
) -> None:
    problem(await by_body(client, shop, headers, **line), 422, "invalid_request")
    assert await shop.stock() == (3, 0, 0)


@pytest.mark.parametrize("ask", [by_query, by_body])
async def test_nobody_reserves_with_somebody_elses_admission(
    client: httpx.AsyncClient, shop: Shop, headers: dict[str, str], ask: Ask
) -> None:
    line = {"variant": shop.sale.variants[0].id, "quantity": 1}
    visitor, token = shop.parts.visitors.new()
    assert visitor
    stolen = {**headers, "authorization": f"Bearer {token}"}
    problem(await ask(client, shop, stolen, **line), 403, "admission_other_buyer")
    without = {name: value for name, value in headers.items() if name != "fairdrop-admission"}
    problem(await ask(client, shop, without, **line), 401, "admission_required")
    assert await shop.stock() == (3, 0, 0)


async def test_two_lines_of_one_variant_count_together(
    client: httpx.AsyncClient, shop: Shop, headers: dict[str, str]
) -> None:
    """Case 12: what is left would do for either line, and not for both."""
    variant = shop.sale.variants[0].id
    path = f"/v1/sales/{shop.sale.id}/reservations"

    async def ask(key: str, *quantities: int) -> httpx.Response:
        lines = [{"variant": variant, "quantity": quantity} for quantity in quantities]
        keyed = {**headers, "idempotency-key": key}
        return await client.post(path, headers=keyed, json={"lines": lines})

    assert problem(await ask("one", 2, 2), 409, "sold_out")["variant"] == variant
    assert await shop.stock() == (3, 0, 0)
    taken = await ask("two", 2, 1)
    assert taken.status_code == 201
    assert sum(line["quantity"] for line in taken.json()["lines"]) == 3
    assert await shop.stock() == (0, 3, 0)


@pytest.mark.parametrize("ask", [by_query, by_body])
async def test_a_quantity_beyond_the_limit_is_refused_however_it_is_written(
    client: httpx.AsyncClient, sell: NewShop, ask: Ask
) -> None:
    """Case 13: 200 instead of 10, and the one above the limit."""
    shop = await sell(500, order_limit=10, buyer_limit=10)
    headers = await entered(client, shop)
    for key, quantity in (("a", 200), ("b", 11)):
        keyed = {**headers, "idempotency-key": key}
        line = {"variant": shop.sale.variants[0].id, "quantity": quantity}
        problem(await ask(client, shop, keyed, **line), 422, "order_limit")
    assert await shop.stock() == (500, 0, 0)
    allowed = await ask(client, shop, headers, variant=shop.sale.variants[0].id, quantity=10)
    assert allowed.status_code == 201


@pytest.mark.parametrize("ask", [by_query, by_body])
async def test_sold_out_is_an_answer(
    client: httpx.AsyncClient, shop: Shop, headers: dict[str, str], ask: Ask
) -> None:
    """Case 34."""
    answer = await ask(client, shop, headers, variant=shop.sale.variants[0].id, quantity=4)
    assert problem(answer, 409, "sold_out")["variant"] == shop.sale.variants[0].id
    assert await shop.stock() == (3, 0, 0)
