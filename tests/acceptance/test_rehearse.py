"""`fairdrop rehearse --faults`, as a person runs it: the same schedule for the same seed, a verdict."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairdrop.payments import CaptureMode
from fairdrop.rehearsal.schedule import draw_round

pytestmark = pytest.mark.xdist_group("whole_sites")

SEEDS = {CaptureMode.AUTOMATIC: 7, CaptureMode.MANUAL: 5}
END_S = 90


@pytest.fixture
def temporary() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="fd-", dir="/tmp"))
    directory.chmod(0o711)  # run by root, the database is another user
    yield directory
    left = [path.name for path in directory.glob("fairdrop-rehearsal-*")]
    shutil.rmtree(directory, ignore_errors=True)
    assert left == []


@pytest.mark.parametrize("capture", SEEDS, ids=lambda capture: capture.value)
def test_a_seeded_rehearsal_kills_what_it_says_and_every_promise_holds(
    temporary: Path, capture: CaptureMode
) -> None:
    """S8, O8, O4: fault points, kills and gateway mischief under a crowd, with every figure."""
    seed = SEEDS[capture]
    report = temporary / "report.json"
    command = [
        "rehearse",
        "--faults",
        "--seed",
        str(seed),
        "--minutes",
        "0",
        "--report",
        str(report),
    ]
    run = subprocess.run(
        [sys.executable, "-m", "fairdrop", *command],
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=END_S,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    drawn = draw_round(seed, 1, faults=True)
    assert drawn.capture is capture
    for blow in drawn.blows:
        assert f"at {blow.at_ms / 1_000:5.2f} s  {blow.words}" in run.stdout
    found = json.loads(report.read_text("utf-8"))
    assert found["holds"] is True
    assert found["seed"] == seed
    assert found["kills"] == sum(blow.target is not None for blow in drawn.blows)
    assert found["deaths_at_points"] >= 1, found["rounds"][0]["struck"]
    (first,) = found["rounds"]
    assert [blow["at_ms"] for blow in first["schedule"]["blows"]] == [
        blow.at_ms for blow in drawn.blows
    ]
    assert all(each["held"] == each["rounds"] == 1 for each in found["invariants"])
    promises = {each["name"] for each in found["invariants"]}
    assert ("nothing_to_refund" in promises) is (capture is CaptureMode.MANUAL)
    assert found["figures"]["oversold"] == found["figures"]["paid_without_order"] == 0
