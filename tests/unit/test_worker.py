"""The worker's loops: they outlive errors, and they end when they are told to."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairdrop import worker as module
from fairdrop.drivers.sale_scripts import SaleNotLoaded
from fairdrop.errors import StoreUnavailable
from fairdrop.worker import Worker


def worker() -> Worker:
    return Worker(cast("Any", SimpleNamespace()))


async def test_a_cancellation_that_a_broken_connection_swallows_still_ends_the_loop() -> None:
    begun = asyncio.Event()

    async def step() -> float:
        begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            # asyncio.wait_for did so before Python 3.12 when both happened at once.
            raise StoreUnavailable("the connection broke") from None
        return 0

    loop = asyncio.create_task(worker()._loop("step", step))
    await begun.wait()
    loop.cancel()
    async with asyncio.timeout(5):
        await asyncio.wait([loop])
    assert loop.cancelled()


@pytest.mark.parametrize("error", [StoreUnavailable("away"), RuntimeError("a bug")])
async def test_a_loop_goes_on_after_an_error(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAUSE_AFTER_ERROR_S", 0.0)
    steps = 0
    again = asyncio.Event()

    async def step() -> float:
        nonlocal steps
        steps += 1
        if steps == 1:
            raise error
        again.set()
        return 60

    loop = asyncio.create_task(worker()._loop("step", step))
    async with asyncio.timeout(5):
        await again.wait()
    loop.cancel()
    await asyncio.wait([loop])
    assert loop.cancelled()


async def test_trouble_with_one_sale_stops_no_other_one() -> None:
    """A store that has lost one sale, or a bug that one of them meets, is that sale's alone."""
    served = []

    async def step(name: str) -> None:
        if name == "lost":
            raise SaleNotLoaded("the store has not got it")
        if name == "odd":
            raise RuntimeError("a bug")
        served.append(name)

    with pytest.raises(SaleNotLoaded):
        await module._each(cast("Any", ["first", "lost", "odd", "last"]), cast("Any", step))
    assert served == ["first", "last"]


async def test_a_store_that_is_away_is_not_asked_for_every_sale() -> None:
    """Each would wait for its time-out."""
    asked = []

    async def step(name: str) -> None:
        asked.append(name)
        raise StoreUnavailable("away")

    with pytest.raises(StoreUnavailable):
        await module._each(cast("Any", ["first", "last"]), cast("Any", step))
    assert asked == ["first"]


async def test_in_a_rush_more_orders_share_a_commit_and_mails_go_slower() -> None:
    webhooks = 0

    async def drain() -> int:
        return webhooks

    async def send_due() -> int:
        return 50

    async def settled_and_mailed() -> tuple[float, float]:
        return await one._settle(0.03), await one._send_mails(0.5)

    one = Worker(
        cast(
            "Any",
            SimpleNamespace(
                settlement=SimpleNamespace(drain=drain),
                mailer=SimpleNamespace(send_due=send_due),
                settings=SimpleNamespace(mails_per_s=100),
            ),
        )
    )
    assert await settled_and_mailed() == pytest.approx((0.03, 0.5))
    webhooks = module.RUSH
    assert await settled_and_mailed() == pytest.approx((0.09, 2.0))
    webhooks = module.RUSH - 1
    assert await settled_and_mailed() == pytest.approx((0.03, 0.5))
