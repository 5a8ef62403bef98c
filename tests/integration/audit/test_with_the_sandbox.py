"""The audit of a shop that is paid at the real gateway process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from fairdrop.app import Parts
from fairdrop.audit import Kind, audit, figures
from fairdrop.checkout import OrderState
from fairdrop.embedded import BackgroundServices
from fairdrop.payments import GatewayUnavailable
from tests.integration.audit.busy_shop import Tamper
from tests.integration.checkout.scripted_gateway import ScriptedGateway
from tests.integration.checkout.shop import Shop, open_sale, shop_parts
from tests.integration.payments.running_gateway import Buyer, RunningGateway


@pytest.fixture
def gateway(tmp_path: Path) -> object:
    # Its webhooks go nowhere: the reconciler asks.
    running = RunningGateway(tmp_path / "gateway", "http://127.0.0.1:9/").start()
    yield running
    running.kill()


@pytest.fixture
async def parts(
    services: BackgroundServices, database_url: str, tamper: Tamper, gateway: RunningGateway
) -> AsyncIterator[Parts]:
    async with shop_parts(
        services.store_url,
        database_url,
        gateway_url=gateway.base_url,
        gateway_secret_key=gateway.secret_key,
        gateway_webhook_secret=gateway.webhook_secret,
    ) as parts:
        yield parts


async def test_real_charges_and_refunds_agree_with_our_books(
    parts: Parts, gateway: RunningGateway
) -> None:
    shop = Shop(parts, ScriptedGateway(), await open_sale(parts, 9))
    orders = [await shop.pending(1) for _ in range(3)]
    async with aiohttp.ClientSession() as session:
        buyer = Buyer(gateway, session)
        for order in orders:
            intent = await parts.gateways["sandbox"].find(order.id)
            assert intent is not None
            status, _ = await buyer.pay(intent)
            assert status == 200
    before = await figures(parts, shop.sale.id)
    assert (before.paid_without_order, before.orders_confirmed) == (3, 0)
    await shop.cancel(orders[2])
    await shop.check_payments_now()
    await shop.settle()
    await shop.pay_refunds_now()
    await shop.settle()
    await shop.now(orders[0], OrderState.CONFIRMED)
    await shop.now(orders[2], OrderState.REFUNDED)
    found = await figures(parts, shop.sale.id)
    assert (found.orders_confirmed, found.orders_refunded, found.paid_without_order) == (2, 1, 0)
    assert await audit(parts, in_flight_ms=0, pause_s=0) == []

    # A gateway that does not answer is no clean audit.
    gateway.kill()
    with pytest.raises(GatewayUnavailable):
        await audit(parts)


async def test_a_charge_that_only_the_gateway_knows_of_is_found(
    parts: Parts, gateway: RunningGateway
) -> None:
    shop = Shop(parts, ScriptedGateway(), await open_sale(parts, 9))
    order = await shop.pending(1)
    async with aiohttp.ClientSession() as session:
        intent = await parts.gateways["sandbox"].find(order.id)
        assert intent is not None
        await Buyer(gateway, session).pay(intent)
    assert await audit(parts, pause_s=0) == [], "its webhook may be on its way"
    (found,) = await audit(parts, in_flight_ms=-1, pause_s=0)
    assert found.kind is Kind.PAID_WITHOUT_ORDER
    assert ("order", order.id) in found.subject
