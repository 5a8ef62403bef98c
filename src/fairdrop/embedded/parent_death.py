"""Children that die with their parent, however the parent dies.

On Linux the kernel does it (``PR_SET_PDEATHSIG``), also after ``kill -9`` of the parent. Two traps
come with it, and both are the caller's business:

- The signal comes when the *thread* that forked the child ends, not the process. Start children
  from the main thread, or from a thread that lives as long as they should.
- Only the direct child is told. A child with children of its own passes it on, or its children
  call :func:`die_with_parent` themselves.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from fairdrop.embedded import launch
from fairdrop.embedded.system_user import SystemUser

_POLL_S = 0.2


def die_with_parent(
    number: signal.Signals = signal.SIGTERM, *, parent_pid: int | None = None
) -> None:
    """Have this process receive ``number`` when the process that started it is gone.

    Call it early in a child written in Python, from any thread. ``parent_pid`` is the process that
    is expected to be the parent, where the child knows it: if somebody else is the parent already,
    the signal is sent at once. Without it, only a parent that dies during the call is noticed.

    Costs one system call on Linux; elsewhere a daemon thread that looks every 200 ms.
    """
    expected_pid = os.getppid() if parent_pid is None else parent_pid
    if not launch.set_death_signal(number):
        watch_parent(number, expected_pid)
        return
    if os.getppid() != expected_pid:
        os.kill(os.getpid(), number)


def watch_parent(
    number: signal.Signals, parent_pid: int, *, poll_s: float = _POLL_S
) -> threading.Thread:
    """Start the thread that stands in for the kernel's death signal, and return it.

    It compares ``os.getppid()`` with ``parent_pid`` every ``poll_s`` seconds and sends this process
    ``number`` once they differ.
    """

    def look() -> None:
        while os.getppid() == parent_pid:
            time.sleep(poll_s)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=look, name="die-with-parent", daemon=True)
    thread.start()
    return thread


def mortal_command(
    command: Sequence[str],
    death_signal: signal.Signals,
    *,
    user: SystemUser | None = None,
    watched: bool = False,
) -> list[str]:
    """The command line that runs ``command`` as a child which dies with this process.

    Give it to ``subprocess.Popen`` without ``preexec_fn``: the child sets its own death signal, then
    becomes ``command`` (see :mod:`fairdrop.embedded.launch`). ``user`` is whom to run it as, which
    only root can ask for. ``watched`` uses the watcher of systems without a death signal on Linux
    too, for tests.
    """
    return [
        sys.executable,
        "-I",
        "-S",
        str(Path(launch.__file__).resolve()),
        str(os.getpid()),
        str(int(death_signal)),
        str(launch.KEEP_USER if user is None else user.user_id),
        str(launch.KEEP_USER if user is None else user.group_id),
        str(int(watched)),
        *command,
    ]
