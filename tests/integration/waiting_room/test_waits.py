"""The wait that people are told comes from what was measured, and does not rise by chance (W5)."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from fairdrop.waiting_room import wait_range_s
from tests.driven_sale import DrivenSale


async def crowd(sale: DrivenSale, people: int) -> None:
    for first in range(0, people, 1_000):
        await sale.join(*(f"v{n}" for n in range(first, first + 1_000)))


async def outflow(sale: DrivenSale) -> int:
    return (await sale.status_line("v0")).outflow_milli


async def test_before_anything_was_measured_the_set_pace_counts(sale: DrivenSale) -> None:
    await sale.load(rate_milli=20_000, cap=100_000)
    await crowd(sale, 1_000)
    assert await outflow(sale) == -1
    assert wait_range_s(999, await outflow(sale), 20_000) == (40, 67)


async def test_the_outflow_is_that_of_the_line_and_not_of_the_first_burst(sale: DrivenSale) -> None:
    await sale.load(rate_milli=40_000, burst_ms=1_000, cap=100_000)
    await crowd(sale, 2_000)
    for _ in range(30):
        await sale.tick()
        sale.pass_ms(100)
    assert await outflow(sale) == pytest.approx(40_000, rel=0.05)


@pytest.mark.parametrize("seed", [1, 2])
async def test_while_people_leave_at_random_nobodys_wait_rises(sale: DrivenSale, seed: int) -> None:
    """The cap holds the line up, so people are called as others leave: at 20 a second, by chance."""
    await sale.load(rate_milli=1_000_000, cap=200)
    await crowd(sale, 4_000)
    await sale.tick()
    chance = random.Random(seed)
    inside, last = list(range(200)), "v3999"
    told: list[tuple[int, int]] = []
    for _ in range(300):
        sale.pass_ms(100)
        leaving = sum(chance.random() < 0.02 for _ in range(100))
        gone = [inside.pop(chance.randrange(len(inside))) for _ in range(leaving)]
        if gone:
            await sale.leave(*(f"v{number}" for number in gone))
        called = (await sale.tick()).called
        newest = 4_000 - (await sale.figures()).waiting
        inside += range(newest - called, newest)
        line = await sale.status_line(last)
        if line.outflow_milli >= 0:
            wait = wait_range_s(line.places[0].rank, line.outflow_milli, 0)
            assert wait is not None
            told.append(wait)
    rises = [later[1] - earlier[1] for earlier, later in pairwise(told)]
    assert len([rise for rise in rises if rise > 0]) <= 1
    assert told[-1][0] <= told[0][0]


async def test_a_line_that_slows_down_is_told_as_slower_within_seconds(sale: DrivenSale) -> None:
    await sale.load(rate_milli=50_000, cap=100_000)
    await crowd(sale, 3_000)
    for _ in range(100):
        sale.pass_ms(100)
        await sale.tick()
    assert await outflow(sale) == pytest.approx(50_000, rel=0.05)
    await sale.load(rate_milli=5_000)
    for _ in range(60):
        sale.pass_ms(100)
        await sale.tick()
    assert await outflow(sale) < 10_000


async def test_a_pause_is_no_slow_line(sale: DrivenSale) -> None:
    await sale.load(rate_milli=50_000, cap=100_000)
    await crowd(sale, 3_000)
    for mode in ("open", "paused", "open"):
        await sale.load(mode=mode)
        for _ in range(40):
            sale.pass_ms(500)
            await sale.tick()
            if await outflow(sale) >= 0:
                assert await outflow(sale) == pytest.approx(50_000, rel=0.05)
            if (await sale.figures()).waiting < 500:
                break
