"""A push process in the test's own process: the real server on a port of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from fairdrop.app import open_parts
from fairdrop.embedded import BackgroundServices
from tests.integration.control_plane.own_parts import client, database_url, parts, settings_for
from tests.integration.push.listening import Push

__all__ = ["client", "database_url", "parts"]

StartPush = Callable[..., Any]


@pytest.fixture
async def start_push(services: BackgroundServices, database_url: str) -> AsyncIterator[StartPush]:
    """``await start_push(push_connections=2)``: one more push process, with these settings."""

    @asynccontextmanager
    async def running(**settings: Any) -> AsyncIterator[Push]:
        async with open_parts(settings_for(services, database_url, **settings)) as own:
            push = Push(own)
            await push.start()
            yield push
            await push.stop()

    async with AsyncExitStack() as stack:

        async def start(**settings: Any) -> Push:
            return await stack.enter_async_context(running(**settings))

        yield start


@pytest.fixture
async def push(start_push: StartPush) -> Push:
    started: Push = await start_push()
    return started
