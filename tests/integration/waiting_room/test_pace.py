"""The pace is a token bucket in the store, and the cap is hard (W8, W9)."""

from __future__ import annotations

import asyncio
import random

import pytest

from fairdrop.drivers.store import Store
from fairdrop.waiting_room import Mode, State, WaitingRoom
from tests.driven_sale import OPENED_MS, DrivenSale


async def crowd(sale: DrivenSale, people: int) -> list[str]:
    visitors = [f"v{n}" for n in range(people)]
    for start in range(0, people, 1_000):
        await sale.join(*visitors[start : start + 1_000])
    return visitors


async def test_time_passed_times_rate_people_are_called(sale: DrivenSale) -> None:
    await sale.load(rate_milli=50_000, cap=100_000)
    await crowd(sale, 1_000)
    assert (await sale.tick()).called == 50  # what a full bucket holds: here one second
    assert (await sale.tick()).called == 0
    sale.pass_ms(100)
    assert (await sale.tick()).called == 5
    sale.pass_ms(19)
    assert (await sale.tick()).called == 0
    sale.pass_ms(1)  # the fraction of the tick before was not lost
    assert (await sale.tick()).called == 1


@pytest.mark.parametrize("rate_milli", [500, 1_000, 1_500, 50_000, 333_333])
async def test_the_pace_is_never_above_the_rate_in_any_span(
    sale: DrivenSale, rate_milli: int
) -> None:
    """In any span the bucket lets its content and the rate times the span through, and no more."""
    await sale.load(rate_milli=rate_milli, cap=1_000_000)
    await crowd(sale, 4_000)
    chance = random.Random(rate_milli)
    calls: list[tuple[int, int]] = []
    for _ in range(60):
        sale.pass_ms(chance.choice((0, 1, 3, 10, 100, 250, 1_000, 4_000)))
        calls.append((sale.now_ms, (await sale.tick(limit=2_000)).called))
    bucket = max(rate_milli, 1_000)
    for first in range(len(calls)):
        inside = 0
        for at_ms, called in calls[first:]:
            inside += called
            allowed_milli = bucket + rate_milli * (at_ms - calls[first][0]) / 1_000
            assert inside * 1_000 <= allowed_milli + 1


