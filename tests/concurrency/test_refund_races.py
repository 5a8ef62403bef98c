"""Refunds asked for together never exceed what was paid: the order's lock decides (O9, case 25)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from unittest import mock

import pytest

from fairdrop.app import Parts
from fairdrop.checkout import Granted, Order, RefundRefusal, Wanted, refunds
from fairdrop.embedded import BackgroundServices
from fairdrop.ids import new_id
from tests.integration.checkout.scripted_gateway import ScriptedGateway
from tests.integration.checkout.shop import Shop, checkout_database, new_shop, shop_parts


@pytest.fixture
async def shop(services: BackgroundServices) -> AsyncIterator[Shop]:
    gateway = ScriptedGateway()
    url = await checkout_database(services)
    async with shop_parts(services.store_url, url, gateway) as parts:
        yield await new_shop(parts, gateway, 5)


async def ask(parts: Parts, order: Order, amount_minor: int) -> Granted | RefundRefusal:
    wanted = Wanted(amount_minor=amount_minor, reason="together")
    answer: Granted | RefundRefusal = await parts.refunds.grant(
        order.id, wanted, key=new_id(), actor="test"
    )
    return answer


async def granted_minor(shop: Shop, order: Order) -> int:
    return sum(amount for _, amount, _, _ in await shop.refunds(order))


async def test_refunds_asked_for_at_once_grant_no_more_than_was_paid(shop: Shop) -> None:
    order = await shop.paid(2)
    for _ in range(3):
        answers = await asyncio.gather(
            *(ask(shop.parts, order, order.total_minor * 6 // 10) for _ in range(6))
        )
        refused = [one for one in answers if not isinstance(one, Granted)]
        assert set(refused) <= {RefundRefusal.UNDER_WAY, RefundRefusal.TOO_MUCH}
        await shop.pay_refunds_now()
        await shop.settle()
    assert await granted_minor(shop, order) == order.total_minor * 6 // 10


async def test_the_lock_on_the_order_s_row_is_what_prevents_it(shop: Shop) -> None:
    """The control: without it two refunds see the same sum, and more goes back than came in."""
    order = await shop.paid(2)
    both = asyncio.Barrier(2)
    plan = refunds._plan

    async def plan_together(*arguments: object) -> object:
        found = await plan(*arguments)  # type: ignore[arg-type]
        await both.wait()
        return found

    names = refunds.SQL
    unlocked = {
        name: names[name].replace("FOR UPDATE OF o", "")
        for name in (
            "lock_order",
            "refund_of_key",
            "granted",
            "units_of_order",
            "insert_refund",
            "insert_refund_units",
            "set_state",
        )
    }
    with (
        mock.patch.object(refunds, "SQL", unlocked),
        mock.patch.object(refunds, "_plan", plan_together),
    ):
        async with asyncio.timeout(30):
            await asyncio.gather(
                *(ask(shop.parts, order, order.total_minor * 6 // 10) for _ in range(2))
            )
    assert await granted_minor(shop, order) > order.total_minor
