"""The live figures that the console shows: exactly its fields, from the store and the books."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from fairdrop.app import Parts
from fairdrop.web.control_plane import figures as books
from tests.integration.checkout.shop import Shop
from tests.integration.control_plane.own_parts import created, opened

NewShop = Callable[..., Awaitable[Shop]]

CONSOLE = {
    *("mode", "waiting", "called", "inside", "missed", "joined", "left", "done"),
    *("served", "tail", "rate_per_s", "measured_rate_per_s", "cap", "variants", "orders"),
    *("revenue_minor", "fees_minor", "refund_liability_minor", "currency", "currency_exponent"),
}


@pytest.fixture(autouse=True)
def fresh_books(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(books, "BOOKS_FRESH_S", 0.0)
    monkeypatch.setattr(books, "SHARE_OF_TIME", 0)


async def figures(client: httpx.AsyncClient, sale: str) -> dict[str, Any]:
    answer = await client.get(f"/admin/v1/sales/{sale}/figures")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_new_sale_has_every_figure_that_the_console_reads(
    client: httpx.AsyncClient,
) -> None:
    sale = await created(client, currency="KWD", cap=77)
    found = await figures(client, sale["slug"])
    assert set(found) >= CONSOLE
    assert (found["mode"], found["cap"], found["rate_per_s"]) == ("scheduled", 77, 50.0)
    assert (found["currency"], found["currency_exponent"]) == ("KWD", 3)
    assert [(v["quantity"], v["free"], v["held"], v["sold"]) for v in found["variants"]] == [
        (10, 10, 0, 0),
        (5, 5, 0, 0),
    ]
    assert (found["orders"], found["revenue_minor"]) == ({}, 0)


async def test_everybody_who_joined_is_in_one_figure(
    client: httpx.AsyncClient, parts: Parts
) -> None:
    shown = await opened(client, cap=4)
    sale = await parts.catalog.sale(shown["id"])
    assert sale is not None
    room = parts.waiting_room
    for n in range(10):
        await room.join(sale.ref, f"v{n}")
    await room.tick(sale.ref)
    for n in range(3):
        await room.claim(sale.ref, f"v{n}")
    await room.claim(sale.ref, "v0")  # claiming twice is one admission
    await room.leave(sale.ref, "v0")
    await room.leave(sale.ref, "v9")
    f = await figures(client, sale.id)
    assert (f["joined"], f["waiting"], f["called"], f["inside"]) == (10, 5, 1, 3)
    assert (f["admitted"], f["left"], f["done"], f["missed"]) == (3, 2, 0, 0)
    assert f["joined"] == f["waiting"] + f["inside"] + f["missed"] + f["left"] + f["done"]
    assert (f["served"], f["tail"]) == (4, 10)


async def test_orders_and_money_are_those_of_the_books(
    client: httpx.AsyncClient, sell: NewShop
) -> None:
    shop, other = await sell(9), await sell(9)
    await other.paid(3)
    await shop.order()
    paid = await shop.paid(2)
    back = await shop.paid(1)
    await client.post(
        f"/admin/v1/orders/{back.id}/refund",
        json={"reason": "x", "amount_minor": 990},
        headers={"idempotency-key": "k"},
    )
    f = await figures(client, shop.sale.id)
    assert f["orders"] == {"RESERVED": 1, "CONFIRMED": 1, "REFUND_PENDING": 1}
    assert f["revenue_minor"] == 9_000 + 4_500 - 900
    assert f["fees_minor"] == 900 + 450 - 90
    assert f["refund_liability_minor"] == 990
    assert f["variants"][0] == {
        "id": shop.sale.variants[0].id,
        "name": "Ticket, Category 0",
        "quantity": 9,
        "free": 5,
        "held": 1,
        "sold": 3,
        "buffer": 0,
    }
    assert f["done"] == 2
    assert paid.id != back.id


async def test_the_books_are_read_once_however_many_consoles_look(
    client: httpx.AsyncClient, sell: NewShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(books, "BOOKS_FRESH_S", 3_600.0)
    shop = await sell(9)
    assert (await figures(client, shop.sale.id))["orders"] == {}
    await shop.order()
    f = await figures(client, shop.sale.id)
    assert f["orders"] == {}, "remembered"
    assert f["variants"][0]["held"] == 1, "always live"
