"""Open streams on one push process: memory of each, and how long a change takes to the last of them.

    .venv/bin/python benchmarks/sockets.py [--quick]

``--quick`` measures one change instead of five for each form; the number of streams is the same.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import psutil
import uvloop

from fairdrop.app import Parts, open_parts
from fairdrop.catalog import NewSale, NewVariant
from fairdrop.embedded import remove_data
from fairdrop.ids import new_id
from fairdrop.settings import Settings
from fairdrop.site import Site

STREAMS = 10_000
AT_ONCE = 100
UPGRADE = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
GOALS = {"sse_bytes_each": 20_000, "websocket_bytes_each": 40_000, "fanout_p99_ms": 1_000}


class Client(asyncio.Protocol):
    """One stream; notes when what is looked for has come."""

    sought = b'"free":'
    seen_at: list[float]

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.tail = b""
        self.found = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self.found and Client.sought in self.tail + data:
            self.found = True
            Client.seen_at.append(time.perf_counter())
        self.tail = data[-40:]


def look_for(text: bytes, clients: Sequence[Client]) -> None:
    Client.sought, Client.seen_at = text, []
    for client in clients:
        client.found, client.tail = False, b""


async def all_saw(clients: Sequence[Client], timeout_s: float = 60) -> None:
    async with asyncio.timeout(timeout_s):
        while len(Client.seen_at) < len(clients):  # noqa: ASYNC110 - ten thousand clients share it
            await asyncio.sleep(0.005)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


async def measure(site: Site, parts: Parts, form: str, rounds: int) -> tuple[float, list[float]]:
    """Bytes of each stream, and the 99th percentile in ms of each change."""
    new = NewSale(
        slug=f"sockets-{form}",
        name="Sockets",
        opens_at=datetime.now(UTC) - timedelta(seconds=1),
        currency="EUR",
        variants=(NewVariant("Ticket", "Seat", 1_000, 1_000),),
    )
    _, sale_id = await parts.catalog.create(new, "benchmark")
    sale = await parts.catalog.sale(sale_id)
    assert sale is not None
    pid = site.supervisor.pid_of("push")
    assert pid is not None
    process, loop = psutil.Process(pid), asyncio.get_running_loop()
    port = site.settings.push_port
    clients: list[Client] = []

    async def connect(number: int) -> None:
        cookie = f"Cookie: fairdrop_visitor={parts.visitors.token(f'visitor-{number}')}\r\n"
        head = f"GET /v1/sales/{sale_id}/{form} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{cookie}"
        request = f"{head}{UPGRADE if form == 'socket' else ''}\r\n".encode()
        _, client = await loop.create_connection(lambda: Client(request), "127.0.0.1", port)
        clients.append(client)

    look_for(b'"state":"NOT_ENTERED"', [])
    before = process.memory_info().rss
    for first in range(0, STREAMS, AT_ONCE):
        await asyncio.gather(*(connect(number) for number in range(first, first + AT_ONCE)))
    await all_saw(clients)
    each = (process.memory_info().rss - before) / STREAMS
    say(f"{form}: {STREAMS} open, {each:.0f} bytes each")
    # Loaded by the worker meanwhile, which gave it its epoch.
    parts.catalog.forget(sale_id)
    sale = await parts.catalog.sale(sale_id)
    assert sale is not None
    p99: list[float] = []
    for round_number in range(1, rounds + 1):
        look_for(b'"free":%d' % (1_000 - round_number), clients)
        began = time.perf_counter()
        await parts.inventory.take_late(sale.ref, "buyer", new_id(), {sale.variants[0].id: 1})
        await all_saw(clients)
        took = sorted(1_000 * (at - began) for at in Client.seen_at)
        p99.append(took[int(0.99 * STREAMS) - 1])
        say(f"{form}: a change reached 99 % in {p99[-1]:.0f} ms, all in {took[-1]:.0f} ms")
        await asyncio.sleep(1.0)
    for client in clients:
        client.transport.abort()
    return each, p99


async def run(rounds: int) -> dict[str, Any]:
    data = Path(tempfile.mkdtemp(prefix="fairdrop-sockets-"))
    # One process that accepts them: the rest of a site idles beside it.
    settings = Settings(data_dir=data, store_url=None, database_url=None, port=0)
    try:
        async with Site(settings) as site, open_parts(site.settings) as parts:
            sse, sse_ms = await measure(site, parts, "stream", rounds)
            # A new process: memory that the first form gave back would be counted for the second.
            os.kill(site.supervisor.pid_of("push") or 0, signal.SIGKILL)
            async with asyncio.timeout(30):
                while site.supervisor.restarts("push") == 0:  # noqa: ASYNC110 - nothing tells of it
                    await asyncio.sleep(0.05)
                await site.supervisor.wait_ready("push")
            websocket, websocket_ms = await measure(site, parts, "socket", rounds)
    finally:
        remove_data(data)
    results = {
        "sse_bytes_each": round(sse),
        "websocket_bytes_each": round(websocket),
        "sse_fanout_p99_ms": round(max(sse_ms)),
        "websocket_fanout_p99_ms": round(max(websocket_ms)),
        "fanout_p99_ms": round(max(sse_ms + websocket_ms)),
    }
    return {
        "conditions": {
            "streams_each_form": STREAMS,
            "changes_each_form": rounds,
            "push_processes": 1,
            "python": platform.python_version(),
            "cores": psutil.cpu_count(),
            "load": psutil.getloadavg()[0],
        },
        "results": results,
        "goals": {
            name: {"value": results[name], "goal": goal, "met": results[name] <= goal}
            for name, goal in GOALS.items()
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="end within a minute")
    quick = parser.parse_args().quick
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < STREAMS + 500:
        sys.exit(f"the hard limit of open files is {hard}; this needs {STREAMS + 500} (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, STREAMS + 500), hard))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(run(1 if quick else 5)), indent=2))


if __name__ == "__main__":
    main()
