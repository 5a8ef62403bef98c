"""Changing and giving back reservations over HTTP, and what the shop has verified (H4, H5, H6)."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from fairdrop.app import Parts
from fairdrop.ids import new_id
from fairdrop.web.server import build
from tests.integration.checkout.shop import Shop
from tests.integration.control_plane.conftest import NewShop
from tests.integration.control_plane.own_parts import ADMIN_KEY, problem
from tests.integration.data_plane.test_reserving import entered

Headers = dict[str, str]


@pytest.fixture
async def shop(sell: NewShop) -> Shop:
    return await sell(5, 5, order_limit=6, buyer_limit=6)


@pytest.fixture
async def headers(client: httpx.AsyncClient, shop: Shop) -> Headers:
    return await entered(client, shop)


@pytest.fixture
async def path(client: httpx.AsyncClient, shop: Shop, headers: Headers) -> str:
    """The address of a reservation of three units."""
    line = {"variant": shop.sale.variants[0].id, "quantity": 3}
    collection = f"/v1/sales/{shop.sale.id}/reservations"
    answer = await client.post(collection, headers=headers, json={"lines": [line]})
    assert answer.status_code == 201, answer.text
    return f"{collection}/{answer.json()['id']}"


def keyed(headers: Headers, key: str | None = None) -> Headers:
    return {**headers, "idempotency-key": key or new_id()}


def lines(shop: Shop, *quantities: int | None) -> dict[str, Any]:
    wanted = []
    for variant, quantity in zip(shop.sale.variants, quantities, strict=False):
        line: dict[str, Any] = {"variant": variant.id}
        wanted.append(line if quantity is None else {**line, "quantity": quantity})
    return {"lines": wanted}


async def test_quantities_go_up_and_down_at_the_price_that_we_know(
    client: httpx.AsyncClient, shop: Shop, headers: Headers, path: str
) -> None:
    first = await client.patch(path, headers=keyed(headers, "k"), json=lines(shop, 1, 2))
    assert first.status_code == 200, first.text
    document = first.json()
    assert document["state"] == "RESERVED"
    assert [line["quantity"] for line in document["lines"]] == [1, 2]
    prices = [variant.price_minor for variant in shop.sale.variants]
    assert document["subtotal_minor"] == prices[0] + 2 * prices[1]
    assert await shop.stock() == (4, 1, 0)
    by_query = {"variant": shop.sale.variants[0].id, "quantity": "2"}
    second = await client.patch(path, headers=keyed(headers), params=by_query)
    assert [line["quantity"] for line in second.json()["lines"]] == [2, 2]
    assert second.json()["deadline_ms"] == document["deadline_ms"]
    replay = await client.patch(path, headers=keyed(headers, "k"), json=lines(shop, 1, 2))
    assert replay.json() == document
    assert await shop.stock() == (3, 2, 0)
    over = await client.patch(path, headers=keyed(headers), json=lines(shop, 0, 0))
    assert (over.json()["state"], over.json()["lines"]) == ("RELEASED", [])
    assert over.json()["total_minor"] == 0
    assert await shop.stock() == (5, 0, 0)


async def test_a_raise_that_fails_changes_nothing(
    client: httpx.AsyncClient, shop: Shop, headers: Headers, path: str
) -> None:
    """Case 14."""
    answer = await client.patch(path, headers=keyed(headers), json=lines(shop, 0, 6))
    assert problem(answer, 409, "sold_out")["variant"] == shop.sale.variants[1].id
    problem(
        await client.patch(path, headers=keyed(headers), json=lines(shop, 7)), 422, "order_limit"
    )
    assert await shop.stock() == (2, 3, 0)
    problem(await client.patch(path, json=lines(shop, 1)), 401, "visitor_required")
    bare = {name: value for name, value in headers.items() if name != "idempotency-key"}
    missing = await client.patch(path, headers=bare, json=lines(shop, 1))
    problem(missing, 400, "idempotency_key_required")
    assert await shop.stock() == (2, 3, 0)


async def test_a_line_and_units_of_a_line_are_given_back_once(
    client: httpx.AsyncClient, shop: Shop, headers: Headers, path: str
) -> None:
    """Case 15: five deliveries."""
    for _ in range(5):
        answer = await client.request(
            "DELETE", path, headers=keyed(headers, "same"), json=lines(shop, 1)
        )
        assert answer.json()["released"] == 1
        assert [line["quantity"] for line in answer.json()["reservation"]["lines"]] == [2]
    assert await shop.stock() == (3, 2, 0)
    query = {"variant": shop.sale.variants[0].id}
    answers = [await client.delete(path, headers=headers, params=query) for _ in range(5)]
    assert [answer.json() for answer in answers] == [{"released": 2}, *[{"released": 0}] * 4]
    assert await shop.stock() == (5, 0, 0)
    assert (await client.delete(path, headers=headers)).json() == {"released": 0}


@pytest.mark.parametrize(
    "body", ["{", '{"lines": []}', '{"lines": [{"variant": "x", "quantity": 0}]}', "[]"]
)
async def test_what_is_no_part_is_refused_and_changes_nothing(
    client: httpx.AsyncClient, shop: Shop, headers: Headers, path: str, body: str
) -> None:
    answer = await client.request("DELETE", path, headers=headers, content=body)
    assert answer.status_code in (400, 422), answer.text
    assert await shop.stock() == (2, 3, 0)


async def test_a_part_that_never_arrives_gives_nothing_back(
    parts: Parts, shop: Shop, headers: Headers, path: str
) -> None:
    """Only an empty body stands for all of the reservation: not one that was cut off (H5)."""
    told: list[Any] = []

    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        told.append(message)

    scope = {
        "type": "http",
        "method": "DELETE",
        "path": path,
        "query_string": b"",
        "headers": [
            (b"content-length", b"90"),
            *((name.encode(), value.encode()) for name, value in keyed(headers).items()),
        ],
        "client": ("127.0.0.1", 50_000),
    }
    await build(parts)(scope, receive, send)
    assert told[0]["status"] == 400
    assert await shop.stock() == (2, 3, 0)


async def test_a_variant_named_twice_is_refused(
    client: httpx.AsyncClient, shop: Shop, headers: Headers, path: str
) -> None:
    line = lines(shop, 1)["lines"]
    answer = await client.patch(path, headers=keyed(headers), json={"lines": line * 2})
    problem(answer, 422, "invalid_request")


async def test_an_order_under_way_is_not_changed(
    client: httpx.AsyncClient, shop: Shop, headers: Headers, path: str
) -> None:
    reservation = path.rpartition("/")[2]
    order = {"reservation": reservation}
    started = await client.post(f"/v1/sales/{shop.sale.id}/orders", headers=headers, json=order)
    assert started.status_code == 201
    for method, body in (("PATCH", lines(shop, 1)), ("DELETE", lines(shop, None))):
        answer = await client.request(method, path, headers=keyed(headers), json=body)
        problem(answer, 409, "order_started")
    nobodys = f"{path.rpartition('/')[0]}/{new_id()}"
    answer = await client.patch(nobodys, headers=keyed(headers), json=lines(shop, 1))
    problem(answer, 404, "no_reservation")


async def test_one_verified_phone_reserves_once_whoever_shows_it(
    client: httpx.AsyncClient, parts: Parts, shop: Shop
) -> None:
    path = f"/v1/sales/{shop.sale.id}/reservations"
    body = {**lines(shop, 1), "verified": {"phone": "+41 79 123 45 67"}}
    one, two = await entered(client, shop), await entered(client, shop)
    problem(await client.post(path, headers=one, json=body), 401, "api_key_required")
    shops = {"fairdrop-shop-key": ADMIN_KEY}
    first = await client.post(path, headers={**one, **shops}, json=body)
    assert first.status_code == 201, first.text
    problem(await client.post(path, headers={**two, **shops}, json=body), 409, "person_limit")
    bad = {**body, "verified": {"phone": "079"}}
    refused = await client.post(path, headers={**keyed(two), **shops}, json=bad)
    problem(refused, 422, "invalid_request")
    # Checkout may be who verifies; what it says survives the loss of the store.
    plain = await client.post(path, headers=keyed(two), json=lines(shop, 1))
    order = {"reservation": plain.json()["id"], "verified": body["verified"]}
    orders = f"/v1/sales/{shop.sale.id}/orders"
    problem(await client.post(orders, headers={**two, **shops}, json=order), 409, "person_limit")
    order = {"reservation": first.json()["id"], "verified": {"payment_method": "card_1"}}
    started = await client.post(orders, headers={**one, **shops}, json=order)
    assert started.status_code == 201, started.text
    (row,) = await shop.fetch(
        "SELECT verified FROM orders WHERE id = $1::text::uuid", order["reservation"]
    )
    assert len(row["verified"]) == 2
    assert "41791234567" not in str(row["verified"])
    keys = [key async for key in parts.store.redis.scan_iter(match=f"fd:{{{shop.sale.id}}}:*")]
    await parts.store.redis.delete(*keys)
    parts.catalog.forget(shop.sale.id)
    sale = await parts.catalog.sale(shop.sale.id)
    assert sale is not None
    shop.sale = await parts.loader.keep_loaded(sale)
    three = await entered(client, shop)
    problem(await client.post(path, headers={**three, **shops}, json=body), 409, "person_limit")
