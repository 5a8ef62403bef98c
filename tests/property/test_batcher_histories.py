"""Whatever arrives, fails or goes away, in whatever order: nobody waits for ever, nothing is lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fairdrop.batching import Batcher
from fairdrop.errors import Overloaded
from tests.property.searching import histories, pick

steps = st.one_of(
    st.tuples(st.just("submit"), st.integers(1, 7)),
    st.tuples(st.just("submit"), st.integers(1, 7)),
    st.tuples(st.just("turn"), st.integers(1, 3)),
    st.tuples(st.just("answer"), st.integers(0, 9)),
    st.tuples(st.just("fail"), st.integers(0, 9)),
    st.tuples(st.just("break off"), st.integers(0, 9)),
    st.tuples(st.just("leave"), st.integers(0, 99)),
)


class Crowd:
    """Callers of one batcher whose batches end when the history says so."""

    def __init__(self, max_batch: int, max_in_flight: int) -> None:
        self.batcher: Batcher[int, int] = Batcher(
            "test", self.run, max_batch=max_batch, max_queue=10, max_in_flight=max_in_flight
        )
        self.limits = max_batch, max_in_flight
        self.callers: dict[int, asyncio.Future[int]] = {}
        self.worked: Counter[int] = Counter()
        self.running: list[asyncio.Future[None]] = []

    async def run(self, items: list[int]) -> list[int]:
        assert 1 <= len(items) <= self.limits[0]
        assert len(self.running) < self.limits[1]
        assert items == sorted(items), "a batch keeps the order of arrival"
        self.worked.update(items)
        end = asyncio.get_running_loop().create_future()
        self.running.append(end)
        try:
            await end
        finally:
            self.running.remove(end)
        return [-item for item in items]

    async def step(self, kind: str, what: int) -> None:
        if kind == "submit":
            for _ in range(what):
                number = len(self.callers)
                try:
                    self.callers[number] = self.batcher.submit(number)
                except Overloaded:
                    assert self.batcher.waiting == 10
        elif kind == "turn":
            for _ in range(what):
                await asyncio.sleep(0)
        elif kind == "leave":
            for caller in pick(list(self.callers.values()), what):
                caller.cancel()
        else:
            for end in pick([end for end in self.running if not end.done()], what):
                _end(end, kind)

    async def until_everybody_has_an_answer(self) -> None:
        async with asyncio.timeout(5):
            while not all(caller.done() for caller in self.callers.values()):
                for end in self.running:
                    if not end.done():
                        _end(end, "answer")
                await asyncio.sleep(0)


def _end(end: asyncio.Future[None], kind: str) -> None:
    if kind == "answer":
        end.set_result(None)
    elif kind == "fail":
        end.set_exception(OSError("gone"))
    else:
        end.set_exception(asyncio.CancelledError())


@settings(max_examples=150)
@given(max_batch=st.integers(1, 4), max_in_flight=st.integers(1, 3), history=histories(steps, 30))
async def test_every_caller_gets_an_answer_of_their_own_or_an_error(
    max_batch: int, max_in_flight: int, history: list[tuple[str, Any]]
) -> None:
    crowd = Crowd(max_batch, max_in_flight)
    for kind, what in history:
        await crowd.step(kind, what)
    await crowd.until_everybody_has_an_answer()
    assert crowd.batcher.waiting == 0
    for number, caller in crowd.callers.items():
        if caller.cancelled():
            continue
        error = caller.exception()
        assert isinstance(error, OSError) if error else caller.result() == -number
        assert crowd.worked[number] == 1
