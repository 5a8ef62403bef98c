"""What the store's scripts cost when much is in the store, by the server's own clock.

    .venv/bin/python benchmarks/store_at_depth.py [--quick]

Two questions. Does a reservation cost more when 500,000 holds are there than when 1,000 are
(case 40: a tenth more at the most)? And how long does the store stop for one run of ``tick`` or
``expire`` when 200,000 deadlines have passed at one moment (case 37: 5 ms at the most)? The time of
a script is read from ``INFO commandstats``, before and after each call: no client, no connection
and no event loop is in it. Shallow and deep calls take turns, and medians are compared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop

from fairdrop.drivers.keys import sale_key
from fairdrop.drivers.sale_scripts import SaleScript
from fairdrop.drivers.store import Store
from fairdrop.embedded import Durability, EmbeddedServices
from fairdrop.ids import SaleRef
from fairdrop.inventory import Inventory, ReserveRequest, VariantLoad
from fairdrop.inventory.model import Expired, Released, Reserved
from fairdrop.inventory.service import LOOK_AGAIN_MS, SWEEP_LIMIT, SWEEP_UNITS
from fairdrop.waiting_room.model import Ticked
from fairdrop.waiting_room.service import TICK_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

GOALS = {"reserve_deep_to_shallow_ratio": 1.10, "tick_p99_ms": 5.0, "expire_p99_ms": 5.0}
CONFIG: dict[str, str | int] = {
    "mode": "open",
    "rate_milli": 0,
    "cap": 1_000,
    "claim_ttl_ms": 60_000,
    "lease_ttl_ms": 300_000,
    "hold_ttl_ms": 600_000,
    "order_limit": 4,
    "buyer_limit": 4,
}
BATCH = 64
SHALLOW, DEEP, EXPIRED = 1_000, 500_000, 200_000


def say(text: str) -> None:
    """Progress, for people."""
    print(text, file=sys.stderr, flush=True)


class Measured:
    """Scripts of one store, with the server's own time of each call."""

    def __init__(self, store: Store) -> None:
        """Load the scripts that are measured, and those that make the depth."""
        self.store = store
        self.inventory = Inventory(store)
        self.reserve = SaleScript(store, "fairdrop.inventory", "reserve", Reserved)
        self.release = SaleScript(store, "fairdrop.inventory", "release", Released)
        self.expire = SaleScript(store, "fairdrop.inventory", "expire", Expired)
        self.tick = SaleScript(store, "fairdrop.waiting_room", "tick", Ticked)

    async def used_us(self) -> int:
        """Microseconds that the server has spent in scripts so far."""
        stats = await self.store.redis.info("commandstats")
        rows = (stats.get(f"cmdstat_{name}") for name in ("eval", "evalsha"))
        return sum(row["usec"] for row in rows if row)

    async def make_sale(self, name: str, holds: int, *, deadline_in_ms: int = 0) -> SaleRef:
        """A sale with so many holds of one unit; their deadline counts from the holds' own TTL."""
        sale = SaleRef(name, 1)
        await self.inventory.load(sale, 1, CONFIG, [VariantLoad("seat", 2_000_000, 2_000_000)])
        made_at_ms = int(time.time() * 1_000) + deadline_in_ms
        for numbers in chunks(range(holds), 500):
            requests = [_late(f"hold-{number}") for number in numbers]
            await self.reserve(sale, requests, now_ms=made_at_ms)
        return sale

    async def admit(self, sale: SaleRef, buyers: Sequence[str]) -> None:
        """People inside, as ``claim`` leaves them."""
        lease_ms = int(time.time() * 1_000) + 3_600_000
        redis = self.store.redis
        await redis.zadd(sale_key(*sale, "active"), dict.fromkeys(buyers, lease_ms))
        await redis.hset(
            sale_key(*sale, "adm"), mapping={buyer: f"adm-{buyer}:1" for buyer in buyers}
        )


def chunks(numbers: range, size: int) -> Iterable[range]:
    """The numbers in pieces."""
    return (numbers[start : start + size] for start in range(0, len(numbers), size))


def _late(hold: str) -> ReserveRequest:
    return ReserveRequest(hold, None, hold, "", "", ["seat", 1])


async def reserve_us(scripts: Measured, sale: SaleRef, round_: int) -> int:
    """One batch of reservations, given back afterwards so that the depth stays."""
    buyers = [f"buyer-{number}" for number in range(BATCH)]
    requests = [
        ReserveRequest(
            buyer, f"adm-{buyer}", f"{round_}-{buyer}", f"key-{round_}", "f", ["seat", 1]
        )
        for buyer in buyers
    ]
    before = await scripts.used_us()
    reply = await scripts.reserve(sale, requests)
    spent = await scripts.used_us() - before
    assert {answer.outcome for answer in reply.outcomes} == {"RESERVED"}
    await scripts.release(sale, [(f"{round_}-{buyer}", buyer, []) for buyer in buyers])
    return spent


