"""A worker process is killed while it fills the line: the next one ends with the same order (W3, W4)."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fairdrop.app import Parts, open_parts
from fairdrop.catalog import Sale
from fairdrop.draw import DrawState, verify
from fairdrop.drivers.keys import sale_key
from fairdrop.embedded import BackgroundServices
from fairdrop.ids import new_id, new_secret_id
from fairdrop.schema.migrate import migrate
from fairdrop.settings import Settings
from tests.integration.checkout.shop import new_database
from tests.integration.control_plane.own_parts import SIGNING_KEY, settings_for
from tests.integration.draw.lobbies import in_line, published, with_a_lobby

PEOPLE = 60_000
PATIENCE_S = 60


@contextmanager
def running_worker(settings: Settings) -> Iterator[subprocess.Popen[bytes]]:
    """`fairdrop worker` as a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-m", "fairdrop", "worker"],
        env={
            **os.environ,
            "FAIRDROP_STORE_URL": settings.store_url or "",
            "FAIRDROP_DATABASE_URL": settings.database_url or "",
            "FAIRDROP_VISITOR_KEY": "v" * 40,
            "FAIRDROP_SIGNING_KEYS": SIGNING_KEY,
            "FAIRDROP_STORE_TIMEOUT_MS": "30000",
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def fill_lobby(parts: Parts, sale: Sale) -> dict[str, str]:
    """A crowd in the lobby, as ``join`` leaves it: entry id -> visitor."""
    crowd = {new_secret_id(): new_secret_id() for _ in range(PEOPLE)}
    redis, items = parts.store.redis, [*crowd.items()]
    for first in range(0, PEOPLE, 5_000):
        several = items[first : first + 5_000]
        await redis.rpush(sale_key(*sale.ref, "lobby"), *(e + v for e, v in several))
        mapping: dict[Any, Any] = {visitor: entry for entry, visitor in several}
        await redis.hset(sale_key(*sale.ref, "entrant"), mapping=mapping)
    counters: dict[Any, Any] = {"seq": PEOPLE, "joined": PEOPLE, "lobby": PEOPLE}
    await redis.hset(sale_key(*sale.ref, "ctr"), mapping=counters)
    return crowd


async def filled(parts: Parts, sale: Sale) -> int:
    got: Any = await parts.store.redis.hget(sale_key(*sale.ref, "ctr"), "filled")
    return int(got or 0)


async def state(parts: Parts, sale: Sale) -> str:
    record = await parts.draws.record(sale.id)
    return "" if record is None else record.state


async def test_the_next_worker_goes_on_to_the_same_order(services: BackgroundServices) -> None:
    database_url = await new_database(services.database_url, f"draw_{new_id()}")
    await migrate(database_url)
    settings = settings_for(services, database_url)
    async with open_parts(settings) as parts:
        # Nobody is called: the line shows the whole order.
        sale = await with_a_lobby(parts, rate_per_s=0.001, burst_ms=0)
        crowd = await fill_lobby(parts, sale)
        deadline = time.monotonic() + PATIENCE_S
        with running_worker(settings) as worker:
            await parts.store.redis.hset(sale_key(*sale.ref, "cfg"), "opens_ms", 1)
            while not await filled(parts, sale):
                assert time.monotonic() < deadline
                await asyncio.sleep(0.001)
            worker.send_signal(signal.SIGKILL)
            worker.wait()
        at_death = await filled(parts, sale)
        assert 0 < at_death < PEOPLE, "the worker was not killed in its middle"
        half = await in_line(parts, sale)
        assert await state(parts, sale) == DrawState.DRAWN
        with running_worker(settings):
            while await state(parts, sale) != DrawState.FILLED:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.05)
        files = await published(parts, sale)
        assert verify(files).findings == []
        order = [crowd[line.split()[1]] for line in (files.order or b"").decode().splitlines()]
        # The rate, a person in a quarter of an hour, lets one in at the most.
        whole = await in_line(parts, sale)
        assert whole in (order, order[1:])
        assert half in (order[:at_death], order[1:at_death])
