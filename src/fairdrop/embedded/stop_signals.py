"""SIGINT, SIGTERM and SIGHUP as an orderly end of the task that runs everything."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from types import TracebackType
from typing import Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StopSignals:
    """Ends the block it surrounds, early but in order, when the process is told to stop.

    ::

        async with StopSignals() as signals:
            async with EmbeddedServices(directory) as services:
                ...                      # start-up too may be interrupted
                await signals.wait()     # or work; a signal ends either
        print("stopped by", signals.received)

    The first signal cancels the task inside the block; the block's own context managers clean up,
    and the cancellation ends at this one, with ``received`` set. Further signals change nothing, so
    that an impatient second Ctrl-C cannot cut the clean-up short. A SIGHUP that the process was
    told to ignore (nohup) stays ignored. Only for the main thread; one at a time.
    """

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._task: asyncio.Task[object] | None = None
        self._handled: list[signal.Signals] = []

    async def __aenter__(self) -> Self:
        """Take over the signals from here on."""
        loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        for number in _SIGNALS:
            if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
                continue
            loop.add_signal_handler(number, self._receive, number)
            self._handled.append(number)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """Give the signals back; swallow the cancellation if it was ours."""
        loop = asyncio.get_running_loop()
        for number in self._handled:
            loop.remove_signal_handler(number)
        if self.received is None or self._task is None:
            return False
        if kind is not asyncio.CancelledError:
            # The signal may have come when the block was through: take the cancellation here.
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        remaining = self._task.uncancel()
        return remaining == 0 and kind is asyncio.CancelledError

    async def wait(self) -> None:
        """Wait for a signal, that is: until the block is ended."""
        await asyncio.get_running_loop().create_future()

    def _receive(self, number: signal.Signals) -> None:
        if self.received is None and self._task is not None:
            self.received = number
            self._task.cancel()
