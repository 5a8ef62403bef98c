"""Many connections at once, and what they do to one number."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from fairdrop.drivers.store import Store

Result = TypeVar("Result")


@asynccontextmanager
async def connections(store_url: str, number: int) -> AsyncIterator[list[Store]]:
    """Stores with a connection of their own each, open already, so that nobody comes late."""
    stores = [Store(store_url, timeout_s=30) for _ in range(number)]
    try:
        await asyncio.gather(*(store.ping() for store in stores))
        yield stores
    finally:
        for store in stores:
            await store.close()


async def all_at_once(
    stores: list[Store], act: Callable[[Store, int], Awaitable[Result]]
) -> list[Result]:
    """``act`` for every connection at the same time."""
    return await asyncio.gather(*(act(store, number) for number, store in enumerate(stores)))
