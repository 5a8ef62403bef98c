"""Fixtures of the control plane's tests."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fairdrop.app import Parts
from tests.integration.checkout.scripted_gateway import ScriptedGateway
from tests.integration.checkout.shop import Shop, new_shop
from tests.integration.control_plane.own_parts import client, database_url, parts

__all__ = ["client", "database_url", "parts"]

NewShop = Callable[..., Awaitable[Shop]]


@pytest.fixture
def sell(parts: Parts) -> NewShop:
    """Open a sale whose gateway does what the test says: ``await sell(5, fee_bps=0)``."""
    gateway = ScriptedGateway()
    parts.gateways[gateway.name] = gateway

    async def sell(*stock: int, **changes: Any) -> Shop:
        return await new_shop(parts, gateway, *stock, **changes)

    return sell
