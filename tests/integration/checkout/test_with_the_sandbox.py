"""The whole way with a real gateway in a process of its own, and its signed webhooks over HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from fairdrop.app import Parts
from fairdrop.checkout import Order, OrderState
from fairdrop.errors import FairdropError
from fairdrop.payments import GatewayEvent, IntentStatus, SandboxGateway
from fairdrop.worker import Worker
from tests.integration.checkout.conftest import NewShop
from tests.integration.checkout.shop import Shop
from tests.integration.payments.running_gateway import (
    DECLINED,
    SLOW,
    SUCCEEDS,
    Buyer,
    RunningGateway,
    all_charges,
)

S = OrderState


@dataclass
class Bank:
    """The running gateway, and how buyers reach it."""

    gateway: RunningGateway
    adapter: SandboxGateway
    session: aiohttp.ClientSession

    async def pay(self, order: Order, card: str = SUCCEEDS, **mischief: Any) -> None:
        intent = await self.adapter.find(order.id)
        assert intent is not None
        await Buyer(self.gateway, self.session).pay(intent, card, **mischief)


@asynccontextmanager
async def webhook_address(parts: Parts, name: str) -> AsyncIterator[str]:
    """Our side of the webhooks: signature checked, stored, then answered (O6)."""

    async def take(request: web.Request) -> web.Response:
        adapter = parts.gateways[name]
        event = adapter.verify_webhook(request.headers, await request.read(), int(time.time()))
        if not isinstance(event, GatewayEvent):
            return web.Response(status=401)
        try:
            await parts.inbox.store(name, event)
        except FairdropError:
            return web.Response(status=503)
        return web.Response(text="received")

    application = web.Application()
    application.router.add_post("/hook", take)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    finally:
        await runner.cleanup()


@pytest.fixture
async def bank(parts: Parts, shop: Shop, tmp_path: Path) -> AsyncIterator[Bank]:
    name = shop.gateway.name
    async with webhook_address(parts, name) as url, aiohttp.ClientSession() as session:
        gateway = RunningGateway(tmp_path / "data", url).start()
        adapter = SandboxGateway(
            gateway.base_url, gateway.secret_key, gateway.webhook_secret, total_timeout_s=30
        )
        parts.gateways[name] = adapter
        yield Bank(gateway, adapter, session)
        await adapter.close()
        gateway.kill()


@asynccontextmanager
async def working(parts: Parts) -> AsyncIterator[None]:
    """The worker, as in production."""
    task = asyncio.create_task(Worker(parts).run())
    yield
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def everything_of(shop: Shop, order: Order) -> dict[str, Any]:
    """All that the database knows of an order, for whoever has to find out what went wrong."""
    asked = {
        "steps": "SELECT * FROM order_transitions WHERE order_id = $1::text::uuid ORDER BY at",
        "payment": "SELECT * FROM payments WHERE order_id = $1::text::uuid",
        "refunds": "SELECT * FROM refunds WHERE order_id = $1::text::uuid",
        "inbox": "SELECT * FROM webhook_inbox LEFT JOIN webhook_due USING (id)"
        " WHERE order_id = $1::text::uuid",
        "timers": "SELECT * FROM order_timers WHERE order_id = $1::text::uuid",
        "beside": "SELECT now(), (SELECT count(*) FROM refunds WHERE state = 'PENDING'),"
        " (SELECT count(*) FROM webhook_due), (SELECT count(*) FROM order_timers) WHERE $1 <> ''",
    }
    return {
        name: [dict(row) for row in await shop.fetch(statement, order.id)]
        for name, statement in asked.items()
    }


async def until(shop: Shop, order: Order, *states: OrderState) -> Order:
    deadline = time.monotonic() + 60
    while True:
        found = await shop.now(order)
        if found.state in states:
            return found
        assert time.monotonic() < deadline, (found.state, states, await everything_of(shop, order))
        await asyncio.sleep(0.02)


async def test_whatever_the_bank_and_its_webhooks_do_money_ends_as_an_order_or_a_refund(
    sell: NewShop, bank: Bank, shop: Shop
) -> None:
    """O8: told twice, late, never, in the wrong order; declined first; slow; after the end."""
    shop = await sell(20, payment_attempts=3)

    async def declined_then_paid(order: Order) -> None:
        await bank.pay(order, DECLINED)
        await bank.pay(order)

    async def clicked_five_times(order: Order) -> None:
        await asyncio.gather(*(bank.pay(order) for _ in range(5)))

    async def cancelled_while_paying(order: Order) -> None:
        await bank.pay(order, delay_webhook_ms=300)
        await shop.cancel(order)

    async def expired_while_paying(order: Order) -> None:
        await bank.pay(order, delay_webhook_ms=300)
        await shop.let_deadline_pass(order.id)

    async def given_up(order: Order) -> None:
        for _ in range(3):
            await bank.pay(order, DECLINED)

    confirmed = (S.CONFIRMED,)
    stories: list[tuple[Callable[[Order], Awaitable[None]], tuple[OrderState, ...]]] = [
        (lambda order: bank.pay(order), confirmed),
        (lambda order: bank.pay(order, duplicate=3), confirmed),
        (lambda order: bank.pay(order, drop=True), confirmed),
        (lambda order: bank.pay(order, SLOW), confirmed),
        (declined_then_paid, confirmed),
        (clicked_five_times, confirmed),
        (cancelled_while_paying, (S.REFUNDED, S.CONFIRMED)),  # whichever was first
        (expired_while_paying, confirmed),
        (given_up, (S.PAYMENT_FAILED,)),
    ]
    orders = [await shop.pending() for _ in stories]
    async with working(shop.parts):
        await asyncio.gather(
            *(story(order) for (story, _), order in zip(stories, orders, strict=True))
        )
        ends = await asyncio.gather(
            *(
                until(shop, order, *states)
                for (_, states), order in zip(stories, orders, strict=True)
            )
        )
        buyer = Buyer(bank.gateway, bank.session)
        async with asyncio.timeout(60):
            while await buyer.pending():
                await asyncio.sleep(0.02)
        await shop.settle()
    for order, end in zip(orders, ends, strict=True):
        intent = await bank.adapter.find(order.id)
        assert intent is not None
        charges = await all_charges(bank.adapter, intent.id)
        assert charges == ([] if end.state is S.PAYMENT_FAILED else [4_950])
        kept = intent.amount_received_minor - intent.amount_refunded_minor
        assert kept == (4_950 if end.state is S.CONFIRMED else 0)
        net = sum(
            debit - credit
            for _, account, _, debit, credit in await shop.entries(order)
            if account == "GATEWAY_CLEARING"
        )
        assert net == kept
    sold = sum(end.state is S.CONFIRMED for end in ends)
    assert await shop.stock() == (20 - sold, 0, sold)


async def test_a_gateway_that_is_killed_between_the_click_and_its_answer_charges_once(
    sell: NewShop, bank: Bank, shop: Shop
) -> None:
    """Cases 17 and 22."""
    shop = await sell(5)
    order = await shop.order()
    bank.gateway.kill()
    with pytest.raises(FairdropError):
        await shop.pay(order)
    bank.gateway.start()
    shop.parts.gateways[shop.gateway.name] = adapter = SandboxGateway(
        bank.gateway.base_url, bank.gateway.secret_key, bank.gateway.webhook_secret
    )
    bank.adapter, old = adapter, bank.adapter
    await old.close()
    assert isinstance(await shop.pay(order), Order)
    assert isinstance(await shop.pay(order), Order)
    await bank.pay(order, drop=True)
    bank.gateway.kill()
    await shop.check_payments_now()
    await shop.now(order, S.PAYMENT_PENDING)
    bank.gateway.start()
    again = SandboxGateway(
        bank.gateway.base_url, bank.gateway.secret_key, bank.gateway.webhook_secret
    )
    shop.parts.gateways[shop.gateway.name] = again
    await shop.check_payments_now()
    await shop.settle()
    await shop.now(order, S.CONFIRMED)
    intent = await again.find(order.id)
    assert intent is not None
    assert await all_charges(again, intent.id) == [4_950]
    await adapter.close()
    await again.close()


async def test_yen_and_dinars_are_charged_as_they_are_shown(
    sell: NewShop, bank: Bank, shop: Shop
) -> None:
    """Case 23, at the gateway's own record."""
    for currency, price, total in (("JPY", 80, 88), ("KWD", 1_995, 2_195)):
        shop = await sell(2, currency=currency, prices=(price,))
        order = await shop.pending()
        await bank.pay(order)
        async with asyncio.timeout(30):
            while (await shop.now(order)).state is not S.CONFIRMED:
                await shop.settle()
                await asyncio.sleep(0.01)
        intent = await bank.adapter.find(order.id)
        assert intent is not None
        assert await all_charges(bank.adapter, intent.id) == [total]
        assert intent.currency == currency


