"""Rate limits (W18, case 39): exact in one process, one limit for several, and told as the draft says."""

from __future__ import annotations

import asyncio
import math
import uuid
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairdrop.access import Exceeded, Limits, Policy
from fairdrop.app import open_parts
from fairdrop.drivers.store import Store
from fairdrop.embedded import BackgroundServices
from tests.driven_sale import DrivenSale
from tests.integration.control_plane.own_parts import (
    ADMIN_KEY,
    client,
    client_of,
    database_url,
    opened,
    parts,
    problem,
    settings_for,
)

__all__ = ["client", "database_url", "parts"]


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def a_key() -> str:
    return uuid.uuid4().hex


def limits(store: Store, clock: Clock, rate: float = 2, burst: int = 5) -> Limits:
    return Limits(store, Policy("requests", rate, burst), clock=clock)


class Kept:
    """A bucket that its caller keeps."""

    def __init__(self, key: str) -> None:
        self.key, self.full_at = key, 0.0


def taken(limits: Limits, key: str, times: int) -> int:
    return sum(limits.take("requests", key) is None for _ in range(times))


async def until_shared(limits: Limits) -> None:
    async with asyncio.timeout(10):
        while limits._sharing is not None:
            await asyncio.sleep(0.01)


async def test_a_burst_passes_and_then_the_rate(store: Store) -> None:
    clock = Clock()
    here = limits(store, clock)
    assert taken(here, "a", 20) == 5
    assert taken(here, "b", 20) == 5
    exceeded = here.take("requests", "a")
    assert exceeded == Exceeded(Policy("requests", 2, 5), 1)
    clock.now += 0.5
    assert taken(here, "a", 20) == 1
    clock.now += 100
    assert taken(here, "a", 20) == 5


async def test_being_refused_costs_nothing(store: Store) -> None:
    """Who comes back when they were told to gets in, however often they asked in between."""
    clock = Clock()
    here = limits(store, clock, rate=0.1, burst=1)
    assert taken(here, "a", 1) == 1
    refused = [here.take("requests", "a") for _ in range(1_000)]
    assert {each.retry_after_s for each in refused if each} == {10}
    clock.now += 10
    assert taken(here, "a", 1) == 1


async def test_rate_zero_is_no_limit(store: Store) -> None:
    assert taken(limits(store, Clock(), rate=0, burst=1), "a", 1_000) == 1_000


@given(
    rate=st.floats(0.1, 50),
    burst=st.integers(1, 20),
    waits=st.lists(st.floats(0, 3), min_size=1, max_size=80),
)
def test_no_span_of_time_has_more_than_the_burst_and_the_rate(
    rate: float, burst: int, waits: list[float]
) -> None:
    clock = Clock()
    here = Limits(_no_store(), Policy("requests", rate, burst), clock=clock)
    here._share_at = math.inf
    passed: list[float] = []
    for wait in waits:
        clock.now += wait
        if here.take("requests", "a") is None:
            passed.append(clock.now)
    for i, start in enumerate(passed):
        for j in range(i, len(passed)):
            assert j - i + 1 <= burst + rate * (passed[j] - start) + 1e-6


@given(st.lists(st.floats(0, 3), max_size=60), st.integers(1, 5), st.floats(0.5, 5))
def test_a_bucket_that_its_caller_keeps_is_the_same_limit(
    waits: list[float], burst: int, rate: float
) -> None:
    clock = Clock()
    here, there = (limits(_no_store(), clock, rate=rate, burst=burst) for _ in range(2))
    here._share_at = there._share_at = math.inf
    kept = Kept("a")
    for wait in waits:
        clock.now += wait
        assert here.take_from("requests", kept) == there.take("requests", "a")


def _no_store() -> Store:
    return Store("redis://127.0.0.1:1")


async def test_several_servers_keep_one_limit(store: Store) -> None:
    """What one has let pass, the others take out of their buckets (with sharing)."""
    clock, key = Clock(), a_key()
    servers = [limits(store, clock, rate=1, burst=20) for _ in range(4)]
    for server in servers:
        server._share_at = math.inf
    assert [taken(server, key, 5) for server in servers] == [5, 5, 5, 5]
    for _ in range(2):
        for server in servers:
            if not server._buckets["requests"].met:
                server._buckets["requests"].met.append(key)
            await server.share()
    assert [taken(server, key, 5) for server in servers] == [0, 0, 0, 0]


