"""A server of a test, for the browser to visit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import uvicorn


@asynccontextmanager
async def served(app: Any, origin: str) -> AsyncIterator[None]:
    """The application at this origin's port, stopped whatever comes of the test."""
    port = urlsplit(origin).port
    assert port is not None
    server = uvicorn.Server(
        uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", lifespan="off")
    )
    task = asyncio.create_task(server.serve())
    try:
        while not server.started:
            assert not task.done(), "the server has ended"
            await asyncio.sleep(0.01)
        yield
    finally:
        server.should_exit = True
        await task
