"""The crowd's client repeats what promised nothing, and nothing else."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from fairdrop.embedded import free_port
from fairdrop.rehearsal.client import Client, percentile

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[URL]:
    app = web.Application()
    app.router.add_route("*", "/", handler)
    async with TestServer(app) as server:
        yield server.make_url("/")


@pytest.mark.parametrize("busy", [429, 502, 503, 504])
async def test_a_busy_shop_is_asked_again_with_the_same_key_and_body(busy: int) -> None:
    asked: list[tuple[str | None, bytes]] = []

    async def handler(request: web.Request) -> web.Response:
        asked.append((request.headers.get("Idempotency-Key"), await request.read()))
        return web.json_response({"ok": True}, status=busy if len(asked) < 3 else 201)

    async with serving(handler) as url, Client() as client:
        answer = await client.call("reserve", "POST", url, {"Idempotency-Key": "k1"}, b'{"a":1}')
        assert (answer.status, answer.code) == (201, "")
        assert asked == [("k1", b'{"a":1}')] * 3
        assert (client.requests, client.repeats) == (3, 2)
        assert len(client.latencies_ms["reserve"]) == 1


async def test_a_connection_that_breaks_is_made_again() -> None:
    asked = 0

    async def handler(request: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        if asked == 1:
            assert request.transport is not None
            request.transport.abort()
        return web.json_response({})

    async with serving(handler) as url, Client() as client:
        answer = await client.call("join", "POST", url)
        assert answer.status == 200
        assert client.repeats == 1


async def test_a_shop_that_is_not_there_yet_is_waited_for() -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.json_response({})

    app = web.Application()
    app.router.add_get("/", handler)
    port = free_port()
    async with Client() as client:
        asking = asyncio.create_task(
            client.call("status", "GET", URL(f"http://127.0.0.1:{port}/", encoded=True))
        )
        async with asyncio.timeout(10):
            while not client.repeats:
                await asyncio.sleep(0.01)
        assert not asking.done()
        async with TestServer(app, port=port):
            assert (await asking).status == 200


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 500])
async def test_a_real_answer_is_the_answer(status: int) -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.json_response({"code": "no"}, status=status)

    async with serving(handler) as url, Client() as client:
        answer = await client.call("claim", "POST", url)
        assert (answer.status, answer.code, client.requests) == (status, "no", 1)


async def test_a_problem_that_is_no_json_has_no_code() -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(status=404, text="<html>")

    async with serving(handler) as url, Client() as client:
        assert (await client.call("claim", "POST", url)).code == ""


async def test_a_cancellation_that_a_broken_connection_hides_still_ends_the_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = asyncio.Event()

    async def attempt(*_: object) -> None:
        begun.set()
        with suppress(asyncio.CancelledError):
            await asyncio.get_running_loop().create_future()

    async with Client() as client:
        monkeypatch.setattr(client, "_attempt", attempt)
        asking = asyncio.create_task(client.call("join", "POST", URL("http://localhost/")))
        await begun.wait()
        asking.cancel()
        async with asyncio.timeout(5):
            await asyncio.wait([asking])
        assert asking.cancelled()


async def test_no_more_requests_are_under_way_than_there_are_connections() -> None:
    under_way = most = 0

    async def handler(_: web.Request) -> web.Response:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.001)
        under_way -= 1
        return web.json_response({})

    async with serving(handler) as url, Client(connections=3) as client:
        await asyncio.gather(*(client.call("join", "GET", url) for _ in range(30)))
    assert most == 3


@given(samples=st.lists(st.floats(0, 1e6), min_size=1), share=st.floats(0, 1))
def test_a_percentile_is_a_sample_that_enough_do_not_exceed(
    samples: list[float], share: float
) -> None:
    found = percentile(samples, share)
    assert found in samples
    assert sum(sample <= found for sample in samples) >= share * len(samples)
    smaller = [sample for sample in samples if sample < found]
    assert not smaller or len(smaller) < max(1.0, share * len(samples))
