"""Coalescing: requests that arrive while a batch is in flight form the next batch.

This is the group commit of databases, applied to every hot step. A lone request is dispatched at
once; under load each round trip carries as many items as arrived during the one before, so the
fixed cost of a call (parsing, syscalls, fsync, commit) is shared and no timer adds delay.

Promises:

- the caller that goes away (is cancelled) never disturbs the others of its batch;
- a batch that fails fails its own items only; where an error may be one item's fault
  (``retry_singly``), each item is tried again alone, so that it fails alone;
- a batch has at most ``max_batch`` items, and at most ``max_queue`` items wait; beyond that
  :class:`~fairdrop.errors.Overloaded` is raised at once, which the web layer answers with 503.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from .errors import Overloaded

Item = TypeVar("Item")
Result = TypeVar("Result")


class Batcher(Generic[Item, Result]):
    """Coalesces calls of :meth:`submit` into calls of one batch function.

    ``run`` takes up to ``max_batch`` items and returns one result an item, in order. A result that
    is an ``Exception`` instance is raised to that item's caller alone.
    """

    def __init__(  # noqa: PLR0913 - each is an independent limit, all but two have defaults
        self,
        name: str,
        run: Callable[[list[Item]], Awaitable[Sequence[Result | Exception]]],
        *,
        max_batch: int = 64,
        max_queue: int = 20_000,
        max_in_flight: int = 1,
        retry_singly: tuple[type[Exception], ...] = (),
    ) -> None:
        """Make a batcher; it needs no start and no stop, only a running loop at ``submit``."""
        if max_batch < 1 or max_queue < 1 or max_in_flight < 1:
            raise ValueError("the limits of a batcher are at least 1")
        self.name = name
        self._run = run
        self._max_batch = max_batch
        self._max_queue = max_queue
        self._max_in_flight = max_in_flight
        self._retry_singly = retry_singly
        self._queue: deque[tuple[Item, asyncio.Future[Result]]] = deque()
        self._in_flight = 0
        self._wake_scheduled = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.batches = 0
        self.items = 0

    @property
    def waiting(self) -> int:
        """Items that wait for a batch to form."""
        return len(self._queue)

    def submit(self, item: Item) -> asyncio.Future[Result]:
        """Queue the item; the future resolves to its result.

        Raises Overloaded when the queue is full. Cost: one append and one future.
        """
        if len(self._queue) >= self._max_queue:
            raise Overloaded(self.name)
        loop = self._loop
        if loop is None or loop.is_closed():
            # Remembered: finding the running loop asks the system for the process each time.
            loop = self._loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        self._queue.append((item, future))
        if not self._wake_scheduled and self._in_flight < self._max_in_flight:
            # Deferred by one turn of the loop, so that requests read in the same turn share a batch.
            self._wake_scheduled = True
            loop.call_soon(self._wake)
        return future

    def _wake(self) -> None:
        self._wake_scheduled = False
        # As many tasks as there are batches to make: a lone item does not pay for a second one.
        batches = -(-len(self._queue) // self._max_batch)
        for _ in range(min(batches, self._max_in_flight - self._in_flight)):
            self._in_flight += 1
            # The batch belongs to nobody's request: a task of its own, which no caller can cancel.
            task = asyncio.get_running_loop().create_task(self._drain())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _drain(self) -> None:
        try:
            while self._queue:
                batch = self._take()
                if batch:
                    self.batches += 1
                    self.items += len(batch)
                    await self._settle(batch)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                # The loop is about to end: a new batch would be born into it and never finish.
                while self._queue:
                    self._queue.popleft()[1].cancel()
            raise
        finally:
            self._in_flight -= 1
            if self._queue and not self._wake_scheduled:
                self._wake_scheduled = True
                asyncio.get_running_loop().call_soon(self._wake)

    def _take(self) -> list[tuple[Item, asyncio.Future[Result]]]:
        queue = self._queue
        batch: list[tuple[Item, asyncio.Future[Result]]] = []
        while queue and len(batch) < self._max_batch:
            entry = queue.popleft()
            if not entry[1].done():  # a caller that has gone needs no work done
                batch.append(entry)
        return batch

    async def _settle(self, batch: list[tuple[Item, asyncio.Future[Result]]]) -> None:
        try:
            results = await self._run([item for item, _ in batch])
            if len(results) != len(batch):
                raise RuntimeError(f"{self.name}: {len(results)} results for {len(batch)} items")
        except self._retry_singly as error:
            if len(batch) == 1:
                _fail(batch[0][1], error)
            else:
                for entry in batch:
                    await self._settle([entry])
            return
        except Exception as error:  # noqa: BLE001 - whatever it was, its callers must hear of it
            for _, future in batch:
                _fail(future, error)
            return
        except BaseException:
            for _, future in batch:
                future.cancel()
            raise
        for (_, future), result in zip(batch, results, strict=True):
            if isinstance(result, Exception):
                _fail(future, result)
            elif not future.done():
                future.set_result(result)


def _fail(future: asyncio.Future[Result], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
