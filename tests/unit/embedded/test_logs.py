"""Logs of children: rotation and tail."""

from __future__ import annotations

from pathlib import Path

from fairdrop.embedded.process import log_tail, rotate_log


def test_rotation_keeps_the_last_runs_in_order(tmp_path: Path) -> None:
    log = tmp_path / "child.log"
    for run in range(6):
        rotate_log(log, kept=2)
        log.write_text(f"run {run}")
    kept = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert kept == {"child.log": "run 5", "child.log.1": "run 4", "child.log.2": "run 3"}


def test_rotation_of_nothing_does_nothing(tmp_path: Path) -> None:
    rotate_log(tmp_path / "child.log")
    assert list(tmp_path.iterdir()) == []


def test_the_tail_has_the_last_lines_whatever_their_bytes(tmp_path: Path) -> None:
    log = tmp_path / "child.log"
    log.write_bytes(b"x" * 10_000 + b"\nsecond to last\n\xff last\n")
    assert log_tail(log, lines=2) == "second to last\n\ufffd last"
    assert log_tail(tmp_path / "missing") == ""
