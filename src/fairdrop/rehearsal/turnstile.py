"""Which of the waiting requests goes next, when the simulator has no connection left.

Real buyers have a computer each. The simulated ones share a process, so its lack of speed must not
look like the buyers': what has a deadline goes before what has none, or a busy simulator would let
its own people miss their calls. Every fourth passage is for those without a deadline, so that they
come in at all.
"""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType

UNHURRIED_EVERY = 4


class Turnstile:
    """Lets at most ``width`` through at one time; of those who wait, mostly hurried ones first."""

    def __init__(self, width: int) -> None:
        """All free."""
        self._free = width
        self._hurried: deque[asyncio.Future[None]] = deque()
        self._unhurried: deque[asyncio.Future[None]] = deque()
        self._passed = 0

    def passage(self, *, hurried: bool) -> Passage:
        """An asynchronous context manager: entered when there is room, left to make room."""
        return Passage(self, hurried=hurried)

    async def enter(self, *, hurried: bool) -> None:
        """Wait for room and take it."""
        if self._free > 0:
            self._free -= 1
            return
        line = self._hurried if hurried else self._unhurried
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
        self._passed += 1
        lines = (self._hurried, self._unhurried)
        for line in lines if self._passed % UNHURRIED_EVERY else reversed(lines):
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
