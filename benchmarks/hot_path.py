"""Requests per second of the hot steps on one core, against an empty endpoint of the same server.

    .venv/bin/python benchmarks/hot_path.py [--quick]

The server has one core for itself; the load generator, Valkey and PostgreSQL share the other. All
steps are measured in turn, in several rounds, and compared within a round; told is the median. Goals:
join and reserve at 0.55 of the empty endpoint or better, reserve at 4 times the uncoalesced one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import uvloop

sys.path.insert(0, str(Path(__file__).parent))
from fairdrop.app import open_parts
from fairdrop.catalog import NewSale, NewVariant
from fairdrop.embedded import EmbeddedServices, free_port, listening, remove_data
from fairdrop.logs import configure_logs
from fairdrop.schema.migrate import migrate
from fairdrop.settings import SECRETS, Settings
from fairdrop.waiting_room import new_signing_key
from load import Measured, closed_loop, http, paced

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fairdrop.app import Parts
    from fairdrop.catalog import Sale

GOALS = {
    "join_to_empty_ratio": 0.55,
    "reserve_to_empty_ratio": 0.55,
    "reserve_to_uncoalesced_ratio": 4.0,
    "join_to_uncoalesced_ratio": 4.0,
}
CONNECTIONS = 256
"""People who wait for an answer at one time: with fewer, the server idles while the store works."""


def say(text: str) -> None:
    """Progress, for people."""
    print(text, file=sys.stderr, flush=True)


@asynccontextmanager
async def server(settings: Settings, backpressure: int = 4_096) -> AsyncIterator[int]:
    """The web worker, alone on core 0; everything else moves to core 1. Yields its port."""
    cores = sorted(os.sched_getaffinity(0))
    pinned = len(cores) > 1
    path = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}
    for name, value in settings.model_dump(exclude_none=True).items():
        env[f"FAIRDROP_{name.upper()}"] = str(
            value.get_secret_value() if name in SECRETS else value
        )
    process = subprocess.Popen(
        [
            *(["taskset", "-c", str(cores[0])] if pinned else []),
            str(Path(sys.executable).parent / "granian"),
            *("--interface", "asgi", "--factory", "--loop", "uvloop", "--no-ws"),
            *(
                "--port",
                str(settings.port),
                "--backlog",
                str(backpressure),
                "--backpressure",
                str(backpressure),
            ),
            *("--log-level", "warning"),
            "hot_path_server:make_app",
        ],
        env=env,
        start_new_session=True,
    )
    try:
        ready = listening("127.0.0.1", settings.port)
        for _ in range(200):
            try:
                await ready()
                break
            except OSError:
                await asyncio.sleep(0.05)
        yield settings.port
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


async def open_sale(parts: Parts, name: str, **terms: Any) -> Sale:
    """An open sale with more stock than a benchmark can use."""
    _, sale_id = await parts.catalog.create(
        NewSale(
            slug=f"bench-{name}-{os.getpid()}",
            name="Benchmark",
            opens_at=datetime(2026, 1, 1, tzinfo=UTC),
            currency="EUR",
            variants=(NewVariant("Ticket", "Standing", 4_500, 5_000_000),),
            **terms,
        ),
        "benchmark",
    )
    sale = await parts.catalog.sale(sale_id)
    if sale is None:
        raise RuntimeError("the sale is not there")
    sale = await parts.loader.keep_loaded(sale)
    await parts.waiting_room.tick(sale.ref)
    return sale


class Requests:
    """Requests of each step, each for a visitor of its own, made beforehand."""

    def __init__(self, parts: Parts, sale: Sale, port: int) -> None:
        self._parts = parts
        self._sale = sale
        self._port = port

    def empty(self, count: int) -> list[bytes]:
        """As large as a join, so that reading it costs the same."""
        _, token = self._parts.visitors.new()
        return [http("GET", "/empty", {"authorization": f"Bearer {token}"})] * count

    def join(self, count: int) -> list[bytes]:
        """People who come for the first time."""
        return [self._step("POST", "join", self._parts.visitors.new()[1]) for _ in range(count)]

    async def status(self, count: int) -> list[bytes]:
        """People who wait."""
        tokens = [self._parts.visitors.new()[1] for _ in range(count)]
        await self._run([self._step("POST", "join", token) for token in tokens])
        return [self._step("GET", "me", token) for token in tokens]

    async def reserve(self, count: int, prefix: str) -> list[bytes]:
        """People who have entered through this server, with their admissions."""
        tokens = [self._parts.visitors.new()[1] for _ in range(count)]
        await self._run([self._step("POST", "join", token) for token in tokens])
        while (await self._parts.waiting_room.tick(self._sale.ref)).more:
            pass
        claimed = await self._run([self._step("POST", "claim", token) for token in tokens])
        admissions = {}
        for body in claimed.bodies:
            status = msgspec.json.decode(body)
            claims = status["token"].split(".")[1]
            subject = msgspec.json.decode(_unpadded(claims))["sub"]
            admissions[subject] = status["token"]
        query = f"variant={self._sale.variants[0].id}&quantity=1"
        return [
            http(
                "POST",
                f"{prefix}/{self._sale.id}/reservations?{query}",
                {
                    "authorization": f"Bearer {token}",
                    "fairdrop-admission": admissions[token.split(".")[1]],
                    "idempotency-key": f"key-{number}",
                },
            )
            for number, token in enumerate(tokens)
        ]

    def _step(self, method: str, step: str, token: str) -> bytes:
        path = f"/v1/sales/{self._sale.id}/{step}"
        return http(method, path, {"authorization": f"Bearer {token}"})

    async def _run(self, requests: list[bytes]) -> Measured:
        return await closed_loop(self._port, requests, connections=CONNECTIONS, keep_bodies=True)


def _unpadded(text: str) -> bytes:
    import base64

    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def server_us(port: int) -> float:
    """Processor time that the server on this port has taken so far, in us: all its threads (Linux)."""
    listens = f"\0--port\0{port}\0".encode()
    spent_ns = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended
            if listens in (process / "cmdline").read_bytes():
                for times in process.glob("task/*/schedstat"):
                    spent_ns += int(times.read_text().split()[0])
    return spent_ns / 1_000


async def measure(
    port: int, name: str, requests: list[bytes], expected: bytes
) -> tuple[float, float]:
    """Answers per second, and the server's us an answer; every answer has to be the expected one."""
    before = server_us(port)
    measured = await closed_loop(port, requests, connections=CONNECTIONS)
    each_us = (server_us(port) - before) / len(requests)
    if set(measured.statuses) != {expected}:
        raise RuntimeError(f"{name}: {dict(measured.statuses)}, expected only {expected!r}")
    say(f"  {name:22}{measured.per_s:10,.0f}/s{each_us:8.1f} us of the server each")
    return measured.per_s, each_us


