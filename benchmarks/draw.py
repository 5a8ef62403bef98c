"""How long a draw takes, and what others notice of it.

    .venv/bin/python benchmarks/draw.py [--quick]

A lobby of 1,000,000 entrants (100,000 with ``--quick``) shuts, and a worker holds its draw: hashes the
list, writes it to PostgreSQL, computes the order, fills the line. The worker is a process of its own on
one core. On the other core, beside Valkey and PostgreSQL, somebody asks for the status of another
person the whole time, once a millisecond, and somebody calls ``tick`` every 20 ms. Measured are:

- from the window's end to the first person called,
- how many people a second the line is filled with,
- the longest that one of those other requests had to wait, and the longest without a draw.

All goals are kept in both sizes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import uvloop
from pydantic import SecretStr

from fairdrop.app import Parts, open_parts
from fairdrop.catalog import NewSale, NewVariant, Sale
from fairdrop.draw import Step
from fairdrop.drivers.keys import sale_key
from fairdrop.drivers.store import Store
from fairdrop.embedded import Durability, EmbeddedServices
from fairdrop.ids import SaleRef, new_secret_id
from fairdrop.logs import configure_logs
from fairdrop.schema.migrate import migrate
from fairdrop.settings import Settings
from fairdrop.waiting_room import WaitingRoom, new_signing_key

GOALS = {
    "window_end_to_first_call_s": (5.0, "most"),
    "fill_per_s": (50_000.0, "least"),
    "other_request_longest_ms": (50.0, "most"),
}
ASK_EVERY_S, TICK_EVERY_S = 0.001, 0.02


def say(text: str) -> None:
    """Progress, for people."""
    print(text, file=sys.stderr, flush=True)


def pin(core: int) -> None:
    """Keep this process on one core, where the system lets it."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[core % len(cores)]})


def settings_of(store_url: str, database_url: str) -> Settings:
    return Settings(
        store_url=store_url,
        database_url=database_url,
        visitor_key=SecretStr("v" * 40),
        signing_keys=SecretStr(new_signing_key()),
        store_timeout_ms=30_000,
    )


async def make_sale(parts: Parts) -> Sale:
    """A sale with its lobby open and a pace that lets everybody in at once."""
    new = NewSale(
        slug=f"draw-{new_secret_id().lower().replace('_', 'x').replace('-', 'y')}",
        name="Draw",
        opens_at=datetime.now(UTC) + timedelta(hours=1),
        currency="EUR",
        variants=(NewVariant("Ticket", "Standing", 1_000, 1_000),),
        lobby_ms=7_200_000,
        rate_per_s=1_000.0,
        line_cap_factor=0.0,
    )
    _, sale_id = await parts.catalog.create(new, "benchmark")
    sale = await parts.catalog.sale(sale_id)
    assert sale is not None
    sale = await parts.loader.keep_loaded(sale)
    await parts.waiting_room.tick(sale.ref)
    return sale


async def enter(store: Store, sale: SaleRef, people: int) -> None:
    """People in the lobby, as ``join`` leaves them, written straight into the store."""
    redis = store.redis
    for first in range(0, people, 5_000):
        several = [(new_secret_id(), new_secret_id()) for _ in range(min(5_000, people - first))]
        await redis.rpush(sale_key(*sale, "lobby"), *(entry + who for entry, who in several))
        mapping: dict[Any, Any] = {who: entry for entry, who in several}
        await redis.hset(sale_key(*sale, "entrant"), mapping=mapping)
    counters: dict[Any, Any] = {"seq": people, "joined": people, "lobby": people}
    await redis.hset(sale_key(*sale, "ctr"), mapping=counters)


async def worker(store_url: str, database_url: str, sale_id: str, epoch: int) -> None:
    """The worker's process: waits for a line on its input, then holds the draw."""
    pin(0)
    async with open_parts(settings_of(store_url, database_url)) as parts:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        assert await parts.draws.hold(SaleRef(sale_id, epoch)) is Step.FILLED
        print("filled", flush=True)


