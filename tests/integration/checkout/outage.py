"""Services of one test alone, whose processes it may kill."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from fairdrop.embedded import Durability, EmbeddedServices
from fairdrop.schema.migrate import migrate
from tests.integration.checkout.scripted_gateway import ScriptedGateway
from tests.integration.checkout.shop import Shop, new_shop, shop_parts


@dataclass
class Frail:
    """A shop, and the means to break what it stands on."""

    shop: Shop
    services: EmbeddedServices

    def kill(self, name: str) -> None:
        """Kill -9; the supervisor starts it again."""
        pid = self.services.supervisor.pid_of(name)
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    @asynccontextmanager
    async def frozen(self, name: str) -> AsyncIterator[None]:
        """The process hangs inside the block."""
        pid = self.services.supervisor.pid_of(name)
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    async def until_ready(self, name: str, restarts: int) -> None:
        async with asyncio.timeout(60):
            while self.services.supervisor.restarts(
                name
            ) < restarts or not self.services.supervisor.is_ready(name):
                await asyncio.sleep(0.01)


@asynccontextmanager
async def frail_shop(tmp_path: Path, *stock: int, **settings: object) -> AsyncIterator[Frail]:
    """A sale on services of its own."""
    gateway = ScriptedGateway()
    async with EmbeddedServices(tmp_path / "data", durability=Durability.PROCESS_DEATH) as services:
        await migrate(services.database_url)
        async with shop_parts(
            services.store_url, services.database_url, gateway, **settings
        ) as parts:
            yield Frail(await new_shop(parts, gateway, *stock), services)