@asynccontextmanager
async def site(*, backpressure: int = 4_096, **more: Any) -> AsyncIterator[tuple[Parts, int]]:
    """Services, a web worker on a core of its own, and this process on the other. Yields parts, port.

    ``more`` are settings.
    """
    directory = Path(tempfile.mkdtemp(prefix="fairdrop-bench-"))
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        # Children inherit it: Valkey and PostgreSQL share core 1 with the load generator.
        os.sched_setaffinity(0, {cores[1]})
    try:
        async with EmbeddedServices(directory / "data") as services:
            await migrate(services.database_url)
            settings = Settings(
                store_url=services.store_url,
                database_url=services.database_url,
                visitor_key="benchmark" * 5,
                signing_keys=new_signing_key(),
                port=free_port(),
                log_level="warning",
                **more,
            )
            os.sched_setaffinity(0, set(cores))
            async with (
                server(settings, backpressure=backpressure) as port,
                open_parts(settings) as parts,
            ):
                if len(cores) > 1:
                    os.sched_setaffinity(0, {cores[1]})
                yield parts, port
    finally:
        os.sched_setaffinity(0, set(cores))
        remove_data(directory / "data")
        directory.rmdir()


async def run(*, quick: bool) -> dict[str, Any]:
    """All rounds, and the half-load latencies."""
    rounds, size = (3, 6_000) if quick else (7, 12_000)
    async with site() as (parts, port):
        return await _measure_all(parts, port, rounds, size)


