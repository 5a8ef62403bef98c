"""However the parent ends, nothing that it started is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from fairdrop.embedded.directories import data_identity
from fairdrop.embedded.leftovers import Traces, find_leftovers
from tests.integration.embedded.conftest import StartParent
from tests.integration.embedded.waiting import all_gone, eventually, family, signals_ignored_by


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_to_the_parent_stops_everything_in_order(
    data: Path, start_parent: StartParent, name: str
) -> None:
    parent, _ = start_parent(data, "signal")
    children = family(parent.pid)
    assert len(children) >= 5  # valkey, the postmaster and its own, stubborn and its own

    parent.send_signal(signal.Signals[name])
    output, _ = parent.communicate(timeout=30)

    assert json.loads(output) == {"stopped_by": name}
    assert parent.returncode == 0
    assert all_gone(children)()
    # In order: the server wrote its checkpoint, so the next start has nothing to recover.
    assert "database system is shut down" in (data / "log/postgres.log").read_text()


def test_a_second_ctrl_c_does_not_cut_the_clean_up_short(
    data: Path, start_parent: StartParent
) -> None:
    parent, _ = start_parent(data, "signal")
    children = family(parent.pid)

    parent.send_signal(signal.SIGINT)
    eventually(lambda: not all(child.is_running() for child in children), "the stop has begun")
    parent.send_signal(signal.SIGINT)
    output, _ = parent.communicate(timeout=30)

    assert json.loads(output) == {"stopped_by": "SIGINT"}
    assert all_gone(children)()


@pytest.mark.parametrize(("ending", "status"), [("raise", 1), ("exit", 3)])
def test_an_exception_in_the_parent_stops_everything(
    data: Path, start_parent: StartParent, ending: str, status: int
) -> None:
    parent, _ = start_parent(data, ending, stderr=subprocess.DEVNULL)
    parent.communicate(timeout=30)

    assert parent.returncode == status
    assert find_leftovers([Traces(data_identity(data))]) == []
    assert "database system is shut down" in (data / "log/postgres.log").read_text()


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_a_parent_that_is_killed_takes_everything_with_it(
    data: Path, start_parent: StartParent, name: str
) -> None:
    # The parent handles no signal here, so each of them is as deadly as SIGKILL. Of "stubborn", its
    # own child knows nothing of the death: it is for the next run to find.
    parent, before = start_parent(data, "wait")
    told = [child for child in family(parent.pid) if child.ppid() != before["pids"]["stubborn"]]
    assert len(told) >= 4

    parent.send_signal(signal.Signals[name])

    eventually(all_gone(told), "no child is left")
    untold = find_leftovers([Traces(data_identity(data))])
    assert len(untold) == 1

    again, after = start_parent(data, "signal")
    assert all_gone(untold)()
    assert not set(before["pids"].values()) & set(after["pids"].values())
    again.send_signal(signal.SIGTERM)
    assert again.wait(timeout=30) == 0


def test_a_parent_that_leaves_abruptly_takes_the_services_with_it(
    data: Path, start_parent: StartParent
) -> None:
    parent, before = start_parent(data, "abrupt")
    parent.communicate(timeout=30)

    assert parent.returncode == 4
    for name in ("valkey", "postgres"):
        pid = before["pids"][name]
        eventually(lambda pid=pid: not _alive(pid), f"{name} is gone")  # type: ignore[misc]
    for left in find_leftovers([Traces(data_identity(data))]):
        left.kill()
        eventually(all_gone([left]), "the untold grandchild is gone")


@pytest.mark.parametrize(
    ("name", "begun"),
    [
        ("SIGKILL", "log/initdb.log"),
        ("SIGINT", "log/initdb.log"),
        ("SIGKILL", "postgres/cluster"),
    ],
)
def test_a_parent_that_is_stopped_during_the_first_start_leaves_nothing_and_can_start_again(
    new_data: Path, start_parent: StartParent, name: str, begun: str
) -> None:
    parent, _ = start_parent(new_data, "starting", stderr=subprocess.DEVNULL)
    eventually((new_data / begun).exists, "the start is on its way")

    parent.send_signal(signal.Signals[name])
    parent.communicate(timeout=30)

    identity = data_identity(new_data)
    eventually(lambda: not find_leftovers([Traces(identity)]), "no child is left")
    again, _ = start_parent(new_data, "signal")
    again.send_signal(signal.SIGTERM)
    assert again.wait(timeout=30) == 0


def test_a_hangup_that_the_parent_was_told_to_ignore_is_ignored(
    data: Path, start_parent: StartParent
) -> None:
    def ignore_hangups() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    parent, _ = start_parent(data, "signal", preexec_fn=ignore_hangups)
    assert signal.SIGHUP in signals_ignored_by(parent.pid)
    assert signal.SIGTERM not in signals_ignored_by(parent.pid)
    parent.send_signal(signal.SIGHUP)
    parent.send_signal(signal.SIGTERM)
    output, _ = parent.communicate(timeout=30)

    assert json.loads(output) == {"stopped_by": "SIGTERM"}


def test_ctrl_c_in_the_terminal_reaches_the_parent_alone(
    data: Path, start_parent: StartParent
) -> None:
    parent, before = start_parent(data, "signal")

    groups = {os.getpgid(pid) for pid in before["pids"].values()}

    assert os.getpgid(parent.pid) not in groups
    parent.send_signal(signal.SIGTERM)
    assert parent.wait(timeout=30) == 0


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
