"""The waiting room at 1,000, 100,000 and 1,000,000 people: what a request costs, and what a person does.

    .venv/bin/python benchmarks/waiting_room.py [--quick]

The server has one core for itself; the load generator, Valkey and PostgreSQL share the other. Joins,
personal statuses and public documents are measured in turn at each size, beside the empty endpoint,
and medians of rounds are compared. Lines are filled by the product's own join script, pipelined; who
joined while measuring is taken out again, so that a size stays what it says.

Goals: a join and a status at a million cost at most 1.3 times what they do at a thousand; the store
keeps a person who waits in less than 250 bytes; 10,000 people who join and read their status, all at
one moment, are served within 1.5 s.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import uvloop

sys.path.insert(0, str(Path(__file__).parent))
from fairdrop.drivers.keys import sale_key
from fairdrop.drivers.store import Script
from fairdrop.ids import new_secret_id
from fairdrop.logs import configure_logs
from hot_path import measure, open_sale, say, site
from load import all_at_one_moment, closed_loop, http

if TYPE_CHECKING:
    from fairdrop.app import Parts
    from fairdrop.catalog import Sale

SIZES = {"1k": 1_000, "100k": 100_000, "1m": 1_000_000}
RUSH = 10_000
FILL_BATCH = 500
FILL_PIPELINE = 20
GOALS = {
    "join_cost_1m_to_1k_ratio": 1.3,
    "status_cost_1m_to_1k_ratio": 1.3,
    "store_bytes_per_waiting": 250,
    "rush_10k_s": 1.5,
}
"""The value is to be at most the goal."""
Line = tuple["Sale", int, list[str]]
"""A sale, how many wait in it, and the visitor tokens of some of them."""


async def new_sale(parts: Parts, name: str) -> Sale:
    """An open sale whose line stands still."""
    return await open_sale(parts, name, rate_per_s=0.001, line_cap_factor=0.0)


async def fill(parts: Parts, sale: Sale, people: int, sample: int) -> list[str]:
    """Join so many people through the script; returns the tokens of a random sample of them."""
    script = Script.load("fairdrop.waiting_room", "join")
    keys = script.keys(*sale.ref)
    redis = parts.store.redis
    await redis.script_load(script.source)
    chosen = set(random.Random(6).sample(range(people), min(sample, people)))
    tokens, joined = [], 0
    while joined < people:
        pipe = redis.pipeline(transaction=False)
        for _ in range(FILL_PIPELINE):
            count = min(FILL_BATCH, people - joined)
            if count <= 0:
                break
            visitors = [new_secret_id() for _ in range(count)]
            tokens += [
                parts.visitors.token(visitor)
                for number, visitor in enumerate(visitors, joined)
                if number in chosen
            ]
            batch = msgspec.msgpack.encode([[visitor, "e" * 22] for visitor in visitors])
            pipe.evalsha(script.sha, len(keys), *keys, "0", batch)
            joined += count
        await pipe.execute()
    return tokens


async def used_bytes(parts: Parts) -> int:
    """Memory that the store uses for data."""
    info: dict[str, Any] = await parts.store.redis.info("memory")
    return int(info["used_memory_dataset"])


async def shrink(parts: Parts, sale: Sale, people: int) -> None:
    """Take whoever joined beyond ``people`` out again, as if they had left."""
    redis = parts.store.redis
    gone = await redis.zremrangebyrank(sale_key(*sale.ref, "line"), people, -1)
    await redis.hincrby(sale_key(*sale.ref, "ctr"), "left", gone)


def requests_of(sale: Sale, method: str, rest: str, tokens: list[str]) -> list[bytes]:
    """A request for each token."""
    path = f"/v1/sales/{sale.id}{rest}"
    return [http(method, path, {"authorization": f"Bearer {token}"}) for token in tokens]


async def measure_round(
    parts: Parts, port: int, lines: dict[str, Line], size: int, rates: dict[str, list[float]]
) -> None:
    """Each step once at each size, and the empty endpoint."""

    async def keep(name: str, requests: list[bytes]) -> None:
        rates.setdefault(name, []).append((await measure(port, name, requests, b"200"))[0])

    token = parts.visitors.new()[1]
    await keep("empty", [http("GET", "/empty", {"authorization": f"Bearer {token}"})] * (2 * size))
    for name, (sale, people, tokens) in lines.items():
        new = [parts.visitors.new()[1] for _ in range(size)]
        await keep(f"join_{name}", requests_of(sale, "POST", "/join", new))
        await shrink(parts, sale, people)
        asking = [tokens[number % len(tokens)] for number in range(size)]
        await keep(f"status_{name}", requests_of(sale, "GET", "/me", asking))
        await keep(f"public_{name}", [http("GET", f"/v1/sales/{sale.id}", {})] * size)


async def measure_pairs(
    parts: Parts, port: int, lines: dict[str, Line], pairs: int, size: int
) -> dict[str, float]:
    """What a request costs at a million against a thousand: short runs, one right after the other.

    Whatever else slows the machine down at a moment slows both of them down.
    """
    small, large = lines["1k"], lines["1m"]
    ratios: dict[str, list[float]] = {"join": [], "status": []}
    for number in range(pairs):
        # The one that goes first changes each time.
        for step, found in ratios.items():
            rate = {}
            for line in (small, large) if number % 2 else (large, small):
                sale, people, tokens = line
                if step == "join":
                    asking = [parts.visitors.new()[1] for _ in range(size)]
                    made = requests_of(sale, "POST", "/join", asking)
                else:
                    asking = [tokens[chosen % len(tokens)] for chosen in range(size)]
                    made = requests_of(sale, "GET", "/me", asking)
                rate[people] = (await closed_loop(port, made)).per_s
                await shrink(parts, sale, people)
            found.append(rate[small[1]] / rate[large[1]])
    return {
        f"{step}_cost_1m_to_1k_ratio": round(statistics.median(found), 3)
        for step, found in ratios.items()
    }


async def rush(parts: Parts, port: int) -> float:
    """Seconds until 10,000 people, each on a connection of their own, have joined and looked."""
    sale = await new_sale(parts, f"rush-{time.monotonic_ns()}")
    tokens = [parts.visitors.new()[1] for _ in range(RUSH)]
    joins = requests_of(sale, "POST", "/join", tokens)
    looks = requests_of(sale, "GET", "/me", tokens)
    measured = await all_at_one_moment(port, list(zip(joins, looks, strict=True)))
    if set(measured.statuses) != {b"200"}:
        raise RuntimeError(f"rush: {dict(measured.statuses)}")
    figures = await parts.inventory.figures(sale.ref, [])
    if figures.waiting != RUSH:
        raise RuntimeError(f"rush: {figures.waiting} people wait")
    say(f"  rush {measured.seconds:.2f} s")
    return measured.seconds


async def measure_all(parts: Parts, port: int, rounds: int, size: int) -> dict[str, Any]:
    """All sizes, the memory, and the rush."""
    lines: dict[str, Line] = {}
    bytes_each = 0.0
    for name, people in SIZES.items():
        say(f"filling a line with {people:,} people")
        sale = await new_sale(parts, name)
        before, began = await used_bytes(parts), time.perf_counter()
        tokens = await fill(parts, sale, people, size)
        say(f"  {people / (time.perf_counter() - began):,.0f}/s")
        bytes_each = (await used_bytes(parts) - before) / people
        lines[name] = (sale, people, tokens)
    rates: dict[str, list[float]] = {}
    await closed_loop(port, requests_of(lines["1k"][0], "GET", "/me", lines["1k"][2]))
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}")
        await measure_round(parts, port, lines, size, rates)
    rushes = [await rush(parts, port) for _ in range(3)]
    middle = {name: statistics.median(values) for name, values in rates.items()}
    results: dict[str, float] = {f"{name}_per_s": round(rate) for name, rate in middle.items()}
    for step in ("join", "status", "public"):
        results[f"{step}_to_empty_ratio"] = round(middle[f"{step}_1m"] / middle["empty"], 3)
    say("pairs")
    results |= await measure_pairs(parts, port, lines, 4 * rounds, 1_000)
    results["store_bytes_per_waiting"] = round(bytes_each, 1)
    results["rush_10k_s"] = round(statistics.median(rushes), 3)
    return results


async def run(*, quick: bool) -> dict[str, Any]:
    """Everything, on services of its own."""
    rounds, size = (3, 3_000) if quick else (5, 10_000)
    async with site(backpressure=2 * RUSH, store_timeout_ms=5_000) as (parts, port):
        results = await measure_all(parts, port, rounds, size)
    return {
        "conditions": {
            "rounds": rounds,
            "requests_a_round": size,
            "waiting": SIZES,
            "rush_connections": RUSH,
            "python": sys.version.split()[0],
            "cores": os.cpu_count(),
            "server_cores": 1,
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
    parser.add_argument("--quick", action="store_true", help="fewer requests, under 60 s")
    arguments = parser.parse_args()
    configure_logs("warning")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(run(quick=arguments.quick)), indent=2))


if __name__ == "__main__":
    main()
