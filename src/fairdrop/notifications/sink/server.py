"""The two servers of the sink: SMTP in, HTTP out."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import uvicorn
from aiosmtpd.smtp import SMTP

from .letters import Letters
from .pages import make_application

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAIL_BYTES = 1_048_576
STOP_WITHIN_S = 2


class _Handler:
    """Takes every mail."""

    def __init__(self, letters: Letters) -> None:
        self._letters = letters

    async def handle_DATA(  # noqa: N802 - aiosmtpd's name
        self, _server: SMTP, _session: Any, envelope: Any
    ) -> str:
        self._letters.keep(envelope.original_content)
        return "250 2.0.0 Kept"


class _Server(uvicorn.Server):
    """Uvicorn's server, with signals left to us: both servers end together."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install none."""
        yield


async def serve(host: str, smtp_port: int, http_port: int, directory: Path) -> None:
    """Serve until SIGTERM or SIGINT. Raises OSError when a port is in use."""
    letters = Letters(directory)
    loop = asyncio.get_running_loop()
    smtp = await loop.create_server(
        lambda: SMTP(
            _Handler(letters),
            data_size_limit=MAIL_BYTES,
            enable_SMTPUTF8=True,
            hostname="localhost",
            loop=loop,
        ),
        host,
        smtp_port,
    )
    server = _Server(
        uvicorn.Config(
            make_application(letters),
            host=host,
            port=http_port,
            loop="none",
            http="httptools",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=STOP_WITHIN_S,
        )
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, setattr, server, "should_exit", True)  # noqa: FBT003 - setattr
    async with smtp:
        await server.serve()
