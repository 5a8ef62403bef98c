"""What gateways tell over HTTP: checked, stored, then answered with 2xx, whatever becomes of it (O6)."""

from __future__ import annotations

import asyncio
import time
from typing import Any
from uuid import UUID

import httpx
import msgspec
import pytest

from fairdrop.app import Parts
from fairdrop.checkout import Order, OrderState
from fairdrop.errors import DatabaseUnavailable
from fairdrop.ids import new_id
from fairdrop.payments import GatewayUnavailable, signatures
from tests.integration.checkout.scripted_gateway import ScriptedGateway
from tests.integration.checkout.shop import Shop, open_sale
from tests.integration.control_plane.own_parts import problem

ADDRESS = "/v1/webhooks/sandbox"
SECRET = b"whsec_" + b"x" * 20
S = OrderState


@pytest.fixture
async def shop(parts: Parts) -> Shop:
    """A sale of one unit, paid at the sandbox; what it would tell, the tests tell."""
    return Shop(parts, ScriptedGateway(), await open_sale(parts, 1, gateway="sandbox"))


def success(reference: str, amount_minor: int = 4_950, **more: Any) -> bytes:
    """The gateway's word that it took the money of this order."""
    data = {
        "intent": f"pi_{reference}",
        "charge": f"ch_{reference}",
        "reference": reference,
        "amount_minor": amount_minor,
        "currency": "EUR",
    }
    event = {"id": f"evt_{new_id()}", "type": "payment.succeeded", "created_ms": 1, "data": data}
    return msgspec.json.encode({**event, **more})


async def post(
    client: httpx.AsyncClient, body: bytes, secret: bytes = SECRET, now_s: int | None = None
) -> httpx.Response:
    signature = signatures.sign(secret, body, int(time.time()) if now_s is None else now_s)
    return await client.post(ADDRESS, content=body, headers={signatures.HEADER: signature})


async def pending(shop: Shop) -> Order:
    """An order whose buyer is at the gateway, although nobody here has heard its answer."""
    order = await shop.order(1)
    with pytest.raises(GatewayUnavailable):
        await shop.pay(order)
    return await shop.now(order, S.PAYMENT_PENDING)


async def until(shop: Shop, order: Order, state: OrderState) -> None:
    """The shop's workers settle until it is so: what is unknown is put off for a moment."""
    async with asyncio.timeout(20):
        while (await shop.now(order)).state is not state:
            await shop.settle()
            await asyncio.sleep(0.01)


async def test_money_that_comes_after_the_end_is_taken_note_of_and_goes_back_once(
    client: httpx.AsyncClient, shop: Shop
) -> None:
    """Case 16: nothing is left; every delivery is answered 2xx, and replays change nothing."""
    waiting = await shop.admit()  # the line stops at sell-out
    late = await pending(shop)
    body = success(late.id)
    await shop.expire(late)
    winner = await shop.order_of(waiting, await shop.reserve(waiting, 1))
    for _ in range(3):
        assert (await post(client, body)).status_code == 200
        assert (
            await post(client, success(late.id))
        ).status_code == 200  # told anew, as another event
        await until(shop, late, S.REFUND_PENDING)
        await shop.settle()
    assert await shop.refunds(late) == [("PENDING", 4_950, "EUR", "late")]
    assert len(await shop.entries(late)) == 2
    assert [row["outcome"] for row in await shop.inbox_of(late.id)] == [
        "money_returned",
        *["nothing_to_do"] * 3,
    ]
    await shop.now(winner, S.RESERVED)
    assert await shop.stock() == (0, 1, 0)


async def test_a_delivery_three_times_at_once_is_answered_three_times_and_settles_once(
    client: httpx.AsyncClient, shop: Shop
) -> None:
    """Case 18; a second event that tells of the same payment is the near miss."""
    order = await pending(shop)
    body = success(order.id)
    answers = await asyncio.gather(*(post(client, body) for _ in range(3)))
    assert [answer.status_code for answer in answers] == [200] * 3
    assert (await post(client, success(order.id))).status_code == 200
    await until(shop, order, S.CONFIRMED)
    await shop.settle()
    assert len(await shop.inbox_of(order.id)) == 2
    assert await shop.events(order) == ["order.reserved", "order.confirmed"]
    assert len(await shop.entries(order)) == 3


async def test_a_delivery_about_an_order_that_is_not_there_yet_is_kept(
    client: httpx.AsyncClient, shop: Shop
) -> None:
    """Case 19."""
    buyer = await shop.admit()
    hold = await shop.reserve(buyer, 1)
    assert (await post(client, success(hold))).status_code == 200
    await shop.settle()
    order = await shop.order_of(buyer, hold)
    await until(shop, order, S.CONFIRMED)


async def test_a_delivery_of_another_amount_is_answered_2xx_and_confirms_nothing(
    client: httpx.AsyncClient, shop: Shop
) -> None:
    """Case 33: an error would only make the gateway tell it again."""
    order = await pending(shop)
    assert (await post(client, success(order.id, 4_949))).status_code == 200
    await until(shop, order, S.REFUND_PENDING)
    assert await shop.refunds(order) == [("PENDING", 4_949, "EUR", "wrong_amount")]


async def test_what_could_not_be_stored_is_not_answered_2xx(
    client: httpx.AsyncClient, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 35: the gateway tells it again, and nothing says that it was done."""
    order = await pending(shop)
    body = success(order.id)

    async def away(*_: object) -> None:
        raise DatabaseUnavailable("away")

    with monkeypatch.context() as broken:
        broken.setattr(shop.parts.inbox, "store", away)
        problem(await post(client, body), 503, "database_unavailable")
    assert await shop.inbox_of(order.id) == []
    assert (await post(client, body)).status_code == 200
    await until(shop, order, S.CONFIRMED)


async def test_what_nobody_signed_is_refused_and_changes_nothing(
    client: httpx.AsyncClient, shop: Shop
) -> None:
    order = await pending(shop)
    body, now_s = success(order.id), int(time.time())
    signed = signatures.sign(SECRET, body, now_s)
    forged = success(order.id, 4_950, id="evt_forged")
    refused = {
        "signature_missing": await client.post(ADDRESS, content=body),
        "signature_malformed": await client.post(
            ADDRESS, content=body, headers={signatures.HEADER: "t=1"}
        ),
        "signature_wrong": await client.post(
            ADDRESS, content=forged, headers={signatures.HEADER: signed}
        ),
        "timestamp_stale": await post(client, body, now_s=now_s - 301),
    }
    for code, answer in refused.items():
        problem(answer, 401, code)
    problem(await post(client, body, b"whsec_another"), 401, "signature_wrong")
    problem(await post(client, b"{}"), 400, "body_malformed")
    elsewhere = await client.post("/v1/webhooks/nobody", content=body)
    problem(elsewhere, 404, "no_such_gateway")
    # What we have no use for is no error: it would be told again for days.
    assert (await post(client, success(order.id, type="payout.paid"))).json()["ignored"] is True
    await shop.settle()
    assert await shop.inbox_of(order.id) == []
    await shop.now(order, S.PAYMENT_PENDING)
    rows = await shop.fetch("SELECT 1 FROM ledger_entries WHERE order_id = $1", UUID(order.id))
    assert rows == []
