"""A drand chain, played by a server: the first round after the list counts, and a policy when it fails."""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web

from fairdrop.app import Parts
from fairdrop.draw import Beacons, Draws, Step, verify
from fairdrop.draw.beacon import Chain
from fairdrop.embedded.ports import free_ports
from tests.integration.draw.lobbies import enter, published, shut, with_a_lobby

PERIOD_S = 1


class DrandServer:
    """Rounds of a second, each known when it is due and not before."""

    def __init__(self) -> None:
        self.genesis = int(time.time()) - 1_000
        self.broken = False
        self.lies = False
        self.asked: list[int] = []

    async def info(self, _: web.Request) -> web.Response:
        if self.broken:
            return web.Response(status=500)
        members = {"genesis_time": self.genesis, "period": PERIOD_S, "hash": "ab" * 32}
        return web.json_response({**members, "public_key": "cd" * 48})

    async def round(self, request: web.Request) -> web.Response:
        number = int(request.match_info["round"])
        self.asked.append(number)
        if time.time() < self.genesis + (number - 1) * PERIOD_S:
            return web.Response(status=425)
        signature = hashlib.sha512(b"%d" % number).hexdigest()
        randomness = hashlib.sha256(bytes.fromhex(signature)).hexdigest()
        if self.lies:
            randomness = "00" * 32
        members: dict[str, Any] = {"round": number, "randomness": randomness}
        return web.json_response({**members, "signature": signature})


@pytest.fixture
async def drand() -> AsyncIterator[tuple[DrandServer, str]]:
    server = DrandServer()
    app = web.Application()
    app.router.add_get("/chain/info", server.info)
    app.router.add_get("/chain/public/{round}", server.round)
    runner = web.AppRunner(app)
    await runner.setup()
    (port,) = free_ports(1)
    await web.TCPSite(runner, "127.0.0.1", port).start()
    yield server, f"http://127.0.0.1:{port}/chain"
    await runner.cleanup()


def quick(parts: Parts) -> Draws:
    return Draws(parts.database, parts.waiting_room, Beacons(timeout_s=0.1))


async def test_the_round_after_the_list_was_published_goes_into_the_key(
    parts: Parts, drand: tuple[DrandServer, str]
) -> None:
    server, url = drand
    sale = await with_a_lobby(parts, beacon=url)
    await enter(parts, sale, 5)
    await shut(parts, sale)
    assert await parts.draws.hold(sale.ref) is Step.FILLED
    record = await parts.draws.record(sale.id)
    assert record is not None
    assert record.fixed_at is not None
    assert record.beacon_proof is not None
    number = record.beacon_proof["round"]
    assert {*server.asked} == {number}
    due = server.genesis + (number - 1) * PERIOD_S
    assert 0 < due - record.fixed_at.timestamp() <= PERIOD_S
    assert verify(await published(parts, sale)).findings == []


@pytest.mark.parametrize("lies", [False, True])
async def test_without_the_beacon_the_draw_is_held_and_says_so(
    parts: Parts, drand: tuple[DrandServer, str], lies: bool
) -> None:
    server, url = drand
    server.broken, server.lies = not lies, lies
    sale = await with_a_lobby(parts, beacon=url, beacon_failure="without")
    await enter(parts, sale, 5)
    await shut(parts, sale)
    assert await quick(parts).hold(sale.ref) is Step.FILLED
    verdict = verify(await published(parts, sale))
    assert verdict.findings == []
    assert any("held without it" in note for note in verdict.notes)


async def test_a_draw_that_waits_for_its_beacon_takes_a_value_by_hand(
    parts: Parts, drand: tuple[DrandServer, str]
) -> None:
    server, url = drand
    server.broken = True
    sale = await with_a_lobby(parts, beacon=url, beacon_failure="wait")
    await enter(parts, sale, 5)
    await shut(parts, sale)
    assert await quick(parts).hold(sale.ref) is Step.AWAITS_BEACON
    await parts.draws.enter_beacon(sale.id, "as read from the chain's page", "test")
    assert await quick(parts).hold(sale.ref) is Step.FILLED
    assert verify(await published(parts, sale)).findings == []


def test_a_round_is_counted_as_drand_counts() -> None:
    chain = Chain(genesis_time=1_000, period=30)
    assert [chain.time_of(number) for number in (1, 2, 3)] == [1_000, 1_030, 1_060]
    after = {at: chain.round_after(datetime.fromtimestamp(at, UTC)) for at in (900, 1_000, 1_029)}
    assert after == {900: 1, 1_000: 2, 1_029: 2}
