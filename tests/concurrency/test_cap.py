"""Many ticks at once keep cap and pace (W8, W9, W10), and a proof that this can fail."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from fairdrop.drivers.store import Store
from fairdrop.waiting_room import State, WaitingRoom
from tests.concurrency.crowd import all_at_once, connections
from tests.driven_sale import DrivenSale
from tests.integration.waiting_room.counting import assert_everybody_is_counted_once

WORKERS = 20
CAP = 10
RATE_PER_S = 200


async def test_parallel_ticks_share_the_cap(sale: DrivenSale, store_url: str) -> None:
    await sale.load(cap=CAP)
    await sale.join(*(f"v{n}" for n in range(100)))

    async def tick(store: Store, _: int) -> int:
        return (await WaitingRoom(store).tick(sale.ref)).called

    async with connections(store_url, WORKERS) as stores:
        for _ in range(3):
            await all_at_once(stores, tick)
            figures = await sale.figures()
            assert (figures.called, figures.active) == (CAP, 0)
    await assert_everybody_is_counted_once(sale)


async def test_parallel_joins_claims_leaves_and_ticks_keep_the_cap(
    sale: DrivenSale, store_url: str
) -> None:
    """Everybody goes through the whole room as fast as they can; a watcher counts."""
    await sale.load(cap=CAP)
    most_inside = 0
    through = asyncio.Event()

    async def visit(store: Store, number: int) -> None:
        room = WaitingRoom(store)
        visitors = [f"v{number}-{n}" for n in range(4)]
        await asyncio.gather(*(room.join(sale.ref, visitor) for visitor in visitors))
        for visitor in visitors:
            while (await room.claim(sale.ref, visitor)).place.state is not State.ADMITTED:
                await room.tick(sale.ref)
            await room.leave(sale.ref, visitor)

    async def watch() -> None:
        nonlocal most_inside
        while not through.is_set():
            figures = await sale.figures()
            most_inside = max(most_inside, figures.called + figures.active)

    async with connections(store_url, WORKERS) as stores:
        watching = asyncio.create_task(watch())
        await all_at_once(stores, visit)
        through.set()
        await watching
    assert 0 < most_inside <= CAP
    figures = await sale.figures()
    assert (figures.joined, figures.left) == (4 * WORKERS, 4 * WORKERS)
    await assert_everybody_is_counted_once(sale)


async def test_parallel_ticks_share_the_pace(sale: DrivenSale, store_url: str) -> None:
    """W8: twenty workers tick as fast as they can, on the store's own clock, for a good second."""
    await sale.load(rate_milli=RATE_PER_S * 1_000, burst_ms=100, cap=100_000)
    for first in range(0, 2_000, 500):
        await sale.join(*(f"v{n}" for n in range(first, first + 500)))

    async def tick(store: Store, _: int) -> int:
        room, called = WaitingRoom(store), 0
        while time.monotonic() < ends:
            called += (await room.tick(sale.ref)).called
        return called

    async with connections(store_url, WORKERS) as stores:
        began = time.monotonic()
        ends = began + 1.2
        called = sum(await all_at_once(stores, tick))
        passed_s = time.monotonic() - began
    assert RATE_PER_S < called <= RATE_PER_S * (passed_s + 0.1) + 1
    await assert_everybody_is_counted_once(sale)


async def test_a_bucket_that_is_read_and_then_written_lets_too_many_through(
    sale: DrivenSale, store_url: str
) -> None:
    """The negative control: the same workers, and a bucket that is kept outside the script."""
    await sale.load(cap=100_000)
    await sale.join(*(f"v{n}" for n in range(500)))
    line, bucket = sale.key("line"), sale.key("ctr")
    await sale.scripts.store.redis.hset(bucket, "tokens", CAP)

    async def read_then_write(store: Store, _: int) -> int:
        tokens = int(await store.redis.hget(bucket, "tokens") or 0)
        called: list[Any] = await store.redis.zpopmin(line, tokens) if tokens else []
        await store.redis.hset(bucket, "tokens", tokens - len(called))
        return len(called)

    async with connections(store_url, WORKERS) as stores:
        called = sum(await all_at_once(stores, read_then_write))
    assert called > CAP


async def test_many_workers_take_one_step_of_the_adaptive_pace_an_interval(
    sale: DrivenSale, store_url: str
) -> None:
    """W10: all see the same measures and decide the same; the script counts one of them."""
    await sale.load(
        rate_milli=10_000, adaptive=1, rate_min_milli=1_000, rate_max_milli=51_000, cap=100
    )
    await sale.join("a", "b")
    bounds = {"lowest_milli": 1_000, "highest_milli": 51_000, "cap": 100}

    async def adapt(store: Store, _: int) -> int:
        step = await WaitingRoom(store).adapt(sale.ref, 5_000, now_ms=sale.now_ms, **bounds)
        return step is not None

    async with connections(store_url, WORKERS) as stores:
        for interval in range(1, 4):
            await sale.scripts.observe(sale.ref, [10, 0, 0])
            assert sum(await all_at_once(stores, adapt)) == 1
            pace = (await sale.figures()).pace
            assert (pace.steps_up, pace.step_reason) == (interval, "up:healthy")
            sale.pass_ms(4_999)
            assert sum(await all_at_once(stores, adapt)) == 0
            sale.pass_ms(1)
    await sale.tick()
    assert (await sale.figures()).pace.pace_milli == 13_000


async def test_counting_and_calling_in_two_steps_lets_too_many_in(
    sale: DrivenSale, store_url: str
) -> None:
    """The negative control: the same workers, and a tick that first counts and then calls."""
    await sale.load(cap=CAP)
    await sale.join(*(f"v{n}" for n in range(100)))
    line, called = sale.key("line"), sale.key("called")

    async def count_then_call(store: Store, _: int) -> None:
        room = CAP - await store.redis.zcard(called)
        if room > 0:
            popped: list[Any] = await store.redis.zpopmin(line, room)
            if popped:
                await store.redis.zadd(called, {visitor: 1 for visitor, _ in popped})

    async with connections(store_url, WORKERS) as stores:
        await all_at_once(stores, count_then_call)
    assert (await sale.figures()).called > CAP
