"""Whole purchases per second over HTTP, with every part running and this load generator beside it.

    .venv/bin/python benchmarks/checkout.py [--quick]

A purchase is: reserve, start checkout, pay (the gateway makes an intent), pay at the gateway as the
buyer's browser does, its signed webhook, settlement. Buyers are inside already. The clock runs from
the first reservation until the database has every order CONFIRMED. Everything shares the machine's
cores as the system schedules it: Valkey, PostgreSQL, the gateway, the web worker, the worker, and the
crowd. Which share of a core each of them took is in the results. Goal: 1,500 purchases a second.

Then 20,000 reservations a second are sent to the store for some seconds, and the store itself says how
long its script calls took (INFO latencystats). Goal: 99 of 100 under 1.2 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

import msgspec
import psutil
import uvloop

sys.path.insert(0, str(Path(__file__).parent))
from fairdrop.app import open_parts
from fairdrop.embedded import remove_data
from fairdrop.ids import SaleRef, new_id
from fairdrop.inventory import ReserveOutcome, ReserveRequest
from fairdrop.logs import configure_logs
from fairdrop.rehearsal.control import Control
from fairdrop.settings import Settings
from fairdrop.site import Site
from load import Caller, closed_loop, http

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fairdrop.app import Parts
    from fairdrop.inventory import Reservation

GOAL_PER_S = 1_500.0
RESERVATIONS_PER_S = 20_000
SCRIPT_GOAL_MS = 1.2
BUYERS_AT_ONCE = 512
"""Each waits for one answer at a time."""
CARD = b"4242424242424242"
_JSON = b"host: 127.0.0.1\r\ncontent-type: application/json\r\n"


class Buyer(NamedTuple):
    """One buyer's requests, made beforehand as far as they can be."""

    reserve: bytes
    checkout: bytes
    headers: bytes


class _Reservation(msgspec.Struct):
    id: str


class _Payment(msgspec.Struct):
    url: str | None


class _Order(msgspec.Struct):
    id: str
    payment: _Payment | None = None


class _Claimed(msgspec.Struct):
    token: str


class _Claims(msgspec.Struct):
    sub: str


_claimed = msgspec.json.Decoder(_Claimed).decode
_claims = msgspec.json.Decoder(_Claims).decode
_reservation = msgspec.json.Decoder(_Reservation).decode
_order = msgspec.json.Decoder(_Order).decode


def say(text: str) -> None:
    """Progress, for people."""
    print(text, file=sys.stderr, flush=True)


class Shop:
    """A running site with one sale that never sells out here."""

    def __init__(self, site: Site, parts: Parts, sale: SaleRef, variant: str) -> None:
        """Take what was opened."""
        self.site = site
        self.parts = parts
        self.sale = sale
        self.variant = variant
        self.port = site.settings.port
        self.gateway_port = urlsplit(site.gateway_url).port or 0

    async def admit(self, count: int) -> list[Buyer]:
        """So many buyers, who are inside."""
        room, visitors = self.parts.waiting_room, self.parts.visitors
        new = [visitors.new() for _ in range(count)]
        await asyncio.gather(*(room.join(self.sale, visitor) for visitor, _ in new))
        while (await room.tick(self.sale)).more:
            pass
        path = f"/v1/sales/{self.sale.id}/claim"
        claims = [http("POST", path, {"authorization": f"Bearer {token}"}) for _, token in new]
        # Over HTTP, as buyers do: the web worker then knows whom it admitted.
        claimed = await closed_loop(self.port, claims, connections=64, keep_bodies=True)
        tokens = {}
        for body in claimed.bodies:
            token = _claimed(body).token
            claims_of_token = token.split(".")[1]
            padded = claims_of_token + "=" * (-len(claims_of_token) % 4)
            tokens[_claims(base64.urlsafe_b64decode(padded)).sub] = token
        reserve = f"/v1/sales/{self.sale.id}/reservations?variant={self.variant}&quantity=1"
        buyers = []
        for visitor, token in new:
            headers = {
                "authorization": f"Bearer {token}",
                "fairdrop-admission": tokens[visitor],
                "content-type": "application/json",
            }
            keyed = http("POST", reserve, {**headers, "idempotency-key": "buy"})
            # As bytes, without the end that says how long the body is.
            checkout = http("POST", f"/v1/sales/{self.sale.id}/orders", headers)
            checkout = checkout[: checkout.rindex(b"content-length")]
            buyers.append(Buyer(keyed, checkout, checkout.partition(b"\r\n")[2]))
        return buyers

    async def confirmed(self) -> int:
        """Orders that are CONFIRMED, as the database has them."""
        async with self.parts.database.connection() as connection:
            count: int = await connection.fetchval(
                "SELECT count(*) FROM orders WHERE sale_id = $1 AND state = 'CONFIRMED'",
                UUID(self.sale.id),
            )
        return count