async def measure_depth(scripts: Measured, rounds: int) -> dict[str, float]:
    """Case 40."""
    say(f"making {DEEP:,} holds")
    sales = {
        "shallow": await scripts.make_sale("shallow", SHALLOW),
        "deep": await scripts.make_sale("deep", DEEP),
    }
    for sale in sales.values():
        await scripts.admit(sale, [f"buyer-{number}" for number in range(BATCH)])
    say(f"{rounds} batches of {BATCH} at each depth")
    spent: dict[str, list[int]] = {name: [] for name in sales}
    for round_ in range(rounds):
        for name, sale in sales.items():
            spent[name].append(await reserve_us(scripts, sale, round_))
    shallow, deep = (statistics.median(spent[name]) / BATCH for name in ("shallow", "deep"))
    return {
        "reserve_shallow_us": round(shallow, 2),
        "reserve_deep_us": round(deep, 2),
        "reserve_deep_to_shallow_ratio": round(deep / shallow, 3),
    }


async def measure_tick(scripts: Measured) -> list[float]:
    """Case 37, the line: everybody who was called is absent at once."""
    say(f"{EXPIRED:,} people miss their call at one moment")
    sale = await scripts.make_sale("absent", 0)
    redis = scripts.store.redis
    for numbers in chunks(range(EXPIRED), 5_000):
        people: dict[Any, Any] = {f"visitor-{number}": number for number in numbers}
        await redis.zadd(sale_key(*sale, "called"), dict.fromkeys(people, 1))
        await redis.hset(sale_key(*sale, "place"), mapping=people)
    return await _runs(scripts, scripts.tick, sale, [TICK_LIMIT])


async def measure_expire(scripts: Measured) -> list[float]:
    """Case 37, the holds: all reservations are over at once."""
    say(f"{EXPIRED:,} reservations are over at one moment")
    sale = await scripts.make_sale("over", 0)
    # An admission is what makes a hold one that the sweep ends by itself.
    for numbers in chunks(range(EXPIRED), 500):
        buyers = [f"buyer-{number}" for number in numbers]
        await scripts.admit(sale, buyers)
        requests = [
            ReserveRequest(buyer, f"adm-{buyer}", f"hold-{buyer}", "key", "f", ["seat", 2])
            for buyer in buyers
        ]
        await scripts.reserve(sale, requests)
    later_ms = int(time.time() * 1_000) + 3_600_000
    batch = [SWEEP_LIMIT, LOOK_AGAIN_MS, SWEEP_UNITS]
    return await _runs(scripts, scripts.expire, sale, batch, now_ms=later_ms)


async def _runs(
    scripts: Measured, script: SaleScript[Any], sale: SaleRef, batch: list[int], now_ms: int = 0
) -> list[float]:
    """Milliseconds of each run until there is no more to do."""
    runs, more = [], True
    while more:
        before = await scripts.used_us()
        more = (await script(sale, batch, now_ms=now_ms)).more
        runs.append((await scripts.used_us() - before) / 1_000)
    return runs


async def run(*, quick: bool) -> dict[str, Any]:
    """Everything, on a store of its own."""
    with tempfile.TemporaryDirectory(prefix="fairdrop-bench-") as folder:
        async with EmbeddedServices(
            Path(folder) / "data",
            durability=Durability.PROCESS_DEATH,
            external_database_url="postgresql://not-needed",
        ) as services:
            store = Store(services.store_url, timeout_s=30)
            scripts = Measured(store)
            results = await measure_depth(scripts, 100 if quick else 400)
            for name, runs in (
                ("tick", await measure_tick(scripts)),
                ("expire", await measure_expire(scripts)),
            ):
                results[f"{name}_median_ms"] = round(statistics.median(runs), 3)
                results[f"{name}_p99_ms"] = round(sorted(runs)[int(len(runs) * 0.99)], 3)
                results[f"{name}_longest_ms"] = round(max(runs), 3)
                results[f"{name}_runs"] = len(runs)
            await store.close()
    return {
        "conditions": {
            "cores": len(os.sched_getaffinity(0)),
            "batch": BATCH,
            "shallow_holds": SHALLOW,
            "deep_holds": DEEP,
            "expired": EXPIRED,
            "tick_limit": TICK_LIMIT,
            "sweep_limit": SWEEP_LIMIT,
        },
        "results": results,
        "goals": {
            name: {"value": results[name], "goal": goal, "met": results[name] <= goal}
            for name, goal in GOALS.items()
        },
    }


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer batches, under 60 s")
    arguments = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(run(quick=arguments.quick)), indent=2))


if __name__ == "__main__":
    main()
