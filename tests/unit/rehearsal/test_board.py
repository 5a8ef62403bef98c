"""The board: one document for the whole crowd, and who is told what of it."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from yarl import URL

from fairdrop.rehearsal.board import NOTICED_BY, Board, Document, Variant
from fairdrop.rehearsal.client import Client


def board() -> Board:
    return Board(Client(), URL("http://localhost/"), seed=1)


def document(
    *stock: tuple[int, int, int], served: int = 0, tail: int = 100, mode: str = "open"
) -> Document:
    """A document whose variants have (free, held, sold) units."""
    return Document(
        id="sale",
        mode=mode,
        served=served,
        tail=tail,
        waiting=0,
        called=0,
        inside=0,
        measured_rate_per_s=0,
        server_time_ms=0,
        variants=tuple(
            Variant(str(number), 100, sum(units), held=units[1], sold=units[2], free=units[0])
            for number, units in enumerate(stock or [(5, 0, 0)])
        ),
    )


async def waits(*waiting: Coroutine[Any, Any, bool]) -> list[asyncio.Task[bool]]:
    """The calls, started and waiting."""
    tasks = [asyncio.create_task(each) for each in waiting]
    await asyncio.sleep(0)
    return tasks


async def told(tasks: list[asyncio.Task[bool]]) -> list[bool | None]:
    """What each waiting call has been told; None: nothing yet."""
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return [task.result() if task.done() else None for task in tasks]


async def test_people_are_called_by_subtraction_alone() -> None:
    shown = board()
    tasks = await waits(*(shown.turn(position, (0,)) for position in (3, 1, 2)))
    shown.show(document(served=2))
    assert await told(tasks) == [None, True, True]
    shown.show(document(served=3))
    assert await told(tasks) == [True, True, True]


async def test_whoever_has_been_served_already_does_not_wait() -> None:
    shown = board()
    shown.show(document(served=9))
    assert await shown.turn(9, (0,)) is True


async def test_a_line_that_the_store_has_lost_makes_everybody_ask() -> None:
    shown = board()
    shown.show(document(served=50, tail=80))
    tasks = await waits(shown.turn(60, (0,)), shown.turn(80, (0,)))
    assert await told(tasks) == [None, None]
    shown.show(document(served=0, tail=0))
    assert await told(tasks) == [True, True]
    assert shown.has_lost_line


async def test_sold_means_that_nobody_waits_for_it_any_more() -> None:
    shown = board()
    shown.show(document((0, 1, 4), (0, 1, 4)))
    tasks = await waits(
        shown.turn(50, (0,)), shown.turn(50, (0, 1)), shown.stock((0,), 1), shown.stock((1, 0), 1)
    )
    shown.show(document((0, 0, 5), (0, 1, 4)))
    assert await told(tasks) == [False, None, False, None]
    assert await shown.turn(50, (0,)) is False
    assert await shown.stock((0,), 1) is False
    shown.show(document((0, 0, 5), (0, 0, 5)))
    assert await told(tasks) == [False, False, False, False]


async def test_held_units_are_not_sold_and_keep_people_waiting() -> None:
    shown = board()
    tasks = await waits(shown.stock((0,), 1))
    shown.show(document((0, 5, 0)))
    assert await told(tasks) == [None]


async def test_a_unit_that_comes_back_is_noticed_by_a_few() -> None:
    shown = board()
    tasks = await waits(*(shown.stock((0,), 1) for _ in range(20)))
    shown.show(document((1, 4, 0)))
    answers = await told(tasks)
    assert answers.count(True) == NOTICED_BY
    assert answers.count(None) == 20 - NOTICED_BY


async def test_only_those_who_want_it_and_enough_of_it_are_told() -> None:
    shown = board()
    tasks = await waits(shown.stock((1,), 1), shown.stock((0,), 3), shown.stock((0,), 2))
    shown.show(document((2, 3, 0), (0, 5, 0)))
    assert await told(tasks) == [None, None, True]
    shown.show(document((3, 2, 0), (1, 4, 0)))
    assert await told(tasks) == [True, True, True]


async def test_somebody_who_stopped_waiting_is_passed_over() -> None:
    shown = board()
    tasks = await waits(shown.stock((0,), 1), shown.turn(1, (0,)))
    for task in tasks:
        task.cancel()
    await asyncio.sleep(0)
    shown.show(document((1, 4, 0), served=5))
    shown.show(document((0, 0, 5), served=5))


async def test_the_dearest_wish_with_enough_units_is_found() -> None:
    shown = board()
    assert shown.find((0, 1), 2, 1, among={0, 1}) is None
    shown.show(document((0, 5, 0), (1, 4, 0), (3, 2, 0)))
    assert shown.find((0, 1, 2), 2, 1, among={0, 1, 2}) == (1, 1)
    assert shown.find((0, 1, 2), 2, 2, among={0, 1, 2}) == (2, 2)
    assert shown.find((0, 1, 2), 2, 1, among={0, 2}) == (2, 2)
    assert shown.find((0,), 2, 1, among={0}) is None


async def test_people_who_come_early_wait_for_the_opening() -> None:
    shown = board()
    waiting = asyncio.create_task(shown.opened())
    shown.show(document(mode="scheduled"))
    await asyncio.sleep(0)
    assert not waiting.done()
    shown.show(document(mode="open"))
    await waiting