class Crowd:
    """Buys, with so many buyers at once; each buyer's steps follow one another."""

    def __init__(self, shop: Shop) -> None:
        """Take the shop."""
        self._shop = shop
        self.latencies_s: dict[str, list[float]] = defaultdict(list)

    async def buy_all(self, buyers: list[Buyer]) -> None:
        """Every one of them, once."""
        waiting = iter(buyers)

        async def one_after_the_other() -> None:
            shop, gateway = (
                await Caller.dial(self._shop.port),
                await Caller.dial(self._shop.gateway_port),
            )
            for buyer in waiting:
                await self._buy(shop, gateway, buyer)
            shop.close()
            gateway.close()

        await asyncio.gather(*(one_after_the_other() for _ in range(BUYERS_AT_ONCE)))

    async def _buy(self, shop: Caller, gateway: Caller, buyer: Buyer) -> None:
        reserved = _reservation(await self._step("reserve", shop, buyer.reserve))
        wanted = b'{"reservation":"%b","email":"buyer@example.org"}' % reserved.id.encode()
        started = _order(await self._step("checkout", shop, buyer.checkout + _body(wanted)))
        pay = b"POST /v1/orders/%b/pay HTTP/1.1\r\n%b" % (started.id.encode(), buyer.headers)
        paying = _order(await self._step("pay", shop, pay + _body(b"")))
        if paying.payment is None or paying.payment.url is None:
            raise RuntimeError("the order has no payment page")
        page, _, secret = paying.payment.url.encode().partition(b"#")
        intent = page[page.rindex(b"/") + 1 :]
        card = b'{"client_secret":"%b","card":"%b"}' % (secret, CARD)
        at_gateway = b"POST /v1/intents/%b/pay HTTP/1.1\r\n%b" % (intent, _JSON)
        await self._step("gateway", gateway, at_gateway + _body(card))

    async def _step(self, name: str, caller: Caller, request: bytes) -> bytes:
        began = time.perf_counter()
        status, answer = await caller.ask(request)
        self.latencies_s[name].append(time.perf_counter() - began)
        if status not in (200, 201):
            raise RuntimeError(f"{name}: {status} {answer[:300]!r}")
        return answer


def _body(content: bytes) -> bytes:
    """The end of a request: how long its body is, and the body."""
    return b"content-length: %d\r\n\r\n%b" % (len(content), content)


@asynccontextmanager
async def open_shop(directory: Path, buyers: int) -> AsyncIterator[Shop]:
    """A site with a sale large and wide enough for all buyers."""
    settings = Settings(data_dir=directory, port=0, log_level="warning", store_timeout_ms=5_000)
    async with Site(settings) as site, open_parts(site.settings) as parts:
        body = {
            "slug": f"bench-{os.getpid()}",
            "name": "Benchmark",
            "opens_at": "2026-01-01T00:00:00Z",
            "currency": "EUR",
            "rate_per_s": 100_000,
            "cap": min(10 * buyers, 1_000_000),
            "line_cap_factor": 0,
            "lease_ttl_ms": 3_600_000,
            "claim_ttl_ms": 3_600_000,
            "variants": [
                {
                    "product": "Ticket",
                    "name": "Standing",
                    "price_minor": 4_500,
                    "quantity": 10 * buyers,
                }
            ],
        }
        async with Control(site.url, site.admin_key) as control:
            sale_id = await control.create(body)
        sale = await parts.catalog.sale(sale_id)
        if sale is None:
            raise RuntimeError("the sale is not there")
        while (await parts.waiting_room.tick(sale.ref)).mode != "open":  # noqa: ASYNC110 - a worker's
            await asyncio.sleep(0.05)
        yield Shop(site, parts, sale.ref, sale.variants[0].id)


def cpu_seconds() -> dict[str, float]:
    """Processor time so far, by part."""
    seconds: dict[str, float] = defaultdict(float)
    me = psutil.Process()
    for process in [me, *me.children(recursive=True)]:
        try:
            line = " ".join(process.cmdline()) or process.name()
            times = process.cpu_times()
        except psutil.Error:
            continue
        part = "crowd" if process.pid == me.pid else _part(line)
        seconds[part] += times.user + times.system
    return seconds


def _part(command: str) -> str:
    for mark, part in (
        ("payments.sandbox", "gateway"),
        ("fairdrop worker", "worker"),
        ("valkey", "valkey"),
        ("postgres", "postgresql"),
        ("fairdrop push", "push"),
        ("notifications.sink", "mail_server"),
    ):
        if mark in command:
            return part
    return "web"


async def one_round(shop: Shop, buyers: int) -> tuple[float, Crowd, dict[str, float]]:
    """Purchases per second of so many buyers."""
    inside = await shop.admit(buyers)
    before, cpu_before = await shop.confirmed(), cpu_seconds()
    crowd = Crowd(shop)
    began = time.perf_counter()
    await crowd.buy_all(inside)
    bought = time.perf_counter()
    while await shop.confirmed() < before + buyers:
        if time.perf_counter() - bought > 60:
            raise RuntimeError("not every order was confirmed within a minute")
        await asyncio.sleep(0.01)
    seconds = time.perf_counter() - began
    shares = {part: (used - cpu_before[part]) / seconds for part, used in cpu_seconds().items()}
    return buyers / seconds, crowd, shares


