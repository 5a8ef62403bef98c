"""People who do not come never hold up those who do (W11; cases 1, 2, 4, 37)."""

from __future__ import annotations

import asyncio
import time

from fairdrop.drivers.store import Store
from fairdrop.waiting_room import State, Ticked, WaitingRoom
from fairdrop.waiting_room.service import TICK_LIMIT
from tests.driven_sale import DrivenSale
from tests.integration.waiting_room.counting import assert_everybody_is_counted_once, place_called


async def test_places_of_those_who_closed_their_browser_go_to_those_behind(
    sale: DrivenSale,
) -> None:
    """Cap 10: 30 join, 10 enter, 11 to 20 are gone, the first ten leave: 21 to 30 get in."""
    await sale.load(cap=10)
    people = [f"v{n}" for n in range(1, 31)]
    await sale.join(*people)
    await sale.tick()
    await sale.claim(*people[:10])
    await sale.leave(*people[:10])
    sale.pass_ms(1_000)
    await sale.tick()
    assert {place.state for place in await sale.status(*people[10:20])} == {State.READY}
    sale.pass_ms(60_000)  # nobody of them claims
    ticked = await sale.tick()
    assert (ticked.missed, ticked.called) == (10, 10)
    claimed = await sale.claim(*people[20:])
    assert {place.state for place in claimed} == {State.ADMITTED}
    await assert_everybody_is_counted_once(sale)


async def test_whoever_missed_the_call_gets_the_old_place_back_at_the_front(
    sale: DrivenSale,
) -> None:
    await sale.load(cap=2)
    await sale.join("a", "b", "c", "d", "e")
    await sale.tick()
    sale.pass_ms(60_000)
    await sale.tick()  # a and b have missed, c and d are called
    assert [place.state for place in await sale.status("a", "b")] == [State.MISSED] * 2
    back = await sale.join("b", "a")
    assert [(place.state, place.position) for place in back] == [
        (State.WAITING, 2),
        (State.WAITING, 1),
    ]
    assert [place.rank for place in await sale.status("a", "b", "e")] == [0, 1, 2]
    await sale.leave("c")
    await sale.tick()
    assert (await sale.status("a"))[0].state is State.READY
    await assert_everybody_is_counted_once(sale)


async def test_coming_back_does_not_pass_the_cap(sale: DrivenSale) -> None:
    await sale.load(cap=1)
    await sale.join("a", "b")
    await sale.tick()
    sale.pass_ms(60_000)
    await sale.tick()
    await sale.join("a")
    sale.pass_ms(10_000)
    await sale.tick()
    states = [place.state for place in await sale.status("a", "b")]
    assert states == [State.WAITING, State.READY]


async def test_coming_back_before_any_sweep_gives_the_old_place_too(sale: DrivenSale) -> None:
    await sale.load(cap=1)
    await sale.join("a", "b")
    await sale.tick()
    sale.pass_ms(60_000)
    (back,) = await sale.join("a")
    assert (back.state, back.position, back.rank) == (State.WAITING, 1, 0)
    await sale.tick()
    assert (await sale.status("a"))[0].state is State.READY
    await assert_everybody_is_counted_once(sale)


async def test_a_claim_after_the_window_does_not_let_in(sale: DrivenSale) -> None:
    await sale.load()
    await sale.join("a", "b")
    await sale.tick()
    sale.pass_ms(59_999)
    assert (await sale.claim("a"))[0].state is State.ADMITTED
    sale.pass_ms(1)
    assert (await sale.claim("b"))[0].state is State.MISSED
    assert (await sale.claim("b"))[0].position == 2
    await sale.tick()
    assert (await sale.claim("b"))[0].state is State.MISSED


async def test_nobody_returns_into_a_closed_sale(sale: DrivenSale) -> None:
    await sale.load()
    await sale.join("a")
    await sale.tick()
    sale.pass_ms(60_000)
    await sale.load(mode="closed")
    assert (await sale.join("a"))[0].state is State.CLOSED
    await assert_everybody_is_counted_once(sale)


