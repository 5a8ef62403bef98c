"""Free TCP ports for the HTTP servers of one copy among several."""

from __future__ import annotations

import contextlib
import errno
import random
import socket

from fairdrop.errors import ConfigurationError

_RANGE = range(20_000, 32_000)
"""Below the ports that systems hand to outgoing connections (32,768 and up on Linux, 49,152 and up
elsewhere). A server that is restarted must find its port free; a port from the ephemeral range
could meanwhile have gone to one of our own client connections."""
_ATTEMPTS = 200


def free_ports(
    count: int, *, host: str = "127.0.0.1", preferred: tuple[int, ...] = ()
) -> tuple[int, ...]:
    """``count`` different TCP ports that nobody uses on ``host``.

    The ``preferred`` ones come first, those of them that are free; the others are drawn at random,
    so that copies that start at the same moment do not collide. Raises ConfigurationError if there
    are none. Nothing is reserved: bind them soon.
    """
    drawn = random.SystemRandom().sample(_RANGE, _ATTEMPTS)
    found: list[int] = []
    with contextlib.ExitStack() as held:
        for port in (*preferred, *drawn):
            if len(found) == count:
                break
            if port not in found and _hold(port, host, held):
                found.append(port)
    if len(found) < count:
        raise ConfigurationError(f"found no {count} free ports on {host}")
    return tuple(found)


def free_port(*, host: str = "127.0.0.1", preferred: int | None = None) -> int:
    """One port of :func:`free_ports`: ``preferred`` if it is free, else another."""
    return free_ports(1, host=host, preferred=() if preferred is None else (preferred,))[0]


def _hold(port: int, host: str, held: contextlib.ExitStack) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    candidate = held.enter_context(socket.socket(family, socket.SOCK_STREAM))
    # As servers do, so that connections of a server just stopped (TIME_WAIT) do not count.
    candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        candidate.bind((host, port))
        candidate.listen(1)
    except OSError as error:
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            return False
        raise ConfigurationError(f"cannot listen on {host}: {error}") from error
    return True
