"""Open streams on one push process: memory of each, how soon all see a change, and people their turn.

    .venv/bin/python benchmarks/sockets.py [--quick]

Each stream is a visitor with a token of their own. First some of them wait in the line and are called
at a pace of so many a second; then all of them at once, by a pace that lets everybody in. Called is the
store's time of the tick that called them, which is their claim deadline without the claim window; told
is when their client has read the message that says READY. The worker that calls, the store and the
clients share the machine with the push process.

``--quick`` measures one change instead of five for each form, and one crowd instead of three; the
number of streams is the same.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import re
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, cast

import psutil
import uvloop

from fairdrop.app import Parts, open_parts
from fairdrop.catalog import NewSale, NewVariant, Sale, Steer
from fairdrop.embedded import remove_data
from fairdrop.ids import new_id
from fairdrop.logs import configure_logs
from fairdrop.settings import Settings
from fairdrop.site import Site

STREAMS = 10_000
AT_ONCE = 100
UPGRADE = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
PACED = 500
PACE_PER_S = 100
AT_ONCE_PER_S = 1_000_000
"""A pace that calls everybody in one tick."""
CLAIM_BY = re.compile(rb'"claim_by_ms":(\d+)')
GOALS = {
    "sse_bytes_each": 20_000,
    "websocket_bytes_each": 40_000,
    "fanout_p99_ms": 1_000,
    "ready_p99_ms": 1_000,
}


class Client(asyncio.Protocol):
    """One stream; notes when what is looked for has come."""

    sought = b'"free":'
    seen_at: list[float]
    seen: list[bytes]

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
            Client.seen_at.append(time.time())
            Client.seen.append(data)
        self.tail = data[-40:]


class Measured(NamedTuple):
    """What was found of one form: bytes of a stream; ms of changes, and of people who were called."""

    bytes_each: float
    fanout_p99_ms: list[float]
    paced_ms: list[float]
    crowds_ms: list[list[float]]

    def results(self, name: str) -> dict[str, int]:
        """The figures under this form's name; the slowest round of each."""
        return {
            f"{name}_bytes_each": round(self.bytes_each),
            f"{name}_fanout_p99_ms": round(max(self.fanout_p99_ms)),
            f"{name}_ready_paced_p99_ms": round(percentile(self.paced_ms, 0.99)),
            f"{name}_ready_at_once_p99_ms": round(max(percentile(c, 0.99) for c in self.crowds_ms)),
            f"{name}_ready_max_ms": round(max(map(max, [self.paced_ms, *self.crowds_ms]))),
        }


def look_for(text: bytes, clients: Sequence[Client]) -> None:
    Client.sought, Client.seen_at, Client.seen = text, [], []
    for client in clients:
        client.found, client.tail = False, b""


async def all_saw(people: int, timeout_s: float = 60) -> None:
    async with asyncio.timeout(timeout_s):
        while len(Client.seen_at) < people:  # noqa: ASYNC110 - ten thousand clients share it
            await asyncio.sleep(0.005)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[max(0, int(share * len(values)) - 1)]


async def open_sale(parts: Parts, form: str) -> str:
    """A sale that the line is not too long for; its id."""
    new = NewSale(
        slug=f"sockets-{form}",
        name="Sockets",
        opens_at=datetime.now(UTC) - timedelta(seconds=1),
        currency="EUR",
        rate_per_s=PACE_PER_S,
        cap=2 * STREAMS,
        line_cap_factor=0,
        variants=(NewVariant("Ticket", "Seat", 1_000, 1_000),),
    )
    return (await parts.catalog.create(new, "benchmark"))[1]


async def steer(parts: Parts, sale: Sale, step: Steer, pace_per_s: float | None = None) -> None:
    """Let the worker do so, and wait until the store has it."""
    if pace_per_s is not None:
        await parts.catalog.change(sale.id, {"rate_per_s": pace_per_s}, "benchmark")
    assert await parts.catalog.steer(sale.id, step, "benchmark")
    mode = {Steer.PAUSE: "paused", Steer.RESUME: "open"}[step]
    async with asyncio.timeout(30):
        while (await parts.inventory.figures(sale.ref, [])).mode != mode:  # noqa: ASYNC110 - it polls
            await asyncio.sleep(0.02)


