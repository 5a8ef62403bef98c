"""One place for each visitor, in the order in which the script saw them (W1, W2)."""

from __future__ import annotations

import asyncio
import random

from fairdrop.drivers.store import Store
from fairdrop.waiting_room import State, WaitingRoom
from tests.driven_sale import DrivenSale


async def test_a_visitor_who_joins_many_times_in_one_batch_has_one_place(sale: DrivenSale) -> None:
    await sale.load()
    places = await sale.join("ann", "bob", "ann", "ann", "cid", "bob")
    assert [place.position for place in places] == [1, 2, 1, 1, 3, 2]
    figures = await sale.figures()
    assert (figures.joined, figures.waiting, figures.tail) == (3, 3, 3)


async def test_a_visitor_who_joins_from_many_servers_at_once_has_one_place(
    sale: DrivenSale, store_url: str
) -> None:
    """Twelve servers, each with its own connection, see the same forty people in another order."""
    await sale.load()
    people = [f"visitor-{n}" for n in range(40)]
    servers = [Store(store_url, timeout_s=30) for _ in range(12)]

    async def serve(store: Store, seed: int) -> dict[str, int]:
        room = WaitingRoom(store)
        arrivals = people * 3
        random.Random(seed).shuffle(arrivals)
        joins = [room.join(sale.ref, visitor) for visitor in arrivals]
        standings = await asyncio.gather(*joins)
        return {
            visitor: standing.place.position
            for visitor, standing in zip(arrivals, standings, strict=True)
        }

    told = await asyncio.gather(*(serve(store, seed) for seed, store in enumerate(servers)))
    for store in servers:
        await store.close()
    assert all(places == told[0] for places in told)
    assert sorted(told[0].values()) == list(range(1, 41))
    assert (await sale.figures()).joined == 40


async def test_joining_again_never_moves_anybody_back(sale: DrivenSale) -> None:
    await sale.load()
    await sale.join("ann", "bob", "cid")
    for _ in range(3):
        sale.pass_ms(1_000)
        (place,) = await sale.join("ann")
        assert (place.state, place.position, place.rank) == (State.WAITING, 1, 0)


async def test_the_scripts_order_counts_and_no_servers_clock(sale: DrivenSale) -> None:
    """A server whose clock is an hour behind, or ahead, moves nobody."""
    await sale.load()
    (first,) = await sale.join("first")
    sale.pass_ms(-3_600_000)
    (second,) = await sale.join("second")
    sale.pass_ms(7_200_000)
    (third,) = await sale.join("third")
    assert [place.position for place in (first, second, third)] == [1, 2, 3]
    assert [place.rank for place in await sale.status("first", "second", "third")] == [0, 1, 2]


async def test_people_of_one_batch_stand_in_the_order_of_the_batch(sale: DrivenSale) -> None:
    await sale.load()
    people = [f"visitor-{n}" for n in range(64)]
    places = await sale.join(*people)
    assert [place.rank for place in places] == list(range(64))
    await sale.tick()
    assert (await sale.figures()).served == 64


async def test_positions_beyond_a_million_stay_exact(sale: DrivenSale) -> None:
    await sale.load()
    await sale.scripts.store.redis.hset(sale.key("ctr"), "seq", "999999")
    places = await sale.join("a", "b", "c")
    assert [place.position for place in places] == [1_000_000, 1_000_001, 1_000_002]
    assert (await sale.figures()).tail == 1_000_002


async def test_a_newcomer_never_passes_somebody_who_waits(sale: DrivenSale) -> None:
    """There is no fast path around the line: whoever is in it goes first (case 6)."""
    await sale.load(cap=1, rate_milli=1_000)
    await sale.join("waits")
    sale.pass_ms(60_000)  # room inside, and a full bucket, but no tick yet
    (newcomer,) = await sale.join("newcomer")
    assert (newcomer.state, newcomer.rank) == (State.WAITING, 1)
    await sale.tick()
    states = [place.state for place in await sale.status("waits", "newcomer")]
    assert states == [State.READY, State.WAITING]


async def test_nobody_gets_a_place_before_opening_or_after_closing(sale: DrivenSale) -> None:
    await sale.load(mode="scheduled")
    for mode, told in (
        ("scheduled", State.NOT_ENTERED),
        ("draining", State.CLOSED),
        ("closed", State.CLOSED),
    ):
        await sale.load(mode=mode)
        (place,) = await sale.join("ann")
        assert (place.state, place.position) == (told, 0)
    assert (await sale.figures()).joined == 0
    for mode in ("open", "paused"):
        await sale.load(mode=mode)
        (place,) = await sale.join(f"comes while {mode}")
        assert place.state is State.WAITING


async def test_leaving_gives_the_place_up_for_good(sale: DrivenSale) -> None:
    await sale.load()
    await sale.join("ann", "bob")
    assert await sale.leave("ann", "ann") == ["LEFT", "NOT_THERE"]
    (ann,) = await sale.join("ann")
    assert (ann.position, ann.rank) == (3, 1)
    assert (await sale.status("bob"))[0].rank == 0
