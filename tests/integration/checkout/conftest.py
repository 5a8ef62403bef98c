"""Shops on the real store and the real database of this test process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from fairdrop.app import Parts
from fairdrop.embedded import BackgroundServices
from tests.integration.checkout.scripted_gateway import ScriptedGateway
from tests.integration.checkout.shop import Shop, checkout_database, new_shop, shop_parts

NewShop = Callable[..., Awaitable[Shop]]


@pytest.fixture
def gateway() -> ScriptedGateway:
    return ScriptedGateway()


@pytest.fixture
async def parts(services: BackgroundServices, gateway: ScriptedGateway) -> AsyncIterator[Parts]:
    database_url = await checkout_database(services)
    async with shop_parts(services.store_url, database_url, gateway) as parts:
        yield parts


@pytest.fixture
async def other_parts(
    services: BackgroundServices, gateway: ScriptedGateway
) -> AsyncIterator[Parts]:
    """What another process of the same installation has."""
    database_url = await checkout_database(services)
    async with shop_parts(services.store_url, database_url, gateway) as parts:
        yield parts


@pytest.fixture
def sell(parts: Parts, gateway: ScriptedGateway) -> NewShop:
    """Open a sale: ``await sell(5, 3, fee_bps=0)`` has two variants."""

    async def sell(*stock: int, **changes: Any) -> Shop:
        return await new_shop(parts, gateway, *stock, **changes)

    return sell


@pytest.fixture
async def shop(sell: NewShop) -> Shop:
    """A sale of five units at 45.00 EUR, 10 % fee."""
    return await sell(5)
