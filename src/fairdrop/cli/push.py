"""``fairdrop push``: streams of live figures and turns, against services that run already."""

from __future__ import annotations

import asyncio
import os

from fairdrop.app import check_settings, open_parts
from fairdrop.embedded import die_with_parent
from fairdrop.schema.migrate import ensure_migrated
from fairdrop.settings import Settings


def run_push(settings: Settings) -> None:
    """Serve until a signal. Raises ConfigurationError or DatabaseUnavailable at the start."""
    import uvloop

    if os.environ.get("FAIRDROP_PARENT_DEATH") == "1":
        die_with_parent()
    check_settings(settings)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings))


async def _serve(settings: Settings) -> None:
    from fairdrop.web.push import make_push_app
    from fairdrop.web.push.server import PushServer, allow_files
    from fairdrop.web.server import calm_garbage_collector

    await ensure_migrated(settings.database_url or "")
    streams = allow_files(settings.push_connections)
    async with open_parts(settings.model_copy(update={"push_connections": streams})) as parts:
        server = PushServer(make_push_app(parts), host=settings.host, port=settings.push_port)
        calm_garbage_collector()
        await server.serve()
