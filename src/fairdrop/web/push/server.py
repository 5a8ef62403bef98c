"""The server of the push process: Uvicorn, with our protocols, our goodbye and our limits."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING, Any

import structlog
import uvicorn

from .connection import HttpProtocol, WebSocketProtocol

if TYPE_CHECKING:
    import socket

    from .app import PushApp

_log = structlog.get_logger(__name__)

_OTHER_FILES = 200
"""Open files besides streams: logs, modules, connections to the store and the database."""
PING_S = 20.0
_MESSAGE_BYTES = 1_024


class PushServer(uvicorn.Server):
    """Serves until a signal; then tells every listener to come back, and stops."""

    def __init__(self, app: PushApp, *, host: str, port: int) -> None:
        """Take the application and where to listen."""
        super().__init__(
            uvicorn.Config(
                app,
                host=host,
                port=port,
                http=HttpProtocol,
                ws=WebSocketProtocol,
                ws_max_size=_MESSAGE_BYTES,
                ws_per_message_deflate=False,
                ws_ping_interval=PING_S,
                ws_ping_timeout=PING_S,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                backlog=4_096,
                timeout_graceful_shutdown=3,
            )
        )
        self._push = app

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Say goodbye while the connections still stand."""
        for server in self.servers:
            server.close()
        await self._push.say_goodbye()
        await super().shutdown(sockets)


def allow_files(connections: int) -> int:
    """Raise this process's limit of open files for so many streams; returns how many fit.

    Says clearly when the system allows fewer: then streams beyond are refused, and their clients poll.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted: Any = connections + _OTHER_FILES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    fit = connections if soft == resource.RLIM_INFINITY else max(1, soft - _OTHER_FILES)
    if fit < connections:
        _log.warning(
            "file_limit_too_low",
            streams=fit,
            wanted=connections,
            hint=f"raise the hard limit of open files (ulimit -Hn) to {connections + _OTHER_FILES}",
        )
    return min(fit, connections)
