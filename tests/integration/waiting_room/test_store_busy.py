"""A store that is busy is not a store that is away (W14)."""

from __future__ import annotations

import asyncio

from fairdrop.drivers.store import CONNECTIONS, Store
from fairdrop.waiting_room import WaitingRoom
from tests.driven_sale import DrivenSale


async def test_more_calls_at_once_than_connections_wait_their_turn(
    sale: DrivenSale, store_url: str
) -> None:
    """Many sales at one moment, each with a batch of its own."""
    await sale.load()
    store = Store(store_url, timeout_s=30)
    room = WaitingRoom(store)
    answers = await asyncio.gather(*(room.tick(sale.ref) for _ in range(3 * CONNECTIONS)))
    assert {answer.status for answer in answers} == {"OK"}
    await store.close()
