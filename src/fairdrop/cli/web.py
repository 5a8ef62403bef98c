"""``fairdrop web``: the web workers, against services that run already."""

from __future__ import annotations

import asyncio
import os

from fairdrop.app import check_settings
from fairdrop.embedded import die_with_parent
from fairdrop.schema.migrate import ensure_migrated
from fairdrop.settings import Settings

HEADER_BYTES = 32_768
"""What the request line and headers of one request may have (S1)."""
HEADER_TIMEOUT_MS = 10_000
REQUESTS_AT_ONCE = 8_192
"""Requests that one worker has under way; more wait in the kernel's queue."""


def run_web(settings: Settings) -> None:
    """Serve until a signal. Raises ConfigurationError when a setting is missing."""
    from granian import Granian
    from granian.constants import Interfaces, Loops
    from granian.http import HTTP1Settings
    from granian.log import LogLevels

    check_settings(settings)
    if os.environ.get("FAIRDROP_PARENT_DEATH") == "1":
        die_with_parent()
    asyncio.run(ensure_migrated(settings.database_url or ""))
    Granian(
        "fairdrop.web.server:make_app",
        address=settings.host,
        port=settings.port,
        interface=Interfaces.ASGI,
        factory=True,
        workers=settings.web_workers,
        loop=Loops.uvloop,
        websockets=False,
        backlog=4_096,
        backpressure=REQUESTS_AT_ONCE,
        http1_settings=HTTP1Settings(
            header_read_timeout=HEADER_TIMEOUT_MS, max_buffer_size=HEADER_BYTES
        ),
        log_level=LogLevels.warning,
        respawn_failed_workers=True,
        respawn_interval=0.1,
        workers_kill_timeout=5,
    ).serve()
