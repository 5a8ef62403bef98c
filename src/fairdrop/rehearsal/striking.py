"""Carrying a round's blows out on a running site, and saying what came of each."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from fairdrop import faults

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fairdrop.site import Site

    from .schedule import Blow

BACK_WITHIN_S = 60.0
_POLL_S = 0.05


class Striker:
    """Strikes one round. ``struck`` says, in words, what came of each blow so far."""

    def __init__(self, site: Site, directory: Path, tell: Callable[[str], None]) -> None:
        """``directory`` is where the site's processes look for armed points."""
        self._site = site
        self._directory = directory
        self._tell = tell
        self.struck: list[str] = []
        self.deaths = 0
        """Processes that died at points."""

    async def strike(self, blows: Sequence[Blow], opens_in_s: float) -> None:
        """Each blow at its time; those of a process that is down wait until it is back."""
        clock = asyncio.get_running_loop().time
        opened_at = clock() + opens_in_s
        for blow in blows:
            await asyncio.sleep(max(0.0, opened_at + blow.at_ms / 1_000 - clock()))
            if blow.target is not None:
                await self._kill(blow.target)
            elif blow.point is not None:
                self._note_death(blow.point)
                faults.arm(self._directory, blow.point, passing=blow.passing)
            self._say(f"{clock() - opened_at:6.2f} s  {blow.words}")

    async def calm(self) -> None:
        """Nothing more is to die; wait until everything runs again.

        Raises TimeoutError when something does not come back.
        """
        for point in faults.disarm(self._directory):
            self._say(f"          nobody came to {point} (often enough)")
        for point in faults.Point:
            self._note_death(point)
        async with asyncio.timeout(BACK_WITHIN_S):
            for name in self._site.supervisor.names:
                await self._site.supervisor.wait_ready(name)

    def _note_death(self, point: faults.Point) -> None:
        pid = faults.died(self._directory, point, forget=True)
        if pid is not None:
            self.deaths += 1
            self._say(f"          process {pid} died at {point}")

    async def _kill(self, name: str) -> None:
        supervisor = self._site.supervisor
        async with asyncio.timeout(BACK_WITHIN_S):
            while (pid := supervisor.pid_of(name)) is None:  # noqa: ASYNC110 - no event to wait for
                await asyncio.sleep(_POLL_S)
        with suppress(ProcessLookupError):  # it has just died of something else
            os.kill(pid, signal.SIGKILL)

    def _say(self, words: str) -> None:
        self.struck.append(words.strip())
        self._tell(words)