class Watch:
    """Other requests, one after the other, and how long the longest took."""

    def __init__(self, room: WaitingRoom, sale: SaleRef) -> None:
        """``sale`` is not the one that is drawn."""
        self._room, self._sale = room, sale
        self.waits_ms: list[float] = []
        self.stopped = False

    async def run(self) -> None:
        """Ask until stopped."""
        while not self.stopped:
            began = time.perf_counter()
            await self._room.status(self._sale, "somebody")
            self.waits_ms.append((time.perf_counter() - began) * 1_000)
            await asyncio.sleep(ASK_EVERY_S)

    async def longest_in(self, seconds: float) -> float:
        """The longest wait of a while."""
        task = asyncio.create_task(self.run())
        await asyncio.sleep(seconds)
        self.stopped = True
        await task
        return max(self.waits_ms)


async def filled(store: Store, sale: SaleRef) -> int:
    """How many places of the draw are in the line."""
    got: Any = await store.redis.hget(sale_key(*sale, "ctr"), "filled")
    return int(got or 0)


async def measure(parts: Parts, urls: tuple[str, str], people: int) -> dict[str, float]:
    """One draw."""
    say(f"making {people:,} entrants")
    sale, other = await make_sale(parts), await make_sale(parts)
    await enter(parts.store, sale.ref, people)
    quiet = await Watch(parts.waiting_room, other.ref).longest_in(2.0)
    process = subprocess.Popen(
        [sys.executable, __file__, "--worker", *urls, sale.id, str(sale.epoch)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert await asyncio.to_thread(process.stdout.readline) == "ready\n"
    watch = Watch(parts.waiting_room, other.ref)
    watching = asyncio.create_task(watch.run())
    await parts.store.redis.config_set("slowlog-log-slower-than", 1_000)
    await parts.store.redis.slowlog_reset()
    say("the window ends")
    await parts.store.redis.hset(sale_key(*sale.ref, "cfg"), "opens_ms", 1)
    await parts.waiting_room.tick(sale.ref)
    began = time.perf_counter()
    process.stdin.write("go\n")
    process.stdin.flush()
    first_call = first_fill = done = 0.0
    while not done:
        await asyncio.sleep(TICK_EVERY_S)
        called = 0 if first_call else (await parts.waiting_room.tick(sale.ref)).called
        now = time.perf_counter() - began
        have = await filled(parts.store, sale.ref)
        if have and not first_fill:
            first_fill = now
        if called:
            first_call = now
        if have == people and first_call:
            done = now
        assert process.poll() in {None, 0}, "the worker died"
    assert await asyncio.to_thread(process.stdout.readline) == "filled\n"
    published = time.perf_counter() - began
    watch.stopped = True
    await watching
    process.wait(30)
    slow: Any = await parts.store.redis.slowlog_get(128)
    used: Any = await parts.store.redis.info("memory")
    return {
        "window_end_to_first_call_s": round(first_call, 2),
        "window_end_to_last_filled_s": round(done, 2),
        "window_end_to_published_s": round(published, 2),
        "fill_per_s": round(people / max(TICK_EVERY_S, done - first_fill)),
        "other_request_longest_ms": round(max(watch.waits_ms), 1),
        "other_request_longest_without_a_draw_ms": round(quiet, 1),
        "store_longest_command_ms": max((each["duration"] for each in slow), default=0) / 1_000,
        "other_requests": len(watch.waits_ms),
        "store_mb_after": round(used["used_memory"] / 1e6),
    }


async def run(*, quick: bool) -> dict[str, Any]:
    """Everything, on services of its own."""
    people = 100_000 if quick else 1_000_000
    pin(1)
    with tempfile.TemporaryDirectory(prefix="fairdrop-bench-") as folder:
        async with EmbeddedServices(
            Path(folder) / "data", durability=Durability.PROCESS_DEATH
        ) as services:
            await migrate(services.database_url)
            urls = services.store_url, services.database_url
            async with open_parts(settings_of(*urls)) as parts:
                results = await measure(parts, urls, people)
    return {
        "conditions": {
            "cores": os.cpu_count(),
            "entrants": people,
            "worker_cores": 1,
            "beacon": "none",
        },
        "results": results,
        "goals": {
            name: {
                "value": results[name],
                "goal": goal,
                "met": results[name] <= goal if kind == "most" else results[name] >= goal,
            }
            for name, (goal, kind) in GOALS.items()
        },
    }


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100,000 entrants, under 60 s")
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    configure_logs("warning")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if arguments.worker:
            store_url, database_url, sale_id, epoch = arguments.worker
            runner.run(worker(store_url, database_url, sale_id, int(epoch)))
            return
        print(json.dumps(runner.run(run(quick=arguments.quick)), indent=2))


if __name__ == "__main__":
    main()