async def test_a_lapsed_lease_frees_its_place_in_the_same_tick(sale: DrivenSale) -> None:
    await sale.load(cap=1)
    await sale.admit("a")
    await sale.join("b")
    sale.pass_ms(299_999)
    assert (await sale.tick()).called == 0
    sale.pass_ms(1)
    ticked = await sale.tick()
    assert (ticked.lapsed, ticked.called) == (1, 1)
    await assert_everybody_is_counted_once(sale)


async def test_somebody_whose_lease_lapsed_joins_anew_at_the_end(sale: DrivenSale) -> None:
    await sale.load(cap=1)
    await sale.admit("a")
    await sale.join("b")
    sale.pass_ms(300_000)
    (again,) = await sale.join("a")
    assert (again.state, again.position, again.rank) == (State.WAITING, 3, 1)
    await assert_everybody_is_counted_once(sale)


async def test_nobodys_question_is_refused_while_hundreds_of_calls_run_out(
    sale: DrivenSale, store_url: str
) -> None:
    """300 called people run out at once while others ask (case 4)."""
    await sale.load(cap=300)
    people = [f"v{n}" for n in range(400)]
    await sale.join(*people)
    await sale.tick()
    sale.pass_ms(60_000)
    sweeper, asker = Store(store_url, timeout_s=30), Store(store_url, timeout_s=30)
    sweeping, asking = WaitingRoom(sweeper), WaitingRoom(asker)
    ticks = [sweeping.tick(sale.ref, now_ms=sale.now_ms) for _ in range(5)]
    questions = [asking.status(sale.ref, visitor) for visitor in people]
    ticked, told = await asyncio.gather(
        asyncio.gather(*ticks), asyncio.gather(*questions, return_exceptions=True)
    )
    await sweeper.close()
    await asker.close()
    assert sum(run.missed for run in ticked) == 300
    assert not [answer for answer in told if isinstance(answer, BaseException)]
    await assert_everybody_is_counted_once(sale)


async def answered_s(sale: DrivenSale, store_url: str, run_out: int, limit: int) -> float:
    """How long 400 people who wait are kept waiting for an answer while so many calls run out."""
    await place_called(sale, run_out, deadline_ms=sale.now_ms)
    store = Store(store_url, timeout_s=30)
    asking = WaitingRoom(store)
    await asking.status(sale.ref, "v0")  # connects

    async def sweep() -> None:
        while (await sale.tick(limit=limit)).more:
            pass

    sweeping = asyncio.create_task(sweep())
    began = time.perf_counter()
    await asyncio.gather(*(asking.status(sale.ref, f"v{n}") for n in range(400)))
    took = time.perf_counter() - began
    await sweeping
    await store.close()
    sale.pass_ms(1)
    return took


async def test_nobodys_question_takes_longer_the_more_calls_run_out(
    sale: DrivenSale, store_url: str
) -> None:
    """Case 4: fifty times as many deadlines at once, and answers come about as quickly.

    The control sweeps in large steps, which must be seen to keep those who ask waiting. The quickest
    of some rounds each, in turn: whatever else the machine does only adds.
    """
    await sale.load(cap=0)
    await sale.join(*(f"v{n}" for n in range(400)))
    few, many, large_steps = [], [], []
    for _ in range(4):
        few.append(await answered_s(sale, store_url, 300, TICK_LIMIT))
        many.append(await answered_s(sale, store_url, 15_000, TICK_LIMIT))
        large_steps.append(await answered_s(sale, store_url, 15_000, 3_900))
    assert min(many) < 3 * min(few)
    assert min(large_steps) > 2 * min(many), "the control has to see the wait"


async def test_any_number_of_passed_deadlines_is_cleaned_in_bounded_steps(
    sale: DrivenSale,
) -> None:
    """Twenty thousand at once: each run moves at most its limit, and says that there is more.

    What one run costs the store in time is the business of a benchmark (case 37).
    """
    await sale.load(cap=1)
    await place_called(sale, 20_000, deadline_ms=sale.now_ms)
    runs: list[Ticked] = []
    while not runs or runs[-1].more:
        runs.append(await sale.tick(limit=500))
        assert runs[-1].missed <= 500
    assert sum(run.missed for run in runs) == 20_000
    assert len(runs) <= 20_000 // 500 + 1
    figures = await sale.figures()
    assert (figures.called, figures.missed) == (0, 20_000)
