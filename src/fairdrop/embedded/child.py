"""What the supervisor is told about a child."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fairdrop.embedded.system_user import SystemUser

Check = Callable[[], Awaitable[bool]]
"""True once the child serves. An exception counts as "not yet"; its text goes into the error if the
time runs out."""


class RestartPolicy(enum.Enum):
    """What happens when a child ends by itself."""

    ALWAYS = enum.auto()
    NEVER = enum.auto()


async def at_once() -> bool:
    """The check of a child that is ready as soon as it runs."""
    return True


async def nothing() -> None:
    """The preparation of a child that needs none."""


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """One child process: how it is started, known to be ready, restarted and stopped."""

    name: str
    """Short and unique within the supervisor; also the name in logs."""
    argv: tuple[str, ...]
    """The command; its first word is a path or a program of PATH."""
    log_path: Path
    """Where its output goes. What is there from earlier runs is moved aside at the first start."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables on top of the inherited ones."""
    inherit_env: bool = True
    """False for foreign programs: they get ``env`` alone, so none of our secrets and none of the
    variables that would steer them."""
    cwd: Path | None = None
    after: tuple[str, ...] = ()
    """Children that must be ready before this one starts, and that are stopped after it."""
    before_start: Callable[[], Awaitable[None]] = nothing
    """Runs before each start, the restarts too."""
    ready: Check = at_once
    ready_timeout_s: float = 30.0
    restart: RestartPolicy = RestartPolicy.ALWAYS
    stop_signal: signal.Signals = signal.SIGTERM
    stop_timeout_s: float = 10.0
    """How long it may take to stop before it is killed."""
    death_signal: signal.Signals = signal.SIGTERM
    """What the kernel sends it when the supervisor's process dies without stopping it."""
    user: SystemUser | None = None
    """Whom it runs as; only root can ask for another user."""
    home: Path | None = None
    """A directory in which only this child's program works, if there is one: it makes leftovers
    known that nothing else does (see :mod:`fairdrop.embedded.leftovers`)."""


def listening(host: str, port: int) -> Check:
    """The check of a server that is ready when it accepts TCP connections."""

    async def connect() -> bool:
        _, writer = await asyncio.open_connection(host, port)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return True

    return connect