async def _measure_all(parts: Parts, port: int, rounds: int, size: int) -> dict[str, Any]:
    people = 20 * rounds * size
    sale = await open_sale(
        parts,
        "hot-path",
        rate_per_s=people,
        cap=people,
        lease_ttl_ms=3_600_000,
        claim_ttl_ms=3_600_000,
        hold_ttl_ms=3_600_000,
    )
    requests = Requests(parts, sale, port)
    rates: dict[str, list[float]] = {}
    costs: dict[str, list[float]] = {}

    def keep(name: str, measured: tuple[float, float]) -> None:
        rates.setdefault(name, []).append(measured[0])
        costs.setdefault(name, []).append(measured[1])

    await closed_loop(port, requests.empty(size), connections=CONNECTIONS)
    await closed_loop(port, requests.join(size // 4), connections=CONNECTIONS)
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}")
        status = await requests.status(size)
        reserve = await requests.reserve(size, "/v1/sales")
        single = await requests.reserve(size // 4, "/uncoalesced")
        # One straight after the other, and the empty endpoint in their middle: a shared machine is
        # not the same from one minute to the next. What the preparations left to be written, the
        # first step pays for: it is the one that only reads.
        keep("status", await measure(port, "status", status, b"200"))
        keep("join", await measure(port, "join", requests.join(size), b"200"))
        keep("empty", await measure(port, "empty", requests.empty(size), b"200"))
        keep("reserve", await measure(port, "reserve", reserve, b"201"))
        keep("reserve_uncoalesced", await measure(port, "reserve uncoalesced", single, b"201"))
    middle = {name: statistics.median(values) for name, values in rates.items()}

    def ratio(step: str, base: str) -> float:
        pairs = zip(rates[step], rates[base], strict=True)
        return round(statistics.median(one / other for one, other in pairs), 3)

    say("latency at half load")
    latencies = {}
    for name, made in (
        ("join", requests.join(size)),
        ("status", await requests.status(size)),
        ("reserve", await requests.reserve(size, "/v1/sales")),
    ):
        measured = await paced(port, made, middle[name] / 2, connections=CONNECTIONS)
        latencies[f"{name}_half_load_p50_ms"] = round(measured.percentile_ms(0.5), 2)
        latencies[f"{name}_half_load_p99_ms"] = round(measured.percentile_ms(0.99), 2)
    results = {
        **{f"{name}_http_per_s": round(rate) for name, rate in middle.items()},
        "join_to_empty_ratio": ratio("join", "empty"),
        "status_to_empty_ratio": ratio("status", "empty"),
        "reserve_to_empty_ratio": ratio("reserve", "empty"),
        "reserve_to_uncoalesced_ratio": ratio("reserve", "reserve_uncoalesced"),
        "join_to_uncoalesced_ratio": ratio("join", "reserve_uncoalesced"),
        **{f"{name}_server_us": round(statistics.median(us), 1) for name, us in costs.items()},
        **latencies,
    }
    return {
        "conditions": {
            "rounds": rounds,
            "requests_a_round": size,
            "connections": CONNECTIONS,
            "python": sys.version.split()[0],
            "cores": os.cpu_count(),
            "server_cores": 1,
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
    parser.add_argument("--quick", action="store_true", help="fewer requests, under 60 s")
    arguments = parser.parse_args()
    configure_logs("warning")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(run(quick=arguments.quick)), indent=2))


if __name__ == "__main__":
    main()
