"""Which of the waiting requests goes next, when the simulator has no connection left.

Real buyers have a computer each. The simulated ones share a process, so its lack of speed must not
look like the buyers': what has a deadline goes before what has none, or a busy simulator would let
its own people miss their calls.
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType


class Turnstile:
    """Lets at most ``width`` through at one time; of those who wait, hurried ones first."""

    def __init__(self, width: int) -> None:
        """All free."""
        self._free = width
        self._waiting: tuple[deque[asyncio.Future[None]], ...] = (deque(), deque())

    def passage(self, *, hurried: bool) -> Passage:
        """An asynchronous context manager: entered when there is room, left to make room."""
        return Passage(self, hurried=hurried)

    async def enter(self, *, hurried: bool) -> None:
        """Wait for room and take it."""
        if self._free > 0:
            self._free -= 1
            return
        line = self._waiting[0 if hurried else 1]
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()  # the room was given at the same moment
            raise

    def leave(self) -> None:
        """Make room, or hand it to the next."""
        for line in self._waiting:
            while line:
                turn = line.popleft()
                if not turn.done():
                    turn.set_result(None)
                    return
        self._free += 1


class Passage:
    """One way through a turnstile."""

    __slots__ = ("_hurried", "_turnstile")

    def __init__(self, turnstile: Turnstile, *, hurried: bool) -> None:
        """Not entered yet."""
        self._turnstile = turnstile
        self._hurried = hurried

    async def __aenter__(self) -> None:
        """Wait for room."""
        await self._turnstile.enter(hurried=self._hurried)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Make room."""
        self._turnstile.leave()
