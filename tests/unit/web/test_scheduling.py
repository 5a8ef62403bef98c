"""A web worker's threads do not interrupt one another."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairdrop.web import server

PROGRAM = """
import os, threading
from pathlib import Path
from fairdrop.web.server import calm_scheduler

def policies():
    return {os.sched_getscheduler(int(each.name)) for each in Path("/proc/self/task").iterdir()}

stop = threading.Event()
threading.Thread(target=stop.wait, daemon=True).start()
before = policies()
calm_scheduler()
threading.Thread(target=stop.wait, daemon=True).start()
print(before == {os.SCHED_OTHER}, policies() == {os.SCHED_BATCH})
"""


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="only Linux has batch scheduling")
def test_all_threads_of_a_web_worker_are_batch_work_also_those_that_come_later() -> None:
    command = [sys.executable, "-c", PROGRAM]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.split() == ["True", "True"]


def test_a_web_worker_starts_also_where_nothing_tells_of_its_threads(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(server, "Path", lambda _: tmp_path / "no-proc")
    server.calm_scheduler()
