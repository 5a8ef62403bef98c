"""Coalescing: one caller's fate is never another's."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

import pytest

from fairdrop.batching import Batcher
from fairdrop.errors import Overloaded


class Works:
    """A batch function that records its batches and answers only when the gate is open."""

    def __init__(self, *, open_gate: bool = True) -> None:
        self.batches: list[list[int]] = []
        self.running = 0
        self.most_running = 0
        self.gate = asyncio.Event()
        self.poison: dict[int, Exception] = {}
        self.answer: Callable[[list[int]], Sequence[int | Exception]] = lambda items: [
            10 * item for item in items
        ]
        if open_gate:
            self.gate.set()

    async def __call__(self, items: list[int]) -> Sequence[int | Exception]:
        self.batches.append(list(items))
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await self.gate.wait()
            for item in items:
                if item in self.poison:
                    raise self.poison[item]
            return self.answer(items)
        finally:
            self.running -= 1


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0)


async def outcome(future: Awaitable[int]) -> int | Exception:
    try:
        return await future
    except Exception as error:  # noqa: BLE001 - the test looks at it
        return error


class ItemError(Exception):
    pass


# ---------------------------------------------------------------- coalescing


async def test_a_lone_item_is_dispatched_at_once() -> None:
    works = Works()
    batcher = Batcher("test", works)
    assert await asyncio.wait_for(batcher.submit(1), 1) == 10
    assert works.batches == [[1]]


async def test_items_of_one_turn_of_the_loop_share_a_batch_and_get_their_own_results() -> None:
    works = Works()
    batcher = Batcher("test", works)
    assert await asyncio.gather(*(batcher.submit(n) for n in range(50))) == [
        10 * n for n in range(50)
    ]
    assert works.batches == [list(range(50))]


async def test_items_that_arrive_during_a_batch_form_the_next_one_in_order() -> None:
    works = Works(open_gate=False)
    batcher = Batcher("test", works)
    first = batcher.submit(0)
    await until(lambda: bool(works.batches))
    others = [batcher.submit(n) for n in range(1, 6)]
    assert batcher.waiting == 5
    works.gate.set()
    assert await asyncio.gather(first, *others) == [0, 10, 20, 30, 40, 50]
    assert works.batches == [[0], [1, 2, 3, 4, 5]]
    assert (batcher.batches, batcher.items) == (2, 6)


async def test_no_batch_is_larger_than_the_limit_and_order_is_kept_across_batches() -> None:
    works = Works()
    batcher = Batcher("test", works, max_batch=4)
    await asyncio.gather(*(batcher.submit(n) for n in range(10)))
    assert works.batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


@pytest.mark.parametrize("limit", [1, 2, 3])
async def test_no_more_batches_than_allowed_are_in_flight(limit: int) -> None:
    works = Works(open_gate=False)
    batcher = Batcher("test", works, max_batch=1, max_in_flight=limit)
    futures = [batcher.submit(n) for n in range(7)]
    await until(lambda: works.running == limit)
    for _ in range(20):
        await asyncio.sleep(0)
    assert works.running == limit
    works.gate.set()
    await asyncio.gather(*futures)
    assert works.most_running == limit
    assert sorted(item for batch in works.batches for item in batch) == list(range(7))


async def test_a_lone_item_costs_one_task_however_many_batches_may_be_in_flight() -> None:
    batcher = Batcher("test", Works(), max_in_flight=5)
    loop = asyncio.get_running_loop()
    made: list[object] = []

    def make(
        loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        made.append(work)
        return asyncio.Task(work, loop=loop, **options)

    loop.set_task_factory(make)  # type: ignore[arg-type]  # the protocol names its parameters
    assert await batcher.submit(1) == 10
    assert len(made) == 1


async def test_a_second_batch_leaves_while_the_first_is_in_flight_if_two_may() -> None:
    works = Works(open_gate=False)
    batcher = Batcher("test", works, max_in_flight=2)
    first = batcher.submit(1)
    await until(lambda: works.batches == [[1]])
    second = batcher.submit(2)
    await until(lambda: works.batches == [[1], [2]])
    works.gate.set()
    assert (await first, await second) == (10, 20)


# ---------------------------------------------------------------- back-pressure


async def test_a_full_queue_refuses_at_once_and_serves_those_it_took() -> None:
    works = Works(open_gate=False)
    batcher = Batcher("reserve", works, max_queue=3)
    inside = batcher.submit(0)
    await until(lambda: bool(works.batches))
    queued = [batcher.submit(n) for n in (1, 2, 3)]
    with pytest.raises(Overloaded, match="reserve") as refused:
        batcher.submit(4)
    assert refused.value.retry_after_s == 1
    works.gate.set()
    assert await asyncio.gather(inside, *queued) == [0, 10, 20, 30]
    assert await batcher.submit(5) == 50
    assert [4] not in works.batches


@pytest.mark.parametrize("limit", ["max_batch", "max_queue", "max_in_flight"])
async def test_a_limit_below_one_is_refused(limit: str) -> None:
    limits: dict[str, Any] = {limit: 0}
    with pytest.raises(ValueError, match="at least 1"):
        Batcher("test", Works(), **limits)


# ---------------------------------------------------------------- failure


async def test_a_failed_batch_fails_its_own_items_and_no_others() -> None:
    works = Works(open_gate=False)
    works.poison[1] = ItemError("first batch")
    batcher = Batcher("test", works, max_batch=2)
    futures = [batcher.submit(n) for n in (1, 2, 3, 4)]
    works.gate.set()
    one, two, three, four = await asyncio.gather(*map(outcome, futures))
    assert isinstance(one, ItemError)
    assert isinstance(two, ItemError)
    assert (three, four) == (30, 40)
    assert works.batches == [[1, 2], [3, 4]]


async def test_a_batcher_works_on_after_a_failure() -> None:
    works = Works()
    works.poison[1] = ItemError()
    batcher = Batcher("test", works)
    assert isinstance(await outcome(batcher.submit(1)), ItemError)
    assert await batcher.submit(2) == 20


async def test_a_result_that_is_an_exception_is_raised_to_its_caller_alone() -> None:
    works = Works()
    error = ItemError("sold to somebody else")
    works.answer = lambda items: [error if item == 2 else item for item in items]
    batcher = Batcher("test", works)
    one, two, three = (batcher.submit(n) for n in (1, 2, 3))
    assert (await one, await three) == (1, 3)
    with pytest.raises(ItemError, match="somebody else"):
        await two


@pytest.mark.parametrize("results", [0, 2, 4])
async def test_a_wrong_number_of_results_fails_the_batch_and_crosses_no_answers(
    results: int,
) -> None:
    works = Works()
    works.answer = lambda items: [7] * results
    batcher = Batcher("settle", works)
    came = await asyncio.gather(*(outcome(batcher.submit(n)) for n in (1, 2, 3)))
    assert [type(answer) for answer in came] == [RuntimeError] * 3
    assert "settle" in str(came[0])


async def test_items_are_tried_again_alone_when_one_of_them_may_be_at_fault() -> None:
    works = Works(open_gate=False)
    works.poison[3] = ItemError("poison")
    batcher = Batcher("test", works, retry_singly=(ItemError,))
    futures = [batcher.submit(n) for n in (1, 2, 3, 4)]
    works.gate.set()
    came = await asyncio.gather(*map(outcome, futures))
    assert came == [10, 20, works.poison[3], 40]
    assert works.batches == [[1, 2, 3, 4], [1], [2], [3], [4]]


async def test_only_errors_that_may_be_an_items_fault_are_retried() -> None:
    works = Works()
    works.poison[1] = OSError("the store is gone")
    batcher = Batcher("test", works, retry_singly=(ItemError,))
    came = await asyncio.gather(*(outcome(batcher.submit(n)) for n in (1, 2)))
    assert [type(answer) for answer in came] == [OSError, OSError]
    assert works.batches == [[1, 2]]


async def test_a_lone_poisonous_item_is_not_tried_twice() -> None:
    works = Works()
    works.poison[1] = ItemError()
    batcher = Batcher("test", works, retry_singly=(ItemError,))
    assert isinstance(await outcome(batcher.submit(1)), ItemError)
    assert works.batches == [[1]]


# ---------------------------------------------------------------- callers that go away


async def test_a_caller_that_leaves_a_running_batch_disturbs_nobody() -> None:
    works = Works(open_gate=False)
    batcher = Batcher("test", works)
    callers = [asyncio.ensure_future(batcher.submit(n)) for n in (1, 2, 3)]
    await until(lambda: works.batches == [[1, 2, 3]])
    callers[1].cancel()
    works.gate.set()
    assert (await callers[0], await callers[2]) == (10, 30)
    assert callers[1].cancelled()


async def test_a_caller_that_leaves_the_queue_is_not_worked_for() -> None:
    works = Works(open_gate=False)
    batcher = Batcher("test", works)
    first = batcher.submit(0)
    await until(lambda: bool(works.batches))
    one, two = batcher.submit(1), batcher.submit(2)
    one.cancel()
    works.gate.set()
    assert (await first, await two) == (0, 20)
    assert works.batches == [[0], [2]]


async def test_a_queue_of_callers_who_all_left_makes_no_batch() -> None:
    works = Works(open_gate=False)
    batcher = Batcher("test", works)
    first = batcher.submit(0)
    await until(lambda: bool(works.batches))
    for gone in [batcher.submit(n) for n in (1, 2)]:
        gone.cancel()
    works.gate.set()
    await first
    await until(lambda: batcher.waiting == 0)
    assert works.batches == [[0]]
    assert await batcher.submit(3) == 30


async def test_a_caller_that_leaves_is_not_told_of_a_failure() -> None:
    works = Works(open_gate=False)
    works.poison[1] = ItemError()
    batcher = Batcher("test", works)
    one, two = batcher.submit(1), batcher.submit(2)
    await until(lambda: works.batches == [[1, 2]])
    one.cancel()
    works.gate.set()
    assert isinstance(await outcome(two), ItemError)
    assert one.cancelled()


async def test_a_callers_timeout_ends_its_own_wait_only() -> None:
    works = Works(open_gate=False)
    batcher = Batcher("test", works)
    other = batcher.submit(2)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await batcher.submit(1)
    works.gate.set()
    assert await other == 20


# ---------------------------------------------------------------- the end of the loop


def test_the_end_of_the_loop_leaves_nothing_behind() -> None:
    """A stop in the middle: callers are cancelled, no task survives, no batch starts any more."""
    batches: list[list[int]] = []

    async def never(items: list[int]) -> list[int]:
        batches.append(items)
        await asyncio.Event().wait()
        return items

    async def serve() -> None:
        batcher = Batcher("test", never, max_batch=2)
        for n in range(6):
            asyncio.ensure_future(batcher.submit(n))  # noqa: RUF006 - the batcher holds the future
        callers = [asyncio.create_task(wait_for(batcher, n)) for n in range(6, 9)]
        await until(lambda: bool(batches))
        assert not any(caller.done() for caller in callers)

    async def wait_for(batcher: Batcher[int, int], item: int) -> int:
        return await batcher.submit(item)

    with asyncio.Runner() as runner:
        runner.run(serve())
    gc.collect()  # a task destroyed while pending would be reported here, and fail the test
    assert batches[0] == [0, 1]


async def test_a_cancellation_inside_a_batch_ends_its_own_items_and_no_others() -> None:
    """Say, the batch function awaited something shared that somebody else cancelled."""

    async def run(items: list[int]) -> list[int]:
        if 1 in items:
            raise asyncio.CancelledError
        return items

    batcher = Batcher("test", run, max_batch=1)
    one, two = batcher.submit(1), batcher.submit(2)
    assert await asyncio.wait_for(two, 5) == 2
    assert one.cancelled()
