"""The worker's loops: they outlive errors, and they end when they are told to."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairdrop import worker as module
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
