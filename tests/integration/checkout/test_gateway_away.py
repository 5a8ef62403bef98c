"""A gateway that hangs or is gone: reservations and settlement go on, and payers hear at once (O4)."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairdrop.checkout import Order, OrderState
from fairdrop.payments import (
    EventKind,
    Gateway,
    GatewayRefused,
    GatewayUnavailable,
    GuardedGateway,
    SandboxGateway,
)
from tests.integration.checkout.conftest import NewShop
from tests.integration.checkout.scripted_gateway import event_of
from tests.integration.checkout.shop import Shop
from tests.integration.payments.running_gateway import RunningGateway, a_request, new_reference

LIMIT_S = 0.3
OPEN_S = 0.5


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    gateway = RunningGateway(tmp_path / "data", "http://127.0.0.1:9/hook").start()
    yield gateway
    gateway.kill()


@pytest.fixture
async def guarded(shop: Shop, running: RunningGateway) -> AsyncIterator[GuardedGateway]:
    """The shop's gateway: a real process, its adapter, and the guard before it."""
    async with SandboxGateway(
        running.base_url, running.secret_key, running.webhook_secret, total_timeout_s=LIMIT_S
    ) as adapter:
        guarded = GuardedGateway(adapter, failures=3, open_s=OPEN_S, time_limit_s=2 * LIMIT_S)
        shop.parts.gateways[shop.gateway.name] = guarded
        yield guarded


async def paid_for(shop: Shop, guarded: GuardedGateway) -> Order:
    """An order under way whose money has come in, and whose webhook is stored."""
    order = await shop.pending(1)
    intent = await guarded.find(order.id)
    assert intent is not None
    await shop.deliver(event_of(intent, EventKind.SUCCEEDED))
    return order


@pytest.mark.parametrize("how", ["hung", "refused"])
async def test_while_the_gateway_is_away_units_are_reserved_and_payments_settled(
    sell: NewShop, running: RunningGateway, guarded: GuardedGateway, shop: Shop, how: str
) -> None:
    told = await paid_for(shop, guarded)
    waiting = await shop.order(1)
    if how == "hung":
        os.kill(running.pid, signal.SIGSTOP)
    else:
        running.kill()
    try:
        payers = [
            asyncio.create_task(_pay(shop, waiting)) for _ in range(20)
        ]  # all of them hang, or are refused
        began = time.monotonic()
        other = await shop.admit()
        hold = await shop.reserve(other, 1)
        assert isinstance(await shop.start(other, hold), Order)
        await shop.settle()
        await shop.now(told, OrderState.CONFIRMED)
        took = time.monotonic() - began
        assert all(await asyncio.gather(*payers))  # each was told: unavailable
        assert guarded.circuit == "opened"
        began = time.monotonic()
        assert await _pay(shop, waiting)
        assert time.monotonic() - began < LIMIT_S  # at once, no longer after the time limit
        assert guarded.refused > 0
        assert took < 5
    finally:
        if how == "hung":
            os.kill(running.pid, signal.SIGCONT)
        else:
            running.start()
    async with asyncio.timeout(30):
        while await _pay(shop, waiting):
            await asyncio.sleep(0.02)
    assert guarded.circuit == "closed"
    await shop.now(waiting, OrderState.PAYMENT_PENDING)
    intent = await guarded.find(waiting.id)
    assert intent is not None
    assert (await shop.payment(waiting))["intent_id"] == intent.id


async def _pay(shop: Shop, order: Order) -> bool:
    """Whether the payer was told that the gateway does not answer."""
    try:
        await shop.pay(order)
    except GatewayUnavailable:
        return True
    return False


class _Hanging:
    """Counts who is inside; answers when the test says so."""

    name = "hanging"

    def __init__(self) -> None:
        self.inside = self.most = self.calls = 0
        self.open = asyncio.Event()
        self.error: Exception | None = None

    async def fetch(self, intent_id: str) -> str:
        self.calls += 1
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await self.open.wait()
            if self.error is not None:
                raise self.error
            return intent_id
        finally:
            self.inside -= 1


async def test_calls_under_way_are_bounded() -> None:
    gateway = _Hanging()
    guarded = GuardedGateway(gateway, concurrency=4, time_limit_s=30)  # type: ignore[arg-type]
    calls = [asyncio.create_task(guarded.fetch("pi")) for _ in range(40)]
    async with asyncio.timeout(10):
        while gateway.inside < 4:
            await asyncio.sleep(0)
    gateway.open.set()
    await asyncio.gather(*calls)
    assert (gateway.most, gateway.calls) == (4, 40)


async def test_one_call_alone_tries_a_gateway_that_was_away() -> None:
    gateway = _Hanging()
    gateway.open.set()
    gateway.error = GatewayUnavailable("away")
    guarded = GuardedGateway(gateway, failures=2, open_s=0.05)  # type: ignore[arg-type]
    for _ in range(2):
        with pytest.raises(GatewayUnavailable):
            await guarded.fetch("pi")
    assert guarded.circuit == "opened"
    gateway.open.clear()
    gateway.error = None
    tries: list[asyncio.Task[object]] = []
    async with asyncio.timeout(10):
        while gateway.inside == 0:
            tries = [asyncio.create_task(guarded.fetch("pi")) for _ in range(5)]
            await asyncio.sleep(0.02)
    assert gateway.inside == 1
    gateway.open.set()
    answers = await asyncio.gather(*tries, return_exceptions=True)
    assert [type(one) for one in answers].count(GatewayUnavailable) == 4
    assert guarded.circuit == "closed"


async def test_a_refusal_is_an_answer_and_opens_nothing(running: RunningGateway) -> None:
    """The near miss: declines and refusals are the gateway at work."""
    async with SandboxGateway(
        running.base_url, running.secret_key, running.webhook_secret
    ) as adapter:
        guarded: Gateway = GuardedGateway(adapter, failures=2)
        for _ in range(5):
            with pytest.raises(GatewayRefused):
                await guarded.fetch("pi_nothing")
        assert isinstance(guarded, GuardedGateway)
        assert guarded.circuit == "closed"
        assert (await guarded.create(a_request(new_reference()))).amount_minor == 2_500
