"""Finding and ending what a child left behind, also when its own parent is long gone.

A process belongs to a child of ours if one of these holds:

- It carries our mark in its environment, which every descendant inherits: :data:`MARK` =
  ``<name of the child>@<identity of the supervisor>``. So the children of a run that was killed
  are found by the next one.
- It is in the session that the child leads.
- It is the child's program, working in the child's home directory. Backends of PostgreSQL need
  this: they start sessions of their own and write over their environment.

No pid is remembered across runs, so a pid that was given to somebody else does no harm.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

MARK = "FAIRDROP_SUPERVISED"
"""The environment variable that tells whose descendant a process is."""

_POLL_S = 0.01


@dataclass(frozen=True, slots=True)
class Traces:
    """By what the processes of one child are known; without a name, of all of a supervisor's."""

    identity: str
    name: str | None = None
    program: str | None = None
    home: Path | None = None
    session_id: int | None = None

    def __str__(self) -> str:
        return f"{self.name}@{self.identity}"

    def marks(self, mark: str) -> bool:
        """Whether ``mark`` is the one that this child's descendants carry."""
        name, _, identity = mark.partition("@")
        return identity == self.identity and self.name in (None, name)


async def kill_leftovers(traces: Sequence[Traces], *, timeout_s: float = 5.0) -> int:
    """SIGKILL every process that ``traces`` show, wait until they are gone, return how many.

    Looks again until there are none, so a process that forks while it is being killed does not
    escape. Raises TimeoutError if some are still there after ``timeout_s`` (a process stuck in the
    kernel). This process and those above it are never touched. A look holds the loop for about
    50 µs for each process on the machine.
    """
    killed: set[int] = set()
    async with asyncio.timeout(timeout_s):
        while found := find_leftovers(traces):
            for process in found:
                with contextlib.suppress(psutil.Error):
                    process.send_signal(signal.SIGKILL)
                killed.add(process.pid)
            while any(map(_lives, found)):  # noqa: ASYNC110 - no event tells of a stranger's end
                await asyncio.sleep(_POLL_S)
    return len(killed)


def find_leftovers(traces: Sequence[Traces]) -> list[psutil.Process]:
    """The living processes that one of ``traces`` shows, this process's own line excepted."""
    me = psutil.Process()
    spared = {me.pid, *(parent.pid for parent in me.parents())}
    found = []
    for pid in psutil.pids():
        if pid in spared:
            continue
        with contextlib.suppress(psutil.Error, OSError):  # gone meanwhile, or not ours to see
            process = psutil.Process(pid)
            if _belongs(process, traces) and _lives(process):
                found.append(process)
    return found


def _belongs(process: psutil.Process, traces: Sequence[Traces]) -> bool:
    session_id = os.getsid(process.pid)
    if any(each.session_id == session_id for each in traces):
        return True
    name = process.name()
    if any(each.home and each.program == name and _works_in(process, each.home) for each in traces):
        return True
    mark = process.environ().get(MARK, "")
    return any(each.marks(mark) for each in traces)


def _works_in(process: psutil.Process, home: Path) -> bool:
    link = Path(f"/proc/{process.pid}/cwd")
    if link.is_symlink():
        return link.samefile(home)  # not by path: containers have directories of the same name
    return Path(process.cwd()) == home


def _lives(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    return False