async def call(
    parts: Parts, sale: Sale, clients: Sequence[Client], people: int, pace_per_s: float
) -> list[float]:
    """So many of the visitors wait, and are called at that pace; how long each was not told, in ms."""
    await steer(parts, sale, Steer.PAUSE, pace_per_s)
    visitors = [f"visitor-{number}" for number in range(STREAMS)]
    await asyncio.gather(*(parts.waiting_room.leave(sale.ref, visitor) for visitor in visitors))
    waiting = visitors[:people]
    await asyncio.gather(*(parts.waiting_room.join(sale.ref, visitor) for visitor in waiting))
    look_for(b'"state":"READY"', clients)
    await steer(parts, sale, Steer.RESUME)
    await all_saw(people)
    took = []
    for told_at, text in zip(Client.seen_at, Client.seen, strict=True):
        found = CLAIM_BY.search(text)
        assert found is not None
        took.append(1_000 * told_at - (int(found.group(1)) - sale.claim_ttl_ms))
    return took


async def measure(site: Site, parts: Parts, form: str, rounds: int) -> Measured:
    """One form of streams."""
    sale_id = await open_sale(parts, form)
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
    await all_saw(STREAMS)
    each = (process.memory_info().rss - before) / STREAMS
    say(f"{form}: {STREAMS} open, {each:.0f} bytes each")
    # Loaded by the worker meanwhile, which gave it its epoch.
    parts.catalog.forget(sale_id)
    sale = await parts.catalog.sale(sale_id)
    assert sale is not None
    p99: list[float] = []
    for round_number in range(1, rounds + 1):
        look_for(b'"free":%d' % (1_000 - round_number), clients)
        began = time.time()
        await parts.inventory.take_late(sale.ref, "buyer", new_id(), {sale.variants[0].id: 1})
        await all_saw(STREAMS)
        took = [1_000 * (at - began) for at in Client.seen_at]
        p99.append(percentile(took, 0.99))
        say(f"{form}: a change reached 99 % in {p99[-1]:.0f} ms, all in {max(took):.0f} ms")
        await asyncio.sleep(1.0)
    paced = await call(parts, sale, clients, PACED, PACE_PER_S)
    say(f"{form}: called at a pace, 99 % told in {percentile(paced, 0.99):.0f} ms")
    crowds = []
    for _ in range(max(1, rounds // 2 + rounds % 2)):
        crowds.append(await call(parts, sale, clients, STREAMS, AT_ONCE_PER_S))
        crowd_p99 = percentile(crowds[-1], 0.99)
        say(
            f"{form}: called at once, 99 % told in {crowd_p99:.0f} ms, all in {max(crowds[-1]):.0f}"
        )
    for client in clients:
        client.transport.abort()
    return Measured(each, p99, paced, crowds)


async def run(rounds: int) -> dict[str, Any]:
    data = Path(tempfile.mkdtemp(prefix="fairdrop-sockets-"))
    # One process that accepts them: the rest of a site idles beside it.
    settings = Settings(data_dir=data, store_url=None, database_url=None, port=0)
    try:
        async with Site(settings) as site, open_parts(site.settings) as parts:
            sse = await measure(site, parts, "stream", rounds)
            # A new process: memory that the first form gave back would be counted for the second.
            os.kill(site.supervisor.pid_of("push") or 0, signal.SIGKILL)
            async with asyncio.timeout(30):
                while site.supervisor.restarts("push") == 0:  # noqa: ASYNC110 - nothing tells of it
                    await asyncio.sleep(0.05)
                await site.supervisor.wait_ready("push")
            websocket = await measure(site, parts, "socket", rounds)
    finally:
        remove_data(data)
    results = {**sse.results("sse"), **websocket.results("websocket")}

    def slowest(ending: str) -> int:
        return max(value for name, value in results.items() if name.endswith(ending))

    results |= {
        "fanout_p99_ms": slowest("_fanout_p99_ms"),
        "ready_p99_ms": max(slowest("_paced_p99_ms"), slowest("_at_once_p99_ms")),
        "ready_max_ms": slowest("_ready_max_ms"),
    }
    return {
        "conditions": {
            "streams_each_form": STREAMS,
            "changes_each_form": rounds,
            "called_at_a_pace": PACED,
            "pace_per_s": PACE_PER_S,
            "called_at_once": STREAMS,
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
    configure_logs("error")  # the push process is ended between the two forms
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(run(1 if quick else 5)), indent=2))


if __name__ == "__main__":
    main()
