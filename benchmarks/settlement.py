"""Orders settled per second: coalesced, one transaction an order, and one hot stock row.

    .venv/bin/python benchmarks/settlement.py [--quick]

The coalesced one is the product's own path, ``Settlement.drain``, on pre-filled orders and stored
webhooks, told to the store and all. The other two (``settlement_baselines``) get the number of
connections that suits each best. Rounds are interleaved, every round has fresh orders, and the
medians of rounds are compared. Nobody is pinned: each contender may use all cores as it can.
Goals: 10 times the first, 15 times the second.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import uvloop

sys.path.insert(0, str(Path(__file__).parent))
from fairdrop.app import Parts, open_parts
from fairdrop.embedded import Durability, EmbeddedServices, remove_data
from fairdrop.schema.migrate import migrate
from fairdrop.settings import Settings
from fairdrop.waiting_room import new_signing_key
from settlement_baselines import HOT_ROW_TABLE, HotRow, Single
from settlement_orders import Orders

GOALS = {"coalesced_to_single_ratio": 10.0, "coalesced_to_hot_row_ratio": 15.0}
CONNECTIONS = (1, 2, 4, 8)

Settle = Callable[[], Awaitable[object]]


def say(text: str) -> None:
    """Progress, for people."""
    print(text, file=sys.stderr, flush=True)


class Contest:
    """Measures contenders on equal terms."""

    def __init__(self, parts: Parts) -> None:
        """Take the parts."""
        self.parts = parts
        self._chance = random.Random(7)
        self._settled: dict[str, int] = {}

    async def measure(self, name: str, orders: Orders, count: int, settle: Settle) -> float:
        """Orders per second of one contender on ``count`` fresh orders, checked afterwards."""
        await orders.fill(count, self._chance)
        await self._level()
        began = time.perf_counter()
        await settle()
        per_s = count / (time.perf_counter() - began)
        self._settled[orders.sale.id] = self._settled.get(orders.sale.id, 0) + count
        await orders.check(self._settled[orders.sale.id])
        say(f"  {name:24}{per_s:10,.0f}/s")
        return per_s

    async def _level(self) -> None:
        """Nobody pays for the garbage of those before.

        No checkpoint: whoever comes after one writes every page in full, which says nothing about
        settling.
        """
        gc.collect()
        async with self.parts.database.connection() as connection:
            await connection.execute("ANALYZE", timeout=120)


async def run(*, quick: bool, durability: Durability) -> dict[str, Any]:
    """All rounds."""
    directory = Path(tempfile.mkdtemp(prefix="fairdrop-bench-"))
    try:
        async with EmbeddedServices(directory / "data", durability=durability) as services:
            await migrate(services.database_url)
            settings = Settings(
                store_url=services.store_url,
                database_url=services.database_url,
                visitor_key="benchmark" * 5,
                signing_keys=new_signing_key(),
                store_timeout_ms=30_000,
                database_connections=max(CONNECTIONS) + 2,
            )
            async with open_parts(settings) as parts:
                results = await _rounds(Contest(parts), quick=quick)
    finally:
        remove_data(directory / "data")
        directory.rmdir()
    results["conditions"] |= {
        "durability": durability.name.lower(),
        "python": sys.version.split()[0],
        "cores": os.cpu_count(),
    }
    return results


async def _rounds(contest: Contest, *, quick: bool) -> dict[str, Any]:
    rounds, many, few = (3, 10_000, 1_000) if quick else (7, 30_000, 3_000)
    parts = contest.parts
    units = 2 * (rounds + len(CONNECTIONS)) * many
    coalesced = await Orders.open(parts, "coalesced", units)
    single = await Orders.open(parts, "single", units)
    hot_row = await Orders.open(parts, "hot-row", units)
    async with parts.database.connection() as connection:
        await connection.execute(HOT_ROW_TABLE)
        await connection.execute("INSERT INTO bench_stock VALUES ($1, 0)", UUID(hot_row.sale.id))

    say("warming up, and finding how many connections suit the baselines")
    contenders: dict[str, tuple[Orders, int, Settle]] = {
        "coalesced": (coalesced, many, parts.settlement.drain)
    }
    await contest.measure("coalesced", coalesced, few, parts.settlement.drain)
    best: dict[str, int] = {}
    baselines = {"single": (single, Single(parts)), "hot row": (hot_row, HotRow(parts))}
    for name, (orders, baseline) in baselines.items():
        tried = {
            connections: await contest.measure(
                f"{name}, {connections} connections",
                orders,
                few,
                partial(baseline.settle_all, connections),
            )
            for connections in CONNECTIONS
        }
        best[name] = max(tried, key=tried.__getitem__)
        contenders[name] = (orders, few, partial(baseline.settle_all, best[name]))
    rates: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}")
        for name, (orders, count, settle) in contenders.items():
            rates[name].append(await contest.measure(name, orders, count, settle))
    middle = {name: statistics.median(values) for name, values in rates.items()}
    results = {
        "coalesced_orders_per_s": round(middle["coalesced"]),
        "single_orders_per_s": round(middle["single"]),
        "hot_row_orders_per_s": round(middle["hot row"]),
        "coalesced_to_single_ratio": round(middle["coalesced"] / middle["single"], 2),
        "coalesced_to_hot_row_ratio": round(middle["coalesced"] / middle["hot row"], 2),
    }
    return {
        "conditions": {
            "rounds": rounds,
            "orders_a_round": {"coalesced": many, "single": few, "hot_row": few},
            "best_of_connections": list(CONNECTIONS),
            "single_connections": best["single"],
            "hot_row_connections": best["hot row"],
        },
        "results": results,
        "goals": {
            name: {"value": results[name], "goal": goal, "met": results[name] >= goal}
            for name, goal in GOALS.items()
        },
    }


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer orders, under 60 s")
    parser.add_argument(
        "--no-sync",
        action="store_true",
        help="without waiting for the disk at a commit (helps the baselines most)",
    )
    arguments = parser.parse_args()
    durability = Durability.PROCESS_DEATH if arguments.no_sync else Durability.POWER_LOSS
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        result = runner.run(run(quick=arguments.quick, durability=durability))
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
