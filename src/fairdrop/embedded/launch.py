"""Becomes another program, after making sure that it dies with the process that started it.

This file is run, not imported, for foreign programs (postgres, valkey-server) and for our own::

    python -I -S launch.py PARENT_PID SIGNAL USER_ID GROUP_ID WATCH PROGRAM ARGUMENT…

It takes about 15 ms, and then the program has replaced it under the same process id. A launcher is
used in place of ``preexec_fn`` because Python code between fork and exec can deadlock in a process
with threads, and because the order of the steps matters:

1. Change the user (as root, for PostgreSQL).
2. Set the death signal. The kernel forgets it when a process changes its user, so it comes second;
   it survives exec.
3. Look whether the parent is still there. It may have died before step 2, and then no signal will
   ever come.
4. exec.

Where the kernel has no death signal (everywhere but Linux), step 2 leaves a small process behind
that watches the parent and the program, and ends with either.

The file imports the standard library alone: it runs isolated, without site-packages.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
KEEP_USER = -1
"""USER_ID and GROUP_ID that mean: stay who you are."""

_WATCH_INTERVAL_S = 0.2
_DEFAULTED = ("SIGINT", "SIGTERM", "SIGQUIT", "SIGHUP", "SIGPIPE", "SIGXFSZ")


def set_death_signal(number: int) -> bool:
    """Ask the kernel to send this process signal ``number`` when the thread that forked it ends.

    False where the kernel cannot (anything but Linux). It does not notice a parent that has
    already gone: the caller compares ``os.getppid()`` afterwards.
    """
    if not sys.platform.startswith("linux"):
        return False
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
    prctl.restype = ctypes.c_int
    return bool(prctl(PR_SET_PDEATHSIG, number, 0, 0, 0) == 0)


def become_user(user_id: int, group_id: int) -> None:
    """Give up root for good: groups first, because afterwards there is no right to change them."""
    os.setgroups([group_id])
    os.setgid(group_id)
    os.setuid(user_id)


def watch(parent_pid: int, program_pid: int, number: int, interval_s: float) -> None:
    """Send ``program_pid`` the signal once ``parent_pid`` is gone; return when either is gone.

    A process that has ended counts as gone when its own parent has taken note of it.
    """
    while _exists(program_pid):
        if not _exists(parent_pid):
            os.kill(program_pid, number)
            return
        time.sleep(interval_s)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _leave_a_watcher(parent_pid: int, number: int) -> None:
    """Fork twice, so that the watcher is no child of the program, which would not expect one."""
    program_pid = os.getpid()
    between = os.fork()
    if between:
        os.waitpid(between, 0)
        return
    if os.fork():
        os._exit(0)
    try:
        watch(parent_pid, program_pid, number, _WATCH_INTERVAL_S)
    finally:
        os._exit(0)


def main(arguments: list[str]) -> int:
    """Follow the module's four steps; return only if the parent is gone or exec is impossible."""
    parent_pid, number, user_id, group_id, watched = map(int, arguments[:5])
    command = arguments[5:]
    if user_id != KEEP_USER:
        become_user(user_id, group_id)
    # Python ignores SIGPIPE, and a shell may have us ignore SIGINT; exec would pass that on.
    for name in _DEFAULTED:
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    if watched or not set_death_signal(number):
        _leave_a_watcher(parent_pid, number)
    if os.getppid() != parent_pid:
        return 1
    try:
        os.execvp(command[0], command)  # noqa: S606 - no shell is the point
    except OSError as error:
        sys.stderr.write(f"cannot run {command[0]}: {error}\n")
    return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
