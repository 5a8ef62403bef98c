"""Waiting for a condition, never for a time; and looking at processes."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import psutil

T = TypeVar("T")


def eventually(condition: Callable[[], T], what: str, timeout_s: float = 60.0) -> T:
    """The first true value of ``condition``; fails, naming ``what``, if there is none in time."""
    deadline = time.monotonic() + timeout_s
    while True:
        if value := condition():
            return value
        assert time.monotonic() < deadline, f"not within {timeout_s:g} s: {what}"
        time.sleep(0.01)


def family(pid: int) -> list[psutil.Process]:
    """Everything that ``pid`` has started and that still runs, at any depth."""
    found: list[psutil.Process] = psutil.Process(pid).children(recursive=True)
    return found


def runs(process: psutil.Process) -> bool:
    """Whether the very process still runs (a zombie does not, nor another one with its pid)."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def all_gone(processes: list[psutil.Process]) -> Callable[[], bool]:
    """The condition that none of ``processes`` runs."""
    return lambda: not any(map(runs, processes))


def signals_ignored_by(pid: int) -> set[signal.Signals]:
    """The signals that the kernel would throw away if they were sent to ``pid``."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("SigIgn:"):
            mask = int(line.split()[1], 16)
            return {number for number in signal.Signals if mask >> (number - 1) & 1}
    raise AssertionError(f"the kernel tells nothing about the signals of {pid}")
