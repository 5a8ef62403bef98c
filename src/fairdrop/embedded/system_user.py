"""Whom PostgreSQL runs as when Fairdrop runs as root: PostgreSQL refuses to be root."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import stat
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from fairdrop.errors import ConfigurationError

USER_NAME = "fairdrop"
_FALLBACK_NAME = "nobody"
_USERADD_TIMEOUT_S = 20
_USERADD_LOCKED = 1
"""Exit status of useradd when somebody else holds the lock on /etc/passwd."""
_USERADD_ATTEMPTS = 20
_USERADD_PAUSE_S = 0.1


@dataclass(frozen=True, slots=True)
class SystemUser:
    """An account of this machine, by name and numbers."""

    name: str
    user_id: int
    group_id: int


def find_user(name: str) -> SystemUser | None:
    """The account called ``name``, if the machine has it."""
    with contextlib.suppress(KeyError):
        entry = pwd.getpwnam(name)
        return SystemUser(entry.pw_name, entry.pw_uid, entry.pw_gid)
    return None


def user_name(user_id: int) -> str:
    """The name of the account, or its number if it has none."""
    with contextlib.suppress(KeyError):
        return pwd.getpwuid(user_id).pw_name
    return str(user_id)


def unprivileged_user(cluster: Path) -> SystemUser:
    """The account that a root process gives PostgreSQL's ``cluster`` to.

    Whoever owns the cluster already; else ``fairdrop``, made as a system account if it is missing;
    else ``nobody``. Raises ConfigurationError where none of them exists. May take a few 100 ms, once
    on a machine.
    """
    if cluster.exists() and (owner_id := cluster.stat().st_uid) != 0:
        with contextlib.suppress(KeyError):
            entry = pwd.getpwuid(owner_id)
            return SystemUser(entry.pw_name, entry.pw_uid, entry.pw_gid)
        raise ConfigurationError(f"{cluster} belongs to user id {owner_id}, which has no account")
    user = find_user(USER_NAME) or _add_user() or find_user(_FALLBACK_NAME)
    if user is None:
        raise ConfigurationError(
            "PostgreSQL does not run as root, and this machine has no other account for it: "
            f"create a system user named {USER_NAME}, or run Fairdrop as an ordinary user"
        )
    return user


def _add_user() -> SystemUser | None:
    useradd = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if useradd is None:
        return None
    nologin = shutil.which("nologin", path="/usr/sbin:/sbin:/usr/bin:/bin") or "/bin/false"
    command = [
        useradd,
        "--system",
        "--user-group",
        "--no-create-home",
        "--home-dir",
        "/nonexistent",
    ]
    command += ["--shell", nologin, USER_NAME]
    for _ in range(_USERADD_ATTEMPTS):
        try:
            done = subprocess.run(
                command, check=False, capture_output=True, timeout=_USERADD_TIMEOUT_S
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        if done.returncode != _USERADD_LOCKED or find_user(USER_NAME):
            break
        time.sleep(_USERADD_PAUSE_S)  # another copy of Fairdrop may be adding it at this moment
    return find_user(USER_NAME)


def can_pass(user: SystemUser, directory: Path) -> bool:
    """Whether ``user`` can reach what is in ``directory``: pass through it and all those above.

    Judged by owner, group and mode, without changing anything; access lists are not looked at.
    """
    try:
        resolved = directory.resolve(strict=True)
        return all(
            _allows(path.stat(), user, stat.S_IXOTH) for path in (*resolved.parents, resolved)
        )
    except OSError:
        return False


def can_read(user: SystemUser, path: Path) -> bool:
    """Whether ``user`` can reach the file ``path`` and read it, and run it if its owner can."""
    try:
        status = path.stat()
        wanted = stat.S_IROTH | (stat.S_IXOTH if status.st_mode & stat.S_IXUSR else 0)
        return can_pass(user, path.resolve().parent) and _allows(status, user, wanted)
    except OSError:
        return False


def _allows(status: os.stat_result, user: SystemUser, wanted: int) -> bool:
    """Apply ``wanted``, written as bits for others, to the class that ``user`` falls in."""
    if status.st_uid == user.user_id:
        shift = 6
    elif status.st_gid == user.group_id:
        shift = 3
    else:
        shift = 0
    return (status.st_mode >> shift) & wanted == wanted
