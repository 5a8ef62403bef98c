"""The data directory: its layout, its permissions, its lock.

::

    <data>/lock         held by the process that runs here; names its pid
    <data>/run/         Unix sockets, and the store's configuration
    <data>/log/         one log file a child, and those of the runs before
    <data>/valkey/      configuration and append-only file
    <data>/postgres/    the PostgreSQL cluster (as root maybe elsewhere: see postgres_home)
    <data>/gateway/     the sandbox gateway's record
    <data>/metrics/     metrics shared by several processes

Every directory is for its owner alone (0700), because whoever can reach the sockets needs no
password. The one exception: run by root, ``<data>`` itself may be passed through (0711), since
PostgreSQL runs as another user and lives below it.

A Unix socket's address has room for some 100 bytes. Where ``<data>/run`` is too long for that, or
has characters that an address must not have, the sockets move to a short directory in the system's
temporary directory, named after the data directory.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from fairdrop.embedded.system_user import SystemUser, user_name
from fairdrop.errors import ConfigurationError

SOCKET_PATH_MAX_BYTES = 100
"""What fits everywhere: the address holds 108 bytes on Linux and 104 on macOS, with a final zero."""

_LONGEST_SOCKET_NAME = ".s.PGSQL.5432.lock"
_PLAIN = re.compile(r"[A-Za-z0-9_./+~-]+")
_LOCK = "lock"
_PRIVATE = 0o700
_PASSABLE = 0o711


class DataDirectoryInUse(ConfigurationError):
    """Another process runs on this data directory; ``holder_pid`` is its pid, if it is known."""

    def __init__(self, data: Path, holder_pid: int | None) -> None:
        """Say who holds which directory, and what to do."""
        holder = "another process" if holder_pid is None else f"the process {holder_pid}"
        super().__init__(
            f"the data directory {data} is in use by {holder}; "
            "stop that one first, or choose another data directory"
        )
        self.data = data
        self.holder_pid = holder_pid


@dataclass(frozen=True, slots=True)
class Directories:
    """Where everything of one copy of Fairdrop lives. All paths are absolute and exist."""

    data: Path
    run: Path
    log: Path
    valkey: Path
    postgres: Path
    gateway: Path
    metrics: Path

    @classmethod
    def prepare(cls, data: Path) -> Self:
        """Make the directories that are missing, and close those that are open to others.

        Nothing above ``data`` changes. Raises ConfigurationError if ``data`` belongs to somebody
        else or was used by somebody else, is no directory or cannot be made.
        """
        absolute = data.expanduser().absolute()
        try:
            absolute.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigurationError(f"cannot make the data directory {data}: {error}") from error
        resolved = absolute.resolve()
        _refuse_the_wrong_user(resolved)
        resolved.chmod(_PASSABLE if os.geteuid() == 0 else _PRIVATE)
        parts = {
            name: resolved / name for name in ("log", "valkey", "postgres", "gateway", "metrics")
        }
        for part in parts.values():
            part.mkdir(mode=_PRIVATE, exist_ok=True)
            part.chmod(_PRIVATE)
        return cls(data=resolved, run=socket_directory(resolved / "run"), **parts)

    @property
    def key(self) -> str:
        """A short name for this data directory, the same in every run."""
        return directory_key(self.data)

    @property
    def identity(self) -> str:
        """What no other data directory of this machine has, not even one in a container."""
        return data_identity(self.data)


def data_identity(data: Path) -> str:
    """The ``identity`` of the data directory ``data``, which exists."""
    resolved = data.resolve()
    status = resolved.stat()
    return f"{status.st_dev}:{status.st_ino}:{resolved}"


def _refuse_the_wrong_user(data: Path) -> None:
    """Raise ConfigurationError if ``data`` is, or was used as, another user's.

    Root could go on with it, but would leave files that its user cannot read afterwards.
    """
    owner_ids = [data.stat().st_uid] if os.geteuid() else []
    with contextlib.suppress(OSError):
        owner_ids.append((data / _LOCK).stat().st_uid)
    for owner_id in owner_ids:
        if owner_id != os.geteuid():
            name = user_name(owner_id)
            raise ConfigurationError(
                f"the data directory {data} belongs to the user {name}, and this process runs as "
                f"{user_name(os.geteuid())}: run it as {name}, or choose another data directory"
            )


def directory_key(path: Path) -> str:
    """Twelve hexadecimal digits that stand for ``path``."""
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:12]


def socket_directory(wanted: Path, owner: SystemUser | None = None) -> Path:
    """Make a directory for sockets, 0700 and owned by ``owner``; return where it is.

    ``wanted`` itself, if the longest socket name in it stays within SOCKET_PATH_MAX_BYTES and its
    characters are plain (clients of PostgreSQL take a comma for the end of the address); else a
    directory in the system's temporary directory, named after ``wanted``. Raises ConfigurationError
    if that name is taken by somebody else, who could otherwise listen in.
    """
    fits = len(os.fsencode(wanted / _LONGEST_SOCKET_NAME)) <= SOCKET_PATH_MAX_BYTES
    path = wanted if fits and _PLAIN.fullmatch(str(wanted)) else _short_directory(wanted)
    make_private(path, owner)
    return path


def _short_directory(wanted: Path) -> Path:
    return Path(tempfile.gettempdir()) / f"fairdrop-{directory_key(wanted)}"


def remove_short_directory(wanted: Path) -> None:
    """Remove the directory that stands in for ``wanted`` if there is one, with what is left in it."""
    path = _short_directory(wanted)
    with contextlib.suppress(FileNotFoundError):
        if os.geteuid() in (0, path.lstat().st_uid):
            shutil.rmtree(path)


def make_private(path: Path, owner: SystemUser | None = None) -> None:
    """Make ``path`` (not what is above it) a directory of mode 0700 that belongs to ``owner``.

    ``owner`` defaults to the user of this process. A directory of root's is handed over; one of
    anybody else, or a link, raises ConfigurationError.
    """
    user_id = os.geteuid() if owner is None else owner.user_id
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=_PRIVATE)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (os.geteuid(), user_id):
        raise ConfigurationError(
            f"{path} is in the way: it is not a directory of the user {user_name(user_id)}"
        )
    if owner is not None and found.st_uid != user_id:
        os.chown(path, owner.user_id, owner.group_id, follow_symlinks=False)
    path.chmod(_PRIVATE)


class DataDirectoryLock:
    """One process at a time on a data directory.

    The lock is ``flock``: the kernel drops it when its holder dies, whatever the way, so there is
    no stale one to clear. It is not inherited by children.
    """

    def __init__(self, data: Path) -> None:
        self._data = data
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        """Take the lock, or raise DataDirectoryInUse at once."""
        descriptor = os.open(self._data / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 20, 0).strip()
            os.close(descriptor)
            raise DataDirectoryInUse(
                self._data, int(holder) if holder.isdigit() else None
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
        self._descriptor = descriptor
        return self

    def __exit__(self, *_: object) -> None:
        """Give the lock back. The file stays: removing it would let two processes in."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
