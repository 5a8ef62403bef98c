"""Everybody sees a change of stock within a second, and what is held is not what is sold (H10)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import httpx
import pytest

from tests.integration.checkout.shop import Shop
from tests.integration.control_plane.conftest import NewShop

Stock = tuple[int, int, int]


@pytest.fixture
async def shop(sell: NewShop) -> Shop:
    return await sell(5)


async def seen_after_s(
    client: httpx.AsyncClient, shop: Shop, change: Callable[[], Awaitable[object]], then: Stock
) -> float:
    """Seconds from the end of the change until the public document tells of it."""
    path = f"/v1/sales/{shop.sale.slug}"
    await client.get(path)  # somebody looked a moment ago: the figures are remembered for a tick
    await change()
    began = time.monotonic()
    async with asyncio.timeout(30):
        while True:
            answer = await client.get(path)
            assert "max-age=1" in answer.headers["cache-control"]
            (variant,) = answer.json()["variants"]
            if (variant["free"], variant["held"], variant["sold"]) == then:
                return time.monotonic() - began
            await asyncio.sleep(0.01)


async def test_held_and_sold_units_are_told_apart_within_a_second(
    client: httpx.AsyncClient, shop: Shop
) -> None:
    client.headers.pop("authorization", None)
    variant = shop.sale.variants[0].id
    buyer = await shop.admit()
    hold = ""

    async def reserve() -> None:
        nonlocal hold
        hold = await shop.reserve(buyer, 3)

    steps: list[tuple[Callable[[], Awaitable[object]], Stock]] = [
        (reserve, (2, 3, 0)),
        (lambda: shop.parts.inventory.release(shop.sale.ref, hold, buyer), (5, 0, 0)),
        (lambda: shop.paid(2), (3, 0, 2)),
        (lambda: shop.parts.stock.change(shop.sale, variant, -1, "test"), (2, 0, 2)),
    ]
    for change, then in steps:
        assert await seen_after_s(client, shop, change, then) < 1.0