async def test_with_manual_capture_the_worker_takes_the_money_and_lets_late_money_go(
    sell: NewShop, bank: Bank, shop: Shop
) -> None:
    """O4: authorise, secure, capture; webhooks that are lost or doubled change nothing."""
    shop = await sell(10, capture="manual")
    orders = [await shop.pending() for _ in range(4)]
    told, untold, late, declined = orders
    await shop.expire(late)
    async with working(shop.parts):
        await asyncio.gather(
            bank.pay(told, duplicate=2),
            bank.pay(untold, drop=True),
            bank.pay(declined, DECLINED),
            bank.pay(late),
            return_exceptions=True,  # the worker may have closed the late one already
        )
        for order in (told, untold):
            await until(shop, order, S.CONFIRMED)
        intent = await bank.adapter.find(late.id)
        assert intent is not None
        async with asyncio.timeout(60):
            while intent.status is not IntentStatus.CANCELED:
                intent = await bank.adapter.fetch(intent.id)
                await asyncio.sleep(0.02)
    for order, charged in ((told, [4_950]), (untold, [4_950]), (late, []), (declined, [])):
        found = await bank.adapter.find(order.id)
        assert found is not None
        assert await all_charges(bank.adapter, found.id) == charged
    assert await shop.entries(late) == []
    await shop.now(late, S.EXPIRED)
