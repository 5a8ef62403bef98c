"""Fault points: off by default, refused where real money is taken, one death for each arming."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairdrop import faults
from fairdrop.errors import ConfigurationError
from fairdrop.faults import Point


@pytest.fixture(autouse=True)
def _off_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test leaves this very process with points that are on."""
    monkeypatch.setattr(faults, "_directory", None)


def pass_in_a_process(directory: Path, point: Point, times: int) -> int:
    """Pass the point so many times; the exit status of the process that did."""
    code = (
        "from fairdrop import faults\n"
        "faults.enable(production=False)\n"
        f"for _ in range({times}): faults.passing(faults.Point('{point}'))\n"
    )
    env = {**os.environ, faults.DIRECTORY: str(directory)}
    return subprocess.run([sys.executable, "-c", code], env=env, check=False).returncode


def test_a_process_dies_at_the_armed_passing_and_its_successor_lives(tmp_path: Path) -> None:
    faults.arm(tmp_path, Point.SETTLED, passing=3)
    assert pass_in_a_process(tmp_path, Point.SETTLED, 2) == 0, "two passings are not three"
    assert faults.died(tmp_path, Point.SETTLED) is None
    assert pass_in_a_process(tmp_path, Point.SETTLING, 9) == 0, "another point is not armed"
    assert pass_in_a_process(tmp_path, Point.SETTLED, 9) == -signal.SIGKILL
    assert faults.died(tmp_path, Point.SETTLED) is not None
    assert pass_in_a_process(tmp_path, Point.SETTLED, 9) == 0, "one death for one arming"


def test_what_nobody_passed_is_taken_back_and_told(tmp_path: Path) -> None:
    faults.arm(tmp_path, Point.HELD)
    assert faults.disarm(tmp_path) == [Point.HELD]
    assert pass_in_a_process(tmp_path, Point.HELD, 1) == 0


def test_without_the_variable_every_point_is_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(faults.DIRECTORY, raising=False)
    faults.enable(production=True)
    faults.arm(tmp_path, Point.HELD)
    faults.passing(Point.HELD)
    assert faults.disarm(tmp_path) == [Point.HELD]


def test_where_real_money_is_taken_points_are_refused_unless_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(faults.DIRECTORY, str(tmp_path))
    with pytest.raises(ConfigurationError, match=faults.DIRECTORY):
        faults.enable(production=True)
    monkeypatch.setenv(faults.ANYWAY, "yes")
    faults.enable(production=True)