async def reserve_script(shop: Shop, seconds: int) -> dict[str, float]:
    """What the store says of the reserve script's calls under RESERVATIONS_PER_S."""
    room, stock, store = shop.parts.waiting_room, shop.parts.inventory, shop.parts.store.redis
    buyers = [f"buyer-{number}" for number in range(seconds * RESERVATIONS_PER_S)]
    for at in range(0, len(buyers), 10_000):
        part = buyers[at : at + 10_000]
        await asyncio.gather(*(room.join(shop.sale, buyer) for buyer in part))
    while (await room.tick(shop.sale)).more or await room_waits(shop):
        pass
    requests = []
    for at in range(0, len(buyers), 10_000):
        part = buyers[at : at + 10_000]
        places = await asyncio.gather(*(room.claim(shop.sale, buyer) for buyer in part))
        requests += [
            ReserveRequest(buyer, place.admission, new_id(), "key", "body", [shop.variant, 1])
            for buyer, (place, _) in zip(part, places, strict=True)
        ]
    await store.config_resetstat()
    asked: list[asyncio.Future[Reservation]] = []
    began = time.perf_counter()
    while len(asked) < len(requests):
        due = min(len(requests), int((time.perf_counter() - began) * RESERVATIONS_PER_S) + 1)
        asked += [stock.reserve(shop.sale, request) for request in requests[len(asked) : due]]
        await asyncio.sleep(0.001)
    answers = [await future for future in asked]  # cheaper than gather for those that are done
    rate = len(answers) / (time.perf_counter() - began)
    if any(answer.outcome is not ReserveOutcome.RESERVED for answer in answers):
        raise RuntimeError("a reservation was refused")
    told = (await store.info("latencystats"))["latency_percentiles_usec_evalsha"]
    return {
        "reservations_per_s": round(rate),
        "reserve_script_p50_ms": round(told["p50"] / 1_000, 3),
        "reserve_script_p99_ms": round(told["p99"] / 1_000, 3),
    }


async def room_waits(shop: Shop) -> bool:
    """Whether somebody still waits to be called."""
    _, line = await shop.parts.waiting_room.status(shop.sale, "nobody")
    return line.waiting > 0


async def run(*, quick: bool) -> dict[str, Any]:
    """All rounds."""
    rounds, buyers = (3, 3_000) if quick else (5, 8_000)
    directory = Path(tempfile.mkdtemp(prefix="fairdrop-bench-"))
    latencies: dict[str, list[float]] = defaultdict(list)
    rates, shares = [], []
    try:
        async with open_shop(directory / "data", (rounds + 1) * buyers) as shop:
            say("warming up")
            await one_round(shop, buyers // 3)
            for number in range(rounds):
                rate, crowd, used = await one_round(shop, buyers)
                say(f"round {number + 1} of {rounds}: {rate:,.0f} purchases a second")
                rates.append(rate)
                shares.append(used)
                for step, seconds in crowd.latencies_s.items():
                    latencies[step] += seconds
            say(f"{RESERVATIONS_PER_S:,} reservations a second")
            script = await reserve_script(shop, 2 if quick else 5)
    finally:
        remove_data(directory / "data")
        directory.rmdir()
    results = {"purchases_per_s": round(statistics.median(rates), 1)}
    for step, seconds in latencies.items():
        ordered = sorted(seconds)
        results[f"{step}_p50_ms"] = round(1_000 * ordered[len(ordered) // 2], 2)
        results[f"{step}_p99_ms"] = round(1_000 * ordered[int(0.99 * len(ordered))], 2)
    for part in sorted(shares[0]):
        results[f"{part}_cores"] = round(statistics.median(used[part] for used in shares), 3)
    results |= script
    rate, script_ms = results["purchases_per_s"], results["reserve_script_p99_ms"]
    return {
        "conditions": {
            "rounds": rounds,
            "purchases_a_round": buyers,
            "buyers_at_once": BUYERS_AT_ONCE,
            "python": sys.version.split()[0],
            "cores": len(os.sched_getaffinity(0)),
        },
        "results": results,
        "goals": {
            "purchases_per_s": {"value": rate, "goal": GOAL_PER_S, "met": rate >= GOAL_PER_S},
            "reserve_script_p99_ms": {
                "value": script_ms,
                "goal": SCRIPT_GOAL_MS,
                "met": script_ms <= SCRIPT_GOAL_MS,
            },
        },
    }


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer purchases, under 60 s")
    arguments = parser.parse_args()
    configure_logs("warning")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(run(quick=arguments.quick)), indent=2))


if __name__ == "__main__":
    main()
