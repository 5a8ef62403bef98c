"""Layout, permissions and lock of the data directory."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairdrop.embedded.directories import (
    SOCKET_PATH_MAX_BYTES,
    DataDirectoryInUse,
    DataDirectoryLock,
    Directories,
    make_private,
    remove_short_directory,
    socket_directory,
)
from fairdrop.errors import ConfigurationError


@pytest.fixture(autouse=True)
def _temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A temporary directory of the test's own, where short socket directories go."""
    with tempfile.TemporaryDirectory(prefix="fairdrop-tmp-") as path:
        monkeypatch.setattr(tempfile, "tempdir", path)
        yield


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_every_part_is_for_its_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "data" / "log").mkdir(parents=True, mode=0o777)
    directories = Directories.prepare(tmp_path / "data")
    for part in ("run", "log", "valkey", "postgres", "gateway", "metrics"):
        assert mode(getattr(directories, part)) == 0o700
    assert mode(directories.data) == (0o711 if os.geteuid() == 0 else 0o700)


def test_nothing_above_the_data_directory_changes(tmp_path: Path) -> None:
    above = tmp_path / "above"
    above.mkdir(mode=0o750)
    above.chmod(0o750)
    Directories.prepare(above / "data")
    assert mode(above) == 0o750


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Directories.prepare(Path("data")).data == tmp_path.resolve() / "data"


def test_a_file_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(ConfigurationError, match="cannot make the data directory"):
        Directories.prepare(tmp_path / "data")


@pytest.mark.parametrize("name", ["r" * 90, "a,b", "a b", "a?b", "ü"])
def test_sockets_move_to_a_short_plain_path_that_is_the_same_each_time(
    tmp_path: Path, name: str
) -> None:
    wanted = tmp_path / name
    found = socket_directory(wanted)
    try:
        assert found == socket_directory(wanted)
        assert found != socket_directory(tmp_path / "other")
        assert len(os.fsencode(found / ".s.PGSQL.5432")) <= SOCKET_PATH_MAX_BYTES
        assert found.name.startswith("fairdrop-")
        assert mode(found) == 0o700
    finally:
        remove_short_directory(wanted)
    assert not found.exists()


def test_a_link_in_the_place_of_a_socket_directory_is_refused(tmp_path: Path) -> None:
    # In a directory that everybody may write to, somebody could have put it there to listen in.
    (tmp_path / "theirs").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "theirs")
    with pytest.raises(ConfigurationError, match="is in the way"):
        make_private(tmp_path / "run")


def refused_because_of(pid: int, data: Path) -> bool:
    with pytest.raises(DataDirectoryInUse, match=f"in use by the process {pid}") as refused:
        DataDirectoryLock(data).__enter__()
    return refused.value.holder_pid == pid


def test_the_lock_admits_one_and_names_it(tmp_path: Path) -> None:
    with DataDirectoryLock(tmp_path):
        assert refused_because_of(os.getpid(), tmp_path)
    with DataDirectoryLock(tmp_path):
        pass


def test_the_lock_of_a_process_that_was_killed_is_free(tmp_path: Path) -> None:
    code = (
        "import sys, signal; from pathlib import Path\n"
        "from fairdrop.embedded.directories import DataDirectoryLock\n"
        "with DataDirectoryLock(Path(sys.argv[1])): print('held', flush=True); signal.pause()"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, env=environment
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert refused_because_of(holder.pid, tmp_path)
        holder.kill()
        holder.wait()
    with DataDirectoryLock(tmp_path):
        pass


def test_children_do_not_inherit_the_lock(tmp_path: Path) -> None:
    with DataDirectoryLock(tmp_path):
        child = subprocess.Popen(["sleep", "600"], close_fds=False)
    try:
        with DataDirectoryLock(tmp_path):
            pass
    finally:
        child.kill()
        child.wait()
