"""One run of a child process: start, wait, signal, kill.

asyncio's own subprocesses are not used, because they depend on the loop (uvloop forks in C, the
standard loop of Python 3.11 needs a thread for each child) and on the child watcher of the main
thread. A Popen object and a process file descriptor work the same in all of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from fairdrop.embedded.parent_death import mortal_command
from fairdrop.embedded.system_user import SystemUser

LOGS_KEPT = 3
"""How many logs of earlier runs are kept: name.log.1 (the last one) to name.log.3."""

_POLL_S = 0.02
_TAIL_BYTES = 4_000


class Process:
    """A running child, in a session of its own, that dies with this process.

    The session is its own so that a Ctrl-C in the terminal reaches the supervisor alone.
    """

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen = popen
        self._exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._poller: asyncio.Task[None] | None = None
        self._watch_exit()

    @classmethod
    def start(  # noqa: PLR0913 - what a process is made of
        cls,
        argv: Sequence[str],
        *,
        log_path: Path,
        env: Mapping[str, str],
        cwd: Path | None = None,
        death_signal: signal.Signals = signal.SIGTERM,
        user: SystemUser | None = None,
    ) -> Self:
        """Start ``argv``, its output appended to ``log_path``. Costs some 2 ms of the loop.

        Call it from a thread that outlives the child. A program that cannot be run shows as an
        exit with 127 and a line in the log.
        """
        with log_path.open("ab") as log:
            popen = subprocess.Popen(
                mortal_command(argv, death_signal, user=user),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=dict(env),
                start_new_session=True,
            )
        return cls(popen)

    @property
    def pid(self) -> int:
        """The process id, which is its session's and process group's id too."""
        return self._popen.pid

    @property
    def exit_status(self) -> int | None:
        """None while it runs; then its status, negative for the signal that killed it."""
        return self._exited.result() if self._exited.done() else None

    async def wait(self) -> int:
        """Wait for the end and return the exit status. Any number of tasks may wait."""
        return await asyncio.shield(self._exited)

    def send_signal(self, number: signal.Signals) -> None:
        """Send ``number`` to the process itself, if it still runs."""
        with contextlib.suppress(ProcessLookupError):
            self._popen.send_signal(number)

    async def stop(self, number: signal.Signals, timeout_s: float) -> int:
        """Send ``number``, wait ``timeout_s`` at most, then kill the process group; exit status."""
        self.send_signal(number)
        try:
            async with asyncio.timeout(timeout_s):
                return await self.wait()
        except TimeoutError:
            return await self.kill()

    async def kill(self) -> int:
        """SIGKILL the whole process group and wait for the process."""
        if self.exit_status is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        return await self.wait()

    def _watch_exit(self) -> None:
        try:
            descriptor = os.pidfd_open(self.pid)
        except (AttributeError, OSError):  # not Linux, or a sandbox without it
            self._poller = asyncio.create_task(self._poll(), name=f"exit of {self.pid}")
            return
        loop = asyncio.get_running_loop()

        def exited() -> None:
            loop.remove_reader(descriptor)
            os.close(descriptor)
            self._exited.set_result(self._popen.wait())

        loop.add_reader(descriptor, exited)

    async def _poll(self) -> None:
        while (status := self._popen.poll()) is None:  # noqa: ASYNC110 - where no event tells
            await asyncio.sleep(_POLL_S)
        self._exited.set_result(status)


def rotate_log(path: Path, kept: int = LOGS_KEPT) -> None:
    """Move ``path`` to ``path.1``, that to ``path.2`` and so on; drop the one after ``kept``."""
    names = [path, *(path.with_name(f"{path.name}.{number}") for number in range(1, kept + 1))]
    for newer, older in reversed(list(itertools.pairwise(names))):
        with contextlib.suppress(FileNotFoundError):
            newer.replace(older)


def log_tail(path: Path, lines: int = 20) -> str:
    """The last ``lines`` of a log, for an error message."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            text = log.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