@pytest.mark.parametrize("burst_ms", [0, 250, 1_000])
async def test_the_first_second_calls_no_more_than_the_pace_and_the_burst(
    sale: DrivenSale, burst_ms: int
) -> None:
    """Also after a quiet hour, when the bucket is as full as it gets."""
    await sale.load(rate_milli=40_000, burst_ms=burst_ms, cap=100_000)
    await sale.tick()
    sale.pass_ms(3_600_000)
    await crowd(sale, 500)
    called = [(await sale.tick()).called]
    for _ in range(40):
        sale.pass_ms(25)
        called.append((await sale.tick()).called)
    assert called[0] == max(1, 40 * burst_ms // 1_000)
    assert sum(called) == 40 + called[0]


async def test_ticks_on_many_servers_share_one_pace(sale: DrivenSale, store_url: str) -> None:
    await sale.load(rate_milli=20_000, cap=100_000)
    await crowd(sale, 500)
    servers = [Store(store_url, timeout_s=30) for _ in range(8)]
    rooms = [WaitingRoom(store) for store in servers]
    called = 0
    for _ in range(5):
        ticks = [room.tick(sale.ref, now_ms=sale.now_ms) for room in rooms for _ in range(3)]
        called += sum(ticked.called for ticked in await asyncio.gather(*ticks))
        sale.pass_ms(100)
    for store in servers:
        await store.close()
    assert called == 20 + 4 * 2


async def test_a_clock_that_goes_back_gives_no_extra_people(sale: DrivenSale) -> None:
    await sale.load(rate_milli=10_000, cap=100_000)
    await crowd(sale, 200)
    assert (await sale.tick()).called == 10
    sale.pass_ms(-5_000)
    assert (await sale.tick()).called == 0
    sale.pass_ms(5_000)
    assert (await sale.tick()).called == 0
    sale.pass_ms(100)
    assert (await sale.tick()).called == 1


async def test_a_pace_of_zero_calls_nobody(sale: DrivenSale) -> None:
    await sale.load(rate_milli=0)
    await crowd(sale, 5)
    for _ in range(3):
        assert (await sale.tick()).called == 0
        sale.pass_ms(10_000)


async def test_a_pace_set_to_zero_stops_at_once(sale: DrivenSale) -> None:
    await sale.load(rate_milli=1_000, cap=100_000)
    await crowd(sale, 50)
    await sale.tick()
    sale.pass_ms(10_000)
    await sale.load(rate_milli=0)
    assert (await sale.tick()).called == 0


async def test_a_lower_pace_counts_at_once(sale: DrivenSale) -> None:
    """What a quick bucket had saved up is not spent at the slow pace."""
    await sale.load(rate_milli=100_000, cap=100_000, mode="paused")
    await crowd(sale, 200)
    await sale.tick()
    await sale.load(rate_milli=1_000, mode="open")
    assert (await sale.tick()).called == 1


async def test_a_hundred_places_free_and_a_hundred_waiting_take_one_tick(sale: DrivenSale) -> None:
    """Case 7."""
    await sale.load(rate_milli=100_000, cap=100)
    await crowd(sale, 150)
    ticked = await sale.tick()
    assert (ticked.called, ticked.more) == (100, False)
    assert (await sale.figures()).waiting == 50


async def test_called_and_inside_never_exceed_the_cap(sale: DrivenSale) -> None:
    await sale.load(cap=7)
    visitors = await crowd(sale, 40)
    for _ in range(4):
        await sale.tick()
        sale.pass_ms(1_000)
    figures = await sale.figures()
    assert (figures.called, figures.active) == (7, 0)
    await sale.claim(*visitors[:3])
    await sale.tick()
    figures = await sale.figures()
    assert (figures.called, figures.active) == (4, 3)


async def test_a_lower_cap_lets_nobody_in_until_enough_have_gone(sale: DrivenSale) -> None:
    await sale.load(cap=5)
    visitors = await crowd(sale, 20)
    await sale.tick()
    await sale.claim(*visitors[:5])
    await sale.load(cap=3)
    sale.pass_ms(1_000)
    assert (await sale.tick()).called == 0
    await sale.leave(*visitors[:2])
    assert (await sale.tick()).called == 0
    await sale.leave(visitors[2])
    assert (await sale.tick()).called == 1


async def test_the_serving_number_never_passes_the_tail(sale: DrivenSale) -> None:
    """Case 8."""
    await sale.load(cap=1_000)
    for round_ in range(5):
        await sale.join(*(f"{round_}-{n}" for n in range(3)))
        for _ in range(3):
            sale.pass_ms(1_000)
            await sale.tick()
            figures = await sale.figures()
            assert figures.served <= figures.tail
    # Somebody who joins now stands behind the serving number, not in front of it.
    (late,) = await sale.join("late")
    assert late.position > (await sale.figures()).served


async def test_the_limit_of_a_run_is_kept_and_told(sale: DrivenSale) -> None:
    await sale.load(cap=1_000)
    await crowd(sale, 25)
    runs = [await sale.tick(limit=10) for _ in range(3)]
    assert [(run.called, run.more) for run in runs] == [(10, True), (10, True), (5, False)]


@pytest.mark.parametrize("mode", ["scheduled", "lobby", "drawing", "paused", "closed"])
async def test_nobody_is_called_while_the_sale_does_not_run(sale: DrivenSale, mode: str) -> None:
    # Opens in a minute. One person was in the lobby when it shut, and is not drawn yet.
    await sale.load(opens_ms=sale.now_ms + 60_000, lobby_ms=60_000)
    await crowd(sale, 5)
    redis = sale.scripts.store.redis
    if mode == "drawing":
        await redis.hset(sale.key("ctr"), mapping={"drawn": 1, "lobby": 1})
    await redis.hset(sale.key("cfg"), "mode", mode)
    assert (await sale.tick()).called == 0
    assert (await sale.figures()).waiting == 5


async def test_a_draining_sale_serves_those_who_are_in_line(sale: DrivenSale) -> None:
    await sale.load()
    await crowd(sale, 5)
    await sale.load(mode="draining")
    assert (await sale.join("late"))[0].state is State.CLOSED
    assert (await sale.tick()).called == 5


async def test_a_sale_opens_and_closes_by_the_clock(sale: DrivenSale) -> None:
    await sale.load(
        mode="scheduled", opens_ms=OPENED_MS + 1_000, closes_ms=OPENED_MS + 5_000, cap=100
    )
    assert (await sale.tick()).mode is Mode.SCHEDULED
    sale.pass_ms(999)
    assert (await sale.tick()).mode is Mode.SCHEDULED
    sale.pass_ms(1)
    assert (await sale.tick()).mode is Mode.OPEN
    assert (await sale.join("ann"))[0].state is State.WAITING
    sale.pass_ms(3_999)
    assert (await sale.tick()).mode is Mode.OPEN
    sale.pass_ms(1)
    assert (await sale.tick()).mode is Mode.CLOSED
    assert (await sale.status_line("ann")).mode is Mode.CLOSED


async def test_the_measured_pace_follows_the_people_called(sale: DrivenSale) -> None:
    await sale.load(rate_milli=20_000, cap=100_000)
    await crowd(sale, 1_000)
    for _ in range(100):
        sale.pass_ms(100)
        await sale.tick()
    assert (await sale.figures()).measured_milli == pytest.approx(20_000, rel=0.1)
    await sale.load(mode="paused")
    for _ in range(200):
        sale.pass_ms(100)
        await sale.tick()
    assert (await sale.figures()).measured_milli < 100
