"""``fairdrop worker``: the background loops, against services that run already."""

from __future__ import annotations

import os

from fairdrop.app import open_parts
from fairdrop.embedded import StopSignals, die_with_parent
from fairdrop.settings import Settings
from fairdrop.worker import Worker


async def run_worker(settings: Settings) -> None:
    """Run the loops until a signal. Raises ConfigurationError or DatabaseUnavailable at the start."""
    if os.environ.get("FAIRDROP_PARENT_DEATH") == "1":
        die_with_parent()
    async with StopSignals(), open_parts(settings) as parts:
        await Worker(parts).run()