async def test_what_others_counted_counts_for_a_bucket_that_its_caller_keeps(store: Store) -> None:
    clock, key = Clock(), a_key()
    here, there = (limits(store, clock, rate=1, burst=20) for _ in range(2))
    here._share_at = there._share_at = math.inf
    kept = Kept(key)
    assert [here.take_from("requests", kept) for _ in range(5)] == [None] * 5
    assert taken(there, key, 5) == 5
    for server in (here, there, here):
        if not server._buckets["requests"].met:
            server._buckets["requests"].met.append(key)
        await server.share()
    assert sum(here.take_from("requests", kept) is None for _ in range(20)) <= 15


async def test_what_others_counted_is_remembered_within_a_bound(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where callers keep the buckets, so that nothing but the sharing fills this memory."""
    monkeypatch.setattr("fairdrop.access.limits._REMEMBERED", 20)
    clock = Clock()
    here, there = (limits(store, clock, rate=1, burst=20) for _ in range(2))
    here._share_at = there._share_at = math.inf
    for _ in range(100):
        kept = Kept(a_key())
        for _ in range(2):  # a process hears of others once it has told its own
            there.take_from("requests", kept)
            await there.share()
            here.take_from("requests", kept)
            await here.share()
        assert len(here._buckets["requests"].full_at) <= 20
    assert here._buckets["requests"].full_at


async def test_without_sharing_each_server_would_have_a_limit_of_its_own(store: Store) -> None:
    """The negative control of the test above."""
    clock, key = Clock(), a_key()
    servers = [limits(store, clock, rate=1, burst=20) for _ in range(4)]
    for server in servers:
        server._share_at = math.inf
    assert sum(taken(server, key, 20) for server in servers) == 80


async def test_what_is_counted_is_shared_by_itself(store: Store) -> None:
    clock, key = Clock(), a_key()
    one, other = (limits(store, clock, rate=0.001, burst=10) for _ in range(2))
    assert taken(one, key, 1) == 1
    await until_shared(one)
    clock.now += 2
    assert taken(one, key, 20) == 9
    await until_shared(one)
    assert taken(other, key, 1) == 1
    await until_shared(other)
    assert taken(other, key, 20) < 9


async def test_a_store_that_is_away_leaves_each_process_with_its_own_limit() -> None:
    here = limits(Store("redis://127.0.0.1:1"), Clock())
    assert taken(here, "a", 20) == 5
    await until_shared(here)


async def test_what_a_process_remembers_has_a_bound(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairdrop.access.limits._REMEMBERED", 50)
    clock = Clock()
    here = limits(store, clock)
    here._share_at = math.inf
    for n in range(500):
        clock.now += 0.01
        here.take("requests", f"k{n}")
    assert len(here._buckets["requests"].full_at) <= 51


async def test_the_counts_of_a_minute_add_up_and_are_gone_later(sale: DrivenSale) -> None:
    key = "requests:a"
    assert (await sale.scripts.rates(sale.ref, [(key, 3)], now_ms=sale.now_ms)).totals == [3]
    assert (await sale.scripts.rates(sale.ref, [(key, 4)], now_ms=sale.now_ms)).totals == [7]
    sale.pass_ms(60_000)
    assert (await sale.scripts.rates(sale.ref, [(key, 1)], now_ms=sale.now_ms)).totals == [1]
    redis = sale.scripts.store.redis
    (first, *_) = [k async for k in redis.scan_iter(f"fd:{{{sale.ref.id}}}:1:rates:*")]
    assert 0 < await redis.ttl(first) <= 120


# ---------------------------------------------------------------- over HTTP


@pytest.fixture
async def guarded(
    services: BackgroundServices, database_url: str, client: httpx.AsyncClient
) -> object:
    """A site with small limits, and an open sale."""
    sale = await opened(client, rate_per_s=1_000)
    settings = settings_for(
        services,
        database_url,
        limit_requests_per_s=0.5,
        limit_requests_burst=8,
        limit_identities_per_s=0.1,
        limit_identities_burst=3,
        limit_buyer_per_s=0.5,
        limit_buyer_burst=4,
    )
    return sale, settings


def from_address(address: str, **more: str) -> dict[str, str]:
    return {"x-forwarded-for": address, "authorization": "", **more}


def random_address() -> str:
    number = uuid.uuid4().int
    return f"198.{18 + number % 2}.{number >> 8 & 255}.{number >> 16 & 255}"


def told_when(answer: httpx.Response, policy: str, quota: int, window: int) -> None:
    document = problem(answer, 429, "too_many_requests")
    assert document["policy"] == policy
    wait = int(answer.headers["retry-after"])
    assert wait >= 1
    assert answer.headers["ratelimit-policy"] == f'"{policy}";q={quota};w={window}'
    assert answer.headers["ratelimit"] == f'"{policy}";r=0;t={wait}'


async def test_case_39_made_up_identities_take_nothing_and_real_ones_are_limited(
    guarded: tuple[dict[str, str], object],
) -> None:
    """A place is for an identity that the server gave out, and an address gets few of them."""
    sale, settings = guarded
    join = f"/v1/sales/{sale['id']}/join"
    async with open_parts(settings) as parts, client_of(parts, key=None) as client:  # type: ignore[arg-type]
        for made_up in ("fdv1.me.me", "me", "fdv1.AAAAAAAAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAA"):
            headers = from_address(random_address(), authorization=f"Bearer {made_up}")
            problem(await client.post(join, headers=headers), 401, "visitor_unknown")
        address = random_address()
        visitors = set()
        for _ in range(3):
            client.cookies.clear()
            answer = await client.post(join, headers=from_address(address))
            visitors.add(answer.json()["visitor"])
        assert len(visitors) == 3
        client.cookies.clear()
        told_when(await client.post(join, headers=from_address(address)), "identities", 3, 30)
        found = await parts.catalog.sale(sale["id"])
        assert found is not None
        figures = await parts.inventory.figures(found.ref, [])
        assert figures.waiting + figures.called == 3
        # Somebody else is not touched, and neither is one of the three.
        client.cookies.clear()
        assert (await client.post(join, headers=from_address(random_address()))).is_success


async def test_an_address_has_a_limit_and_a_server_of_the_shop_has_none(
    guarded: tuple[dict[str, str], object],
) -> None:
    sale, settings = guarded
    address, look = random_address(), f"/v1/sales/{sale['id']}"
    async with open_parts(settings) as parts, client_of(parts, key=None) as client:  # type: ignore[arg-type]
        answers = [await client.get(look, headers=from_address(address)) for _ in range(9)]
        assert [answer.status_code for answer in answers] == [200] * 8 + [429]
        told_when(answers[-1], "requests", 8, 16)
        for trusted in (
            from_address(address, **{"fairdrop-shop-key": ADMIN_KEY}),
            from_address(address, authorization=f"Bearer {ADMIN_KEY}"),
        ):
            assert (await client.get(look, headers=trusted)).status_code == 200
        wrong = from_address(address, **{"fairdrop-shop-key": "not one of them"})
        assert (await client.get(look, headers=wrong)).status_code == 429


async def test_a_visitor_has_a_limit_from_wherever_they_come(
    guarded: tuple[dict[str, str], object],
) -> None:
    sale, settings = guarded
    async with open_parts(settings) as parts, client_of(parts, key=None) as client:  # type: ignore[arg-type]
        token = parts.visitors.new()[1]
        cookie, answers = f"fairdrop_visitor={token}", []
        for shown in (
            {"authorization": f"Bearer {token}"},
            {"authorization": f"bearer {token}"},
            {"cookie": cookie},
            {"cookie": cookie, "authorization": "Basic c2hvcDpzaG9w"},
            {"authorization": f"Bearer {token}"},
        ):
            headers = {"x-forwarded-for": random_address(), **shown}
            answers.append(await client.get(f"/v1/sales/{sale['id']}/me", headers=headers))
        assert [answer.status_code for answer in answers] == [200] * 4 + [429]
        told_when(answers[-1], "buyer", 4, 8)


async def test_ones_own_machines_have_no_limit(guarded: tuple[dict[str, str], object]) -> None:
    sale, settings = guarded
    async with open_parts(settings) as parts, client_of(parts, key=None) as client:  # type: ignore[arg-type]
        for _ in range(30):
            assert (await client.get(f"/v1/sales/{sale['id']}")).status_code == 200


async def test_a_refusal_for_asking_too_often_is_no_answer_to_keep_under_a_key(
    guarded: tuple[dict[str, str], Any], client: httpx.AsyncClient
) -> None:
    """H3: whoever comes back when told to is answered, under the same key."""
    _, settings = guarded
    order, keys = f"/v1/orders/{uuid.uuid4()}/cancel", [f"key-{number}" for number in range(12)]
    async with open_parts(settings) as parts, client_of(parts, key=None) as limited:
        _, token = parts.visitors.new()
        bearer = {"authorization": f"Bearer {token}"}
        answers = {
            key: await limited.post(order, headers={**bearer, "idempotency-key": key})
            for key in keys
        }
    refused = [key for key, answer in answers.items() if answer.status_code == 429]
    assert refused
    again = await client.post(order, headers={**bearer, "idempotency-key": refused[0]})
    problem(again, 404, "no_order")
