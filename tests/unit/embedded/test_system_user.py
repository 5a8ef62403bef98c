"""Judging what another user can reach, by modes alone."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairdrop.embedded.system_user import SystemUser, can_pass, can_read

OWNER = SystemUser("owner", os.geteuid(), os.getegid())
FELLOW = SystemUser("fellow", 4_000_000, os.getegid())
STRANGER = SystemUser("stranger", 4_000_000, 4_000_000)


@pytest.fixture
def top() -> Iterator[Path]:
    """A directory right below the system's temporary one, which lets everybody through."""
    with tempfile.TemporaryDirectory(prefix="fairdrop-tmp-") as path:
        yield Path(path)


@pytest.mark.parametrize(
    ("mode", "reached"),
    [
        (0o755, {"owner", "fellow", "stranger"}),
        (0o711, {"owner", "fellow", "stranger"}),
        (0o750, {"owner", "fellow"}),
        (0o700, {"owner"}),
        (0o744, {"owner"}),
        (0o701, {"owner", "stranger"}),  # the class that fits first decides, as in the kernel
    ],
)
def test_a_directory_above_must_let_the_user_through(
    top: Path, mode: int, reached: set[str]
) -> None:
    inside = top / "a" / "b"
    inside.mkdir(parents=True)
    inside.chmod(0o755)
    top.chmod(mode)
    assert {user.name for user in (OWNER, FELLOW, STRANGER) if can_pass(user, inside)} == reached


@pytest.mark.parametrize(
    ("mode", "readable"), [(0o644, True), (0o600, False), (0o755, True), (0o744, False)]
)
def test_a_program_must_be_runnable_and_a_file_readable(
    top: Path, mode: int, readable: bool
) -> None:
    file = top / "file"
    file.write_text("")
    file.chmod(mode)
    top.chmod(0o755)
    assert can_read(STRANGER, file) is readable


def test_what_is_missing_cannot_be_reached(tmp_path: Path) -> None:
    assert not can_pass(OWNER, tmp_path / "missing")
    assert not can_read(OWNER, tmp_path / "missing")
