"""Many ticks at once never let more people in than fit (W9), and a proof that this can fail."""

from __future__ import annotations

import asyncio
from typing import Any

from fairdrop.drivers.store import Store
from fairdrop.waiting_room import State, WaitingRoom
from tests.concurrency.crowd import all_at_once, connections
from tests.driven_sale import DrivenSale
from tests.integration.waiting_room.counting import assert_everybody_is_counted_once

WORKERS = 20
CAP = 10


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
            while (await room.claim(sale.ref, visitor)).state is not State.ADMITTED:
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
