"""Idempotency-Key on changes of both planes: replayed, 409 under way, 422 for another body (H3)."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from fairdrop.app import Parts
from fairdrop.errors import DatabaseUnavailable
from fairdrop.ids import new_id
from tests.integration.control_plane.conftest import NewShop
from tests.integration.control_plane.own_parts import problem

SALES = "/admin/v1/sales"


def a_sale(**changes: Any) -> dict[str, Any]:
    return {
        "slug": f"s-{new_id()[9:]}",
        "name": "A sale",
        "opens_at": "2030-01-01T10:00:00Z",
        "currency": "EUR",
        "variants": [{"product": "P", "name": "V", "price_minor": 100, "quantity": 5}],
        **changes,
    }


async def create(
    client: httpx.AsyncClient, body: dict[str, Any], key: str | None
) -> httpx.Response:
    headers = {} if key is None else {"idempotency-key": key}
    return await client.post(SALES, json=body, headers=headers)


async def test_a_change_asked_for_again_is_answered_as_at_first(client: httpx.AsyncClient) -> None:
    body, key = a_sale(), new_id()
    first = await create(client, body, key)
    again = await create(client, body, f'"{key}"')  # the draft's form, in quotes
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert again.headers["content-type"] == first.headers["content-type"]
    problem(await create(client, body, None), 409, "slug_taken")  # the near miss: no key
    problem(await create(client, body, new_id()), 409, "slug_taken")


async def test_a_refusal_is_repeated_too(client: httpx.AsyncClient) -> None:
    body, key = a_sale(), new_id()
    await create(client, body, None)
    for _ in range(2):
        problem(await create(client, body, key), 409, "slug_taken")
    bad = a_sale(currency="EUX")
    key = new_id()
    for _ in range(2):
        problem(await create(client, bad, key), 422, "invalid_request")


@pytest.mark.parametrize("other", ["body", "path"])
async def test_the_same_key_with_another_request_is_refused_and_does_nothing(
    client: httpx.AsyncClient, other: str
) -> None:
    body, key = a_sale(), new_id()
    sale = (await create(client, body, key)).json()["id"]
    if other == "body":
        changed = a_sale()
        answer = await create(client, changed, key)
        assert (await client.get(f"{SALES}/{changed['slug']}")).status_code == 404
    else:
        answer = await client.post(f"{SALES}/{sale}/pause", headers={"idempotency-key": key})
    problem(answer, 422, "idempotency_key_reused")


async def test_while_the_first_is_under_way_the_second_is_told_so(
    client: httpx.AsyncClient, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, key = a_sale(), new_id()
    inside, go = asyncio.Event(), asyncio.Event()
    create_sale = parts.catalog.create

    async def slow(*arguments: Any) -> Any:
        inside.set()
        await go.wait()
        return await create_sale(*arguments)

    monkeypatch.setattr(parts.catalog, "create", slow)
    first = asyncio.create_task(create(client, body, key))
    async with asyncio.timeout(30):
        await inside.wait()
    second = await create(client, body, key)
    problem(second, 409, "request_under_way")
    assert second.headers["retry-after"] == "1"
    go.set()
    assert (await first).status_code == 201
    assert (await create(client, body, key)).headers["idempotency-replayed"] == "true"


async def test_ten_at_once_with_one_key_have_one_effect(client: httpx.AsyncClient) -> None:
    body, key = a_sale(), new_id()
    answers = await asyncio.gather(*(create(client, body, key) for _ in range(10)))
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert all(a.json()["code"] == "request_under_way" for a in answers if a.status_code == 409)
    created = [a for a in answers if a.status_code == 201]
    assert len({answer.json()["id"] for answer in created}) == 1
    assert sum("idempotency-replayed" not in answer.headers for answer in created) == 1


async def test_an_answer_that_says_try_again_is_not_kept(
    client: httpx.AsyncClient, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, key = a_sale(), new_id()

    async def away(*_: Any) -> Any:
        raise DatabaseUnavailable("away")

    with monkeypatch.context() as broken:
        broken.setattr(parts.catalog, "create", away)
        assert (await create(client, body, key)).status_code == 503
    assert (await create(client, body, key)).status_code == 201


async def test_a_request_whose_process_died_is_carried_out_by_the_next_one(
    client: httpx.AsyncClient, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, key = a_sale(), new_id()

    async def dies(*_: Any) -> None:
        raise DatabaseUnavailable("dead before it was kept")

    with monkeypatch.context() as broken:
        broken.setattr(parts.answers, "keep", dies)
        await create(client, a_sale(), key)
    problem(await create(client, a_sale(), key), 422, "idempotency_key_reused")
    key = new_id()
    with monkeypatch.context() as broken:
        broken.setattr(parts.answers, "keep", dies)
        assert (await create(client, body, key)).status_code == 201
    problem(await create(client, body, key), 409, "request_under_way")
    await _age(parts, key, "2 minutes")
    problem(await create(client, body, key), 409, "slug_taken")  # it had been done after all


async def test_a_key_lives_for_a_day(client: httpx.AsyncClient, parts: Parts) -> None:
    body, key = a_sale(), new_id()
    await create(client, body, key)
    await _age(parts, key, "23 hours")
    assert (await create(client, body, key)).status_code == 201
    await _age(parts, key, "2 hours")
    problem(await create(client, body, key), 409, "slug_taken")  # asked anew
    await _age(parts, key, "25 hours")
    assert await parts.answers.purge() >= 1
    assert await parts.answers.known("operator", key) is None


async def _age(parts: Parts, key: str, by: str) -> None:
    async with parts.database.connection() as connection:
        await connection.execute(
            f"UPDATE idempotency_keys SET begun_at = begun_at - interval '{by}' WHERE key = $1", key
        )


async def test_a_key_that_is_none_is_refused(client: httpx.AsyncClient) -> None:
    for key in ("", "x" * 65, "a b", "a,b"):
        answer = await create(client, a_sale(), key)
        problem(answer, 400, "idempotency_key_malformed")


async def test_a_buyer_s_change_is_answered_once_and_no_buyer_sees_another_s_answer(
    client: httpx.AsyncClient, sell: NewShop, parts: Parts
) -> None:
    shop = await sell(5)
    key = new_id()
    answers = []
    for _ in range(2):
        visitor, token = parts.visitors.new()
        order = await shop.order(1, buyer=visitor)
        headers = {"authorization": f"Bearer {token}", "idempotency-key": key}
        first = await client.post(f"/v1/orders/{order.id}/pay", headers=headers)
        assert (first.status_code, first.json()["state"]) == (200, "PAYMENT_PENDING")
        await shop.cancel(order)
        again = await client.post(f"/v1/orders/{order.id}/pay", headers=headers)
        assert again.content == first.content  # the first answer, whatever has happened since
        other = await client.post(f"/v1/orders/{order.id}/cancel", headers=headers)
        problem(other, 422, "idempotency_key_reused")
        without = {"authorization": f"Bearer {token}"}
        later = await client.post(f"/v1/orders/{order.id}/pay", headers=without)
        problem(later, 409, "order_not_payable")
        answers.append(first.json()["id"])
    assert len(set(answers)) == 2


async def test_who_is_nobody_is_told_so_and_keeps_no_answer(client: httpx.AsyncClient) -> None:
    headers = {"authorization": "Bearer nonsense", "idempotency-key": new_id()}
    for _ in range(2):
        answer = await client.post(f"/v1/orders/{new_id()}/pay", headers=headers)
        problem(answer, 401, "visitor_unknown")
        assert "idempotency-replayed" not in answer.headers


async def test_a_server_of_the_shop_has_its_keys_honoured_for_the_buyer_it_acts_for(
    client: httpx.AsyncClient,
) -> None:
    """The same key for another order is another request; for another buyer it is another key."""
    key = new_id()

    async def cancel(order: str, buyer: str) -> httpx.Response:
        headers = {"fairdrop-buyer": buyer, "idempotency-key": key}
        return await client.post(f"/v1/orders/{order}/cancel", headers=headers)

    one, other = new_id(), new_id()
    problem(await cancel(one, "ann"), 404, "no_order")
    problem(await cancel(one, "ann"), 404, "no_order")
    problem(await cancel(other, "ann"), 422, "idempotency_key_reused")
    problem(await cancel(other, "bob"), 404, "no_order")
