"""`fairdrop demo`, as a person runs it: the verdict, the report, and nothing left behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from fairdrop.cli.demo import write_report

pytestmark = pytest.mark.xdist_group("whole_sites")

END_S = 90
KEYS = """
units_total units_sold units_held units_free oversold orders_confirmed orders_expired orders_failed
orders_refunded paid_without_order duplicate_charges ledger_debits_minor ledger_credits_minor
ledger_variance_minor buyers joined admitted reservations_p50_ms reservations_p99_ms wall_s
purchases_per_s seed
""".split()


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A directory for temporary files of a demo alone; its name is short enough for sockets."""
    directory = Path(tempfile.mkdtemp(prefix="fd-", dir="/tmp"))
    directory.chmod(0o711)  # run by root, the database is another user
    yield directory
    for process in processes_of(directory):
        with suppress(psutil.Error):
            process.kill()
    left_running(directory)
    shutil.rmtree(directory, ignore_errors=True)


def start(temporary: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "fairdrop", "demo", *arguments],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def processes_of(directory: Path) -> list[psutil.Process]:
    """Every process that has to do with the directory, by its command, variables or files."""
    found = []
    for process in psutil.process_iter():
        try:
            seen = [*process.cmdline(), *process.environ().values(), process.cwd()]
        except psutil.Error:
            continue
        if process.pid != os.getpid() and any(str(directory) in each for each in seen):
            found.append(process)
    return found


def left_running(directory: Path, within_s: float = 20.0) -> list[str]:
    """What still runs when all should be gone, after some time for them to go."""
    deadline = time.monotonic() + within_s
    while (left := processes_of(directory)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return [str(process) for process in left]


def test_a_demo_sells_out_and_proves_it(temporary: Path) -> None:
    report = temporary / "report.json"
    demo = start(
        temporary,
        *("--buyers", "300", "--units", "40", "--exit"),
        *("--seed", "11", "--report", str(report)),
    )
    output, _ = demo.communicate(timeout=END_S)
    assert demo.returncode == 0, output
    found: dict[str, Any] = json.loads(report.read_text("utf-8"))
    assert set(KEYS) <= set(found)
    assert (found["units_sold"], found["units_held"], found["units_free"]) == (40, 0, 0)
    assert found["oversold"] == found["paid_without_order"] == found["duplicate_charges"] == 0
    assert found["ledger_variance_minor"] == 0
    assert found["ledger_debits_minor"] == found["ledger_credits_minor"] > 0
    assert found["buyers"] == 300
    assert found["seed"] == 11
    assert 0 < found["orders_confirmed"] <= 40 < found["admitted"] <= found["joined"] <= 310
    assert 0 < found["reservations_p50_ms"] <= found["reservations_p99_ms"]
    assert found["differences"] == []
    assert all(invariant["holds"] for invariant in found["invariants"])
    assert found["crowd"]["results"]["confirmed"] <= found["orders_confirmed"]
    # What a person reads: the addresses, the verdict; and no key in what may be a log.
    assert "/s/demo" in output
    assert "/console" in output
    assert f"All {len(found['invariants'])} invariants hold" in output
    assert max(len(line.rstrip()) for line in output.splitlines() if "/" not in line) <= 80
    assert [left.name for left in temporary.iterdir()] == ["report.json"]
    assert left_running(temporary, 0) == []


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_demo_that_is_stopped_leaves_nothing_running(
    temporary: Path, number: signal.Signals, status: int
) -> None:
    demo = start(temporary, "--buyers", "400", "--units", "60", "--exit")
    assert demo.stdout is not None
    seen = []
    for line in demo.stdout:
        seen.append(line)
        if "held" in line and "held     0" not in line:
            break
    else:
        pytest.fail(f"no sale: {''.join(seen)}")
    assert processes_of(temporary)
    demo.send_signal(number)
    output, _ = demo.communicate(timeout=END_S)
    assert demo.returncode == status, output
    assert left_running(temporary) == []
    if number is not signal.SIGKILL:
        assert "Stopped before the verdict." in output
        assert list(temporary.iterdir()) == []


def test_a_report_that_cannot_be_written_is_refused_before_anything_starts(
    temporary: Path,
) -> None:
    demo = start(temporary, "--exit", "--report", str(temporary / "no" / "report.json"))
    output, _ = demo.communicate(timeout=END_S)
    assert demo.returncode == 2
    assert "--report" in output
    assert list(temporary.iterdir()) == []


def test_a_report_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("an older one", "utf-8")
    with pytest.raises(TypeError):
        write_report(path, {"not": object()})
    assert path.read_text("utf-8") == "an older one"
    write_report(path, {"units_sold": 3})
    assert json.loads(path.read_text("utf-8")) == {"units_sold": 3}
