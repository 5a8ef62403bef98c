"""What operators see of orders, and refunds that they grant (O9, case 25)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import httpx
import pytest

from fairdrop.checkout import Order, OrderState
from fairdrop.drivers.keys import sale_key
from tests.integration.checkout.shop import Shop
from tests.integration.control_plane.own_parts import problem

NewShop = Callable[..., Awaitable[Shop]]
KEY = {"idempotency-key": "refund-1"}


async def refund(
    client: httpx.AsyncClient, order: Order, key: str = "refund-1", **body: Any
) -> httpx.Response:
    return await client.post(
        f"/admin/v1/orders/{order.id}/refund",
        json={"reason": "goodwill", **body},
        headers={"idempotency-key": key},
    )


async def paid_out(shop: Shop, order: Order) -> None:
    """The reconciler has the gateway pay, the gateway tells, settlement books."""
    await shop.pay_refunds_now()
    await shop.settle()
    await shop.now(order)


# ------------------------------------------------------------------ looking


async def test_orders_are_paged_oldest_first_and_none_is_missed(
    client: httpx.AsyncClient, sell: NewShop
) -> None:
    shop = await sell(20)
    ids = [(await shop.order()).id for _ in range(5)]
    seen, after = [], None
    while True:
        params = {"limit": 2, **({"after": after} if after else {})}
        page = (await client.get(f"/admin/v1/sales/{shop.sale.id}/orders", params=params)).json()
        seen += [order["id"] for order in page["orders"]]
        after = page["next"]
        if after is None:
            break
    assert seen == sorted(ids)


async def test_orders_are_filtered_by_state(client: httpx.AsyncClient, sell: NewShop) -> None:
    shop = await sell(20)
    await shop.order()
    paid = await shop.paid(2)
    path = f"/admin/v1/sales/{shop.sale.slug}/orders"
    found = (await client.get(path, params={"state": "CONFIRMED"})).json()["orders"]
    assert [order["id"] for order in found] == [paid.id]
    assert (await client.get(path, params={"state": "REFUNDED"})).json()["orders"] == []
    for wrong in ({"state": "SOLD"}, {"limit": 0}, {"limit": 501}, {"after": "x"}):
        problem(await client.get(path, params=wrong), 422, "invalid_request")


async def test_an_order_is_shown_with_all_that_happened_to_it(
    client: httpx.AsyncClient, sell: NewShop
) -> None:
    shop = await sell(5)
    order = await shop.paid(2)
    shown = (await client.get(f"/admin/v1/orders/{order.id}")).json()
    assert (shown["state"], shown["total_minor"], shown["fee_minor"]) == ("CONFIRMED", 9_900, 900)
    assert shown["buyer"] == order.buyer
    assert shown["email"] == "buyer@example.org"
    assert shown["lines"][0]["serials"] == [1, 2]
    assert shown["payment"]["state"] == "SUCCEEDED"
    assert [(step["from_state"], step["to_state"]) for step in shown["transitions"]] == [
        (None, "RESERVED"),
        ("RESERVED", "PAYMENT_PENDING"),
        ("PAYMENT_PENDING", "CONFIRMED"),
    ]
    booked = {(e["account"], e["debit_minor"], e["credit_minor"]) for e in shown["entries"]}
    assert booked == {
        ("GATEWAY_CLEARING", 9_900, 0),
        ("SALES", 0, 9_000),
        ("FEES", 0, 900),
    }


async def test_operators_do_not_see_the_address_at_which_only_the_buyer_pays(
    client: httpx.AsyncClient, sell: NewShop
) -> None:
    shop = await sell(5)
    order = await shop.pending()
    assert order.payment is not None
    assert order.payment.url is not None
    listed = await client.get(f"/admin/v1/sales/{shop.sale.id}/orders")
    for answer in (listed, await client.get(f"/admin/v1/orders/{order.id}")):
        assert order.id in answer.text
        assert order.payment.url not in answer.text


@pytest.mark.parametrize("order", ["none", "00000000-0000-7000-8000-000000000000", "%00"])
async def test_an_order_that_is_not_there_is_told_so(client: httpx.AsyncClient, order: str) -> None:
    problem(await client.get(f"/admin/v1/orders/{order}"), 404, "no_order")
    answer = await client.post(
        f"/admin/v1/orders/{order}/refund", json={"reason": "x"}, headers=KEY
    )
    problem(answer, 404, "no_order")


# ------------------------------------------------------------------ refunds


async def test_a_full_refund_is_booked_at_once_and_ends_when_the_gateway_has_paid(
    client: httpx.AsyncClient, sell: NewShop
) -> None:
    shop = await sell(5)
    order = await shop.paid(2)
    answer = await refund(client, order)
    assert answer.status_code == 201, answer.text
    assert (answer.json()["amount_minor"], answer.json()["state"]) == (9_900, "PENDING")
    await shop.now(order, OrderState.REFUND_PENDING)
    owed = [entry for entry in await shop.entries(order) if entry[0] == "REFUND_OWED"]
    assert owed == [
        ("REFUND_OWED", "FEES", "EUR", 900, 0),
        ("REFUND_OWED", "REFUND_LIABILITY", "EUR", 0, 9_900),
        ("REFUND_OWED", "SALES", "EUR", 9_000, 0),
    ]
    await paid_out(shop, order)
    done = await shop.now(order, OrderState.REFUNDED)
    assert done.refunded_minor == 9_900
    shown = (await client.get(f"/admin/v1/orders/{order.id}")).json()
    assert [refund["state"] for refund in shown["refunds"]] == ["SUCCEEDED"]
    assert sum(e["debit_minor"] - e["credit_minor"] for e in shown["entries"]) == 0


async def test_part_refunds_add_up_to_what_was_paid_and_no_further(
    client: httpx.AsyncClient, sell: NewShop
) -> None:
    shop = await sell(5, prices=(1_995,))
    order = await shop.paid(1)  # 19.95 and a fee of 2.00
    for index, amount in enumerate((1, 731, 732)):
        answer = await refund(client, order, key=f"part-{index}", amount_minor=amount)
        assert answer.status_code == 201, answer.text
        await paid_out(shop, order)
        await shop.now(order, OrderState.PARTIALLY_REFUNDED)
    too_much = await refund(client, order, key="too-much", amount_minor=2_195 - 1_464 + 1)
    problem(too_much, 422, "refund_too_much")
    rest = await refund(client, order, key="rest")
    assert rest.json()["amount_minor"] == 2_195 - 1_464
    await paid_out(shop, order)
    await shop.now(order, OrderState.REFUNDED)
    totals: dict[str, int] = {}
    for _, account, _, debit, credit in await shop.entries(order):
        totals[account] = totals.get(account, 0) + debit - credit
    assert set(totals.values()) == {0}, "every account is back where it was, to the cent"


async def test_a_repeated_request_is_the_same_refund(
    client: httpx.AsyncClient, sell: NewShop
) -> None:
    shop = await sell(5)
    order = await shop.paid()
    first = await refund(client, order, amount_minor=100)
    again = await refund(client, order, amount_minor=100)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json()["id"] == first.json()["id"]
    await paid_out(shop, order)
    # Also when it has been paid in the meantime, and the order could be refunded further.
    late = await refund(client, order, amount_minor=100)
    assert (late.json()["id"], late.json()["state"]) == (first.json()["id"], "SUCCEEDED")
    assert len(await shop.refunds(order)) == 1


async def test_a_key_that_came_with_another_request_is_refused(
    client: httpx.AsyncClient, sell: NewShop
) -> None:
    shop = await sell(5)
    order = await shop.paid()
    await refund(client, order, amount_minor=100)
    for other in ({"amount_minor": 200}, {}, {"amount_minor": 100, "reason": "else"}):
        problem(await refund(client, order, **other), 422, "idempotency_key_reused")
    assert len(await shop.refunds(order)) == 1


async def test_refunds_asked_for_together_never_exceed_what_was_paid(
    client: httpx.AsyncClient, sell: NewShop
) -> None:
    shop = await sell(5)
    order = await shop.paid(1)  # 49.50
    answers = await asyncio.gather(
        *(refund(client, order, key=f"k{n}", amount_minor=3_000) for n in range(8))
    )
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 7
    await paid_out(shop, order)
    problem(await refund(client, order, key="more", amount_minor=1_951), 422, "refund_too_much")
    assert sum(amount for _, amount, _, _ in await shop.refunds(order)) == 3_000


async def test_double_clicks_with_one_key_are_one_refund(
    client: httpx.AsyncClient, sell: NewShop
) -> None:
    shop = await sell(5)
    order = await shop.paid()
    answers = await asyncio.gather(*(refund(client, order) for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [201]
    assert len({answer.json()["id"] for answer in answers}) == 1


async def test_a_second_refund_waits_for_the_first(
    client: httpx.AsyncClient, sell: NewShop
) -> None:
    shop = await sell(5)
    order = await shop.paid()
    await refund(client, order, amount_minor=100)
    problem(await refund(client, order, key="second", amount_minor=1), 409, "refund_under_way")


async def test_only_money_that_came_in_goes_back(client: httpx.AsyncClient, sell: NewShop) -> None:
    shop = await sell(9)
    reserved, pending, expired = await shop.order(), await shop.pending(), await shop.order()
    await shop.expire(expired)
    for order in (reserved, pending, expired):
        problem(await refund(client, order), 409, "order_not_refundable")
        assert await shop.refunds(order) == []


@pytest.mark.parametrize(
    "body",
    [
        {"amount_minor": 0},
        {"amount_minor": -1},
        {"amount_minor": 1.5},
        {"amount_minor": "10"},
        {"amount_minor": 2**63},
        {"reason": ""},
        {"reason": "x" * 501},
        {"reason": None},
        {"reason": "line\nbreak"},
        {"other": 1},
    ],
)
async def test_a_refund_that_makes_no_sense_is_refused(
    client: httpx.AsyncClient, sell: NewShop, body: dict[str, Any]
) -> None:
    shop = await sell(5)
    order = await shop.paid()
    problem(await refund(client, order, **body), 422, "invalid_request")
    await shop.now(order, OrderState.CONFIRMED)


@pytest.mark.parametrize("headers", [{}, {"idempotency-key": ""}, {"idempotency-key": "a b"}])
async def test_a_refund_needs_an_idempotency_key(
    client: httpx.AsyncClient, sell: NewShop, headers: dict[str, str]
) -> None:
    shop = await sell(5)
    order = await shop.paid()
    answer = await client.post(
        f"/admin/v1/orders/{order.id}/refund", json={"reason": "x"}, headers=headers
    )
    problem(answer, 400, "idempotency_key_required")
    await shop.now(order, OrderState.CONFIRMED)


async def test_a_refund_that_the_gateway_does_not_pay_yet_is_tried_again_and_paid_once(
    client: httpx.AsyncClient, sell: NewShop
) -> None:
    shop = await sell(5)
    order = await shop.paid()
    await refund(client, order)
    shop.gateway.break_after.add("refund")
    await paid_out(shop, order)
    shown = (await client.get(f"/admin/v1/orders/{order.id}")).json()["refunds"][0]
    assert (shown["state"], bool(shown["last_error"])) == ("PENDING", True)
    shop.gateway.break_after.clear()
    await paid_out(shop, order)
    await shop.now(order, OrderState.REFUNDED)
    assert len(shop.gateway.keys_of_refunds) == 1


async def test_a_refund_is_audited_and_told_to_the_outside(
    client: httpx.AsyncClient, sell: NewShop
) -> None:
    shop = await sell(5)
    order = await shop.paid()
    answer = await refund(client, order, amount_minor=100)
    rows = await shop.fetch(
        "SELECT * FROM operator_audit WHERE sale_id = $1 AND action = 'refund'",
        UUID(shop.sale.id),
    )
    assert [row["detail"]["refund"] for row in rows] == [answer.json()["id"]]
    assert (await shop.events(order))[-1] == "order.refund_pending"
    assert (await shop.steps(order))[-1] == ("CONFIRMED", "REFUND_PENDING", "refund_asked")


async def test_the_units_of_a_refunded_order_are_not_sold_again(
    client: httpx.AsyncClient, sell: NewShop
) -> None:
    """Also when the store had not been told of the sale before the refund was asked for."""
    shop = await sell(2)
    order = await shop.pending(2)
    redis: Any = shop.parts.store.redis
    holds, stock, due = (sale_key(*shop.sale.ref, name) for name in ("holds", "stk", "due"))
    await shop.deliver(shop.gateway.take_money(order.id))
    held, counted = await redis.hgetall(holds), await redis.hgetall(stock)
    await shop.settle()
    # The process died between the commit and telling the store.
    await redis.hset(holds, mapping=held)
    await redis.hset(stock, mapping=counted)
    await redis.zadd(due, {order.id: 1})
    assert await shop.stock() == (0, 2, 0)

    assert (await refund(client, order)).status_code == 201
    await shop.sweep()
    assert await shop.stock() == (0, 0, 2)
