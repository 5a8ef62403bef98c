"""Who was called since the last look: everybody, once, whatever happened in between (W7)."""

from __future__ import annotations

import asyncio

from fairdrop.clock import now_ms
from fairdrop.drivers.store import Store
from fairdrop.ids import SaleRef
from fairdrop.waiting_room import WaitingRoom
from fairdrop.web.push.calls import Calls
from tests.driven_sale import DrivenSale


async def call(room: WaitingRoom, sale: SaleRef, *visitors: str) -> None:
    """Let them join and be called, by the store's own time."""
    for visitor in visitors:
        await room.join(sale, visitor)
    ticked = await room.tick(sale)
    called = ticked.called
    while ticked.more:
        ticked = await room.tick(sale)
        called += ticked.called
    assert called == len(visitors)


async def test_everybody_called_is_found_once(store: Store, sale: DrivenSale) -> None:
    await sale.load(cap=10_000)
    room = WaitingRoom(store)
    calls = Calls(room)
    assert await calls.since_last(sale.ref) == []
    await call(room, sale.ref, "a", "b")
    assert sorted(await calls.since_last(sale.ref)) == ["a", "b"]
    assert await calls.since_last(sale.ref) == []
    await call(room, sale.ref, "c")
    assert await calls.since_last(sale.ref) == ["c"]


async def test_a_shorter_claim_window_hides_nobody(store: Store, sale: DrivenSale) -> None:
    """Deadlines given out later lie before those given out earlier."""
    await sale.load(claim_ttl_ms=60_000)
    room = WaitingRoom(store)
    calls = Calls(room)
    await call(room, sale.ref, "a")
    assert await calls.since_last(sale.ref) == ["a"]
    assert await calls.since_last(sale.ref) == []
    await sale.load(claim_ttl_ms=20_000)
    await call(room, sale.ref, "b")
    assert await calls.since_last(sale.ref) == ["b"]


async def test_a_crowd_called_between_two_looks_is_found_whole(
    store: Store, sale: DrivenSale
) -> None:
    await sale.load(cap=10_000, rate_milli=5_000_000)
    room = WaitingRoom(store)
    calls = Calls(room)
    await call(room, sale.ref, "first")
    await calls.since_last(sale.ref)
    crowd = [f"visitor-{number}" for number in range(2_300)]
    await call(room, sale.ref, *crowd)
    assert sorted(await calls.since_last(sale.ref)) == sorted(crowd)


async def test_a_crowd_called_in_one_millisecond_is_found_whole(
    store: Store, sale: DrivenSale
) -> None:
    """Pages go by the deadline, and all of these have the same."""
    await sale.load(cap=10_000, rate_milli=50_000_000)
    room = WaitingRoom(store)
    calls = Calls(room)
    crowd = [f"visitor-{number}" for number in range(3_300)]
    await asyncio.gather(*(room.join(sale.ref, visitor) for visitor in crowd))
    at_ms = now_ms()
    while (await room.tick(sale.ref, now_ms=at_ms)).more:
        pass
    deadlines = {until for _, until in (await room.called(sale.ref, 0, limit=5_000)).people}
    assert len(deadlines) == 1
    assert sorted(await calls.since_last(sale.ref)) == sorted(crowd)
    assert await calls.since_last(sale.ref) == []


async def test_a_process_that_starts_finds_who_is_invited_and_an_epoch_starts_anew(
    store: Store, sale: DrivenSale
) -> None:
    """Case 3."""
    await sale.load()
    room = WaitingRoom(store)
    await call(room, sale.ref, "a")
    calls = Calls(room)
    assert await calls.since_last(sale.ref) == ["a"]
    again = DrivenSale(sale.scripts, ref=SaleRef(sale.ref.id, sale.ref.epoch + 1))
    await again.load()
    await call(room, again.ref, "a")
    assert await calls.since_last(again.ref) == ["a"]
