"""Children that die with their parent, by the kernel's signal and by its stand-ins."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil
import pytest

from fairdrop.embedded.parent_death import mortal_command
from tests.integration.embedded.waiting import all_gone, eventually, signals_ignored_by

# A parent that starts a child, passes on what the child prints, and waits to be killed.
PARENT = """
import signal, subprocess, sys
from fairdrop.embedded.parent_death import mortal_command
{start}
signal.pause()
"""
BY_ITSELF = """
child = subprocess.Popen([sys.executable, "-c", '''
import os, signal
from fairdrop.embedded import parent_death
{call}
print(os.getpid(), flush=True)
signal.pause()
'''])
"""
LAUNCHED = """
child = subprocess.Popen(
    mortal_command([sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(600)"],
    signal.SIGTERM, watched={watched}), start_new_session=True)
"""
WAYS = {
    "the kernel's signal": BY_ITSELF.format(call="parent_death.die_with_parent(signal.SIGTERM)"),
    "a watching thread": BY_ITSELF.format(
        call="parent_death.watch_parent(signal.SIGTERM, os.getppid(), poll_s=0.01)"
    ),
    "a launched program": LAUNCHED.format(watched=False),
    "a launched program with a watcher": LAUNCHED.format(watched=True),
}


def run(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )


@pytest.mark.parametrize("way", WAYS)
def test_a_child_dies_when_its_parent_is_killed(way: str) -> None:
    parent = run(PARENT.format(start=WAYS[way]))
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    assert child.ppid() == parent.pid

    parent.kill()
    parent.wait()

    # The pipe ends when nobody is left to write to it: neither the child nor a watcher.
    assert parent.stdout.read() == ""
    parent.stdout.close()
    eventually(all_gone([child]), "the child is gone")


def test_the_watcher_ends_with_the_program() -> None:
    with subprocess.Popen(
        mortal_command(["true"], signal.SIGTERM, watched=True), stdout=subprocess.PIPE
    ) as program:
        assert program.stdout is not None
        assert program.wait() == 0
        assert program.stdout.read() == b""  # the end comes when the watcher too has closed it


def test_a_child_whose_parent_is_not_the_expected_one_dies_at_once() -> None:
    child = run(
        "import signal; from fairdrop.embedded import die_with_parent\n"
        f"die_with_parent(signal.SIGTERM, parent_pid={os.getppid()}); signal.pause()"
    )
    child.communicate(timeout=30)
    assert child.returncode == -signal.SIGTERM


def test_a_program_is_not_started_when_the_parent_has_gone_meanwhile() -> None:
    command = mortal_command(["echo", "started"], signal.SIGTERM)
    assert command.count(str(os.getpid())) == 1
    command[command.index(str(os.getpid()))] = str(os.getppid())
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")


def test_a_launched_program_has_signals_as_a_shell_would_give_them() -> None:
    # Python ignores SIGPIPE, a background job of a shell ignores SIGINT; neither is for the child.
    kept = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with subprocess.Popen(mortal_command(["sleep", "600"], signal.SIGTERM)) as program:
            process = psutil.Process(program.pid)
            eventually(lambda: process.name() == "sleep", "the program runs")
            ignored = signals_ignored_by(program.pid)
            program.kill()
    finally:
        signal.signal(signal.SIGINT, kept)
    assert ignored == set()
