"""``fairdrop worker``: the background loops, against services that run already."""

from __future__ import annotations

import os

from fairdrop.app import check_settings, open_parts
from fairdrop.embedded import StopSignals, die_with_parent
from fairdrop.schema.migrate import ensure_migrated
from fairdrop.settings import Settings
from fairdrop.worker import Worker


async def run_worker(settings: Settings) -> None:
    """Run the loops until a signal. Raises ConfigurationError or DatabaseUnavailable at the start."""
    if os.environ.get("FAIRDROP_PARENT_DEATH") == "1":
        die_with_parent()
    check_settings(settings)
    async with StopSignals():
        await ensure_migrated(settings.database_url or "")
        async with open_parts(settings) as parts:
            await Worker(parts).run()
