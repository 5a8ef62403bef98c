"""WebSocket and Server-Sent Events carry the public document and one's own place (W7, H10)."""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack, suppress
from typing import Any

import aiohttp
import httpx
import pytest

from fairdrop.ids import SaleRef, new_secret_id
from fairdrop.web.push import feed
from fairdrop.web.push.listener import MOST_PERSONAL, Broadcast, Form, Listener, Message
from tests.integration.control_plane.own_parts import opened
from tests.integration.push.conftest import StartPush
from tests.integration.push.listening import PATIENCE_S, Push

FORMS = ("stream", "socket")
each_form = pytest.mark.parametrize("form", FORMS)


async def loaded(client: httpx.AsyncClient, push: Push, **fields: Any) -> SaleRef:
    """An open sale that the store has; its worker is the test."""
    sale = await opened(client, **fields)
    found = await push.parts.catalog.sale(sale["id"])
    assert found is not None
    await push.parts.loader.keep_loaded(found)
    return found.ref


@each_form
async def test_whoever_listens_sees_stock_and_serving_number_change(
    push: Push, client: httpx.AsyncClient, form: str
) -> None:
    """H10, W7; how quickly is measured by benchmarks/sockets.py."""
    sale = await loaded(client, push)
    async with push.listen(form, sale.id) as heard:
        first = await heard.next_of("sale")
        public = (await client.get(f"/v1/sales/{sale.id}")).json()
        assert first.keys() == public.keys()
        assert first["epoch"] == sale.epoch
        visitor = new_secret_id()
        await push.parts.waiting_room.join(sale, visitor)
        await push.parts.waiting_room.tick(sale)
        await heard.until("sale", served=1)
        variant = first["variants"][0]["id"]
        await push.parts.inventory.take_late(sale, visitor, new_secret_id(), {variant: 3})
        while (await heard.next_of("sale"))["variants"][0]["free"] != 7:
            pass


@each_form
async def test_a_visitor_is_told_their_place_and_that_it_is_their_turn(
    push: Push, client: httpx.AsyncClient, form: str
) -> None:
    """W7: only to the visitor, whom the cookie names; everybody else hears the public part."""
    sale = await loaded(client, push)
    visitor, other = new_secret_id(), new_secret_id()
    room = push.parts.waiting_room
    await room.join(sale, visitor)
    async with (
        push.listen(form, sale.id, push.cookie(visitor)) as heard,
        push.listen(form, sale.id, push.cookie(visitor)) as second_tab,
        push.listen(form, sale.id, push.cookie(other)) as others,
        push.listen(form, sale.id) as unnamed,
    ):
        assert (await heard.next_of("place"))["state"] == "WAITING"
        assert (await others.next_of("place"))["state"] == "NOT_ENTERED"
        await room.tick(sale)
        told = await heard.until("place", state="READY")
        assert told["claim_by_ms"] > 0
        assert (await second_tab.until("place", state="READY"))["position"] == told["position"]
        for stranger in (others, unnamed):
            called = 0
            while called == 0:
                kind, data = await stranger.next()
                assert kind == "sale", "a stranger hears the public part alone"
                called = data["called"]


@each_form
async def test_a_call_from_before_the_stream_is_told_when_it_opens(
    push: Push, client: httpx.AsyncClient, form: str
) -> None:
    """W7: also from before this process was started, so a restart loses nobody."""
    sale = await loaded(client, push)
    visitor = new_secret_id()
    await push.parts.waiting_room.join(sale, visitor)
    await push.parts.waiting_room.tick(sale)
    async with push.listen(form, sale.id, push.cookie(visitor)) as heard:
        assert (await heard.next_of("place"))["state"] == "READY"


async def test_the_store_is_read_as_often_for_many_as_for_one(
    push: Push, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W7: one look a tick, however many sockets."""
    sale = await loaded(client, push)
    reads: list[str] = []
    run = push.parts.store.run

    async def counted(script: Any, *rest: Any, **more: Any) -> Any:
        reads.append(script.name)
        return await run(script, *rest, **more)

    async def reads_of_ticks(ticks: int) -> list[str]:
        reads.clear()
        async with asyncio.timeout(PATIENCE_S):
            while reads.count("figures") < ticks:
                await asyncio.sleep(0.01)
        return reads[:]

    monkeypatch.setattr(push.parts.store, "run", counted)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        streams = [
            await session.get(
                f"{push.url}/v1/sales/{sale.id}/stream", headers=push.cookie(f"visitor-{number}")
            )
            for number in range(150)
        ]
        for stream in streams:  # Each has been told its place.
            async with asyncio.timeout(PATIENCE_S):
                while not (await stream.content.readline()).startswith(b"event: place"):
                    pass
        assert push.app.counts.open[Form.SSE] == 150
        found = await reads_of_ticks(4)
        assert found.count("figures") == 4
        assert found.count("called") in (3, 4)
        assert len(found) <= 8
        for stream in streams:
            stream.close()


async def test_a_crowd_that_came_at_once_is_told_within_one_tick_of_being_called(
    push: Push, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W7: each of them, a read for each piece of the crowd; benchmarks/sockets.py has the times."""
    monkeypatch.setattr(feed, "STATUS_LIMIT", 50)
    sale = await loaded(client, push, rate_per_s=10_000, cap=1_000, line_cap_factor=0)
    room = push.parts.waiting_room
    visitors = [new_secret_id() for _ in range(120)]
    for visitor in visitors:
        await room.join(sale, visitor)
    async with AsyncExitStack() as stack:
        crowd = [
            await stack.enter_async_context(
                push.listen(FORMS[number % 2], sale.id, push.cookie(visitor))
            )
            for number, visitor in enumerate(visitors)
        ]
        for heard in crowd:
            await heard.until("place", state="WAITING")
        reads: list[int] = []
        statuses = room.statuses

        async def counted(ref: SaleRef, people: list[str]) -> Any:
            reads.append(len(people))
            return await statuses(ref, people)

        monkeypatch.setattr(type(room), "statuses", lambda _room, *given: counted(*given))
        assert (await room.tick(sale)).called == 120
        positions = [(await heard.until("place", state="READY"))["position"] for heard in crowd]
    assert positions == list(range(1, 121)), "each heard their own"
    assert reads == [50, 50, 20]


async def test_a_reader_that_does_not_read_is_dropped_and_disturbs_nobody(
    push: Push, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W7: bounded while it lasts, then ended."""
    monkeypatch.setattr(feed, "SLOW_S", 0.5)
    sale = await loaded(client, push)
    deaf = socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
    deaf.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(deaf, ("127.0.0.1", push.port))
    await loop.sock_sendall(
        deaf, f"GET /v1/sales/{sale.id}/stream HTTP/1.1\r\nhost: x\r\n\r\n".encode()
    )
    async with push.listen("socket", sale.id) as other, asyncio.timeout(PATIENCE_S):
        while push.app.counts.open[Form.SSE] == 0:
            await asyncio.sleep(0.01)
        await other.next_of("sale")
        (listener,) = (each for each in push.app._feeds[sale.id].listeners if each.form is Form.SSE)
        assert listener.connection is not None
        transport = listener.connection._transport
        large = b'"' + b"x" * 200_000 + b'"'
        buffered = []
        while push.app.counts.dropped == 0:
            listener.offer(Broadcast.of(large))
            buffered.append(transport.get_write_buffer_size())
            await asyncio.sleep(0.01)
        assert max(buffered) < 2 * len(large), "one message at the most waits beside the newest"
        assert len(buffered) > 10, "it was offered far more than it may keep"
        while push.app.counts.open[Form.SSE]:
            await asyncio.sleep(0.01)
        await other.next_of("sale")
    deaf.close()


async def test_what_waits_for_one_stream_is_bounded() -> None:
    """W7: the newest document replaces the one before, and few personal messages wait."""
    listener = Listener(Form.SSE, "visitor", None, lambda *_: None)
    for number in range(100):
        listener.offer(Broadcast.of(b"%d" % number))
    taken = [listener.tell(Message("place", b"{}")) for _ in range(100)]
    assert taken == [True] * MOST_PERSONAL + [False] * (100 - MOST_PERSONAL)
    personal, broadcast = await listener.take()
    assert len(personal) == MOST_PERSONAL
    assert broadcast is not None
    assert broadcast.message.sse() == b"event: sale\ndata: 99\n\n"


@each_form
async def test_beyond_the_limit_a_stream_is_refused_and_told_when_to_try_again(
    start_push: StartPush, client: httpx.AsyncClient, form: str
) -> None:
    push = await start_push(push_connections=1)
    sale = await loaded(client, push)
    async with push.listen(form, sale.id) as heard:
        await heard.next_of("sale")
        assert await push.refused(form, sale.id) == (503, "streams_full")
    async with asyncio.timeout(PATIENCE_S):
        while any(push.app.counts.open.values()):
            await asyncio.sleep(0.01)
    async with push.listen(form, sale.id) as heard:
        await heard.next_of("sale")


@each_form
async def test_only_pages_of_the_shop_may_listen(
    start_push: StartPush, client: httpx.AsyncClient, form: str
) -> None:
    """S2: a browser sends the cookie along, whatever page asks."""
    push = await start_push(shop_origins="https://shop.example.org", public_url="https://drop.test")
    sale = await loaded(client, push)
    refused = await push.refused(form, sale.id, {"origin": "https://evil.example.org"})
    assert refused == (403, "origin_refused")
    for origin in ("https://shop.example.org", "https://drop.test", push.url):
        async with push.listen(form, sale.id, {"origin": origin}) as heard:
            await heard.next_of("sale")


@each_form
async def test_a_ticket_names_the_visitor_where_no_cookie_does(
    push: Push, client: httpx.AsyncClient, form: str
) -> None:
    """S2: no lasting secret stands in an address."""
    sale = await loaded(client, push)
    visitor, token = push.parts.visitors.new()
    await push.parts.waiting_room.join(sale, visitor)
    bearer = {"authorization": f"Bearer {token}"}
    issued = (await client.post(f"/v1/sales/{sale.id}/ticket", headers=bearer)).json()
    assert 0 < issued["expires_in_ms"] < 60_000
    query = f"?ticket={issued['ticket']}"
    async with push.listen(form, sale.id, query=query) as heard:
        assert (await heard.next_of("place"))["state"] == "WAITING"
    other = await loaded(client, push)
    assert await push.refused(form, other.id, query=query) == (401, "ticket_refused")
    assert await push.refused(form, sale.id, query=query + "x") == (401, "ticket_refused")
    assert await push.refused(form, "nowhere") == (404, "no_such_sale")


async def test_at_a_stop_everybody_is_told_to_come_back_at_another_moment(
    start_push: StartPush, client: httpx.AsyncClient
) -> None:
    """S6, W7."""
    push = await start_push()
    sale = await loaded(client, push)
    async with (
        push.listen("stream", sale.id) as events,
        push.listen("socket", sale.id) as messages,
    ):
        await events.next_of("sale")
        await messages.next_of("sale")
        stopping = asyncio.create_task(push.stop())
        heard = [dict(await each.to_the_end()) for each in (events, messages)]
        await stopping
    after = [each["bye"]["reconnect_ms"] for each in heard]
    assert all(0 <= ms < 5_000 for ms in after)
    assert heard[1]["closed"] == 1012


async def test_who_sends_something_is_disconnected(push: Push, client: httpx.AsyncClient) -> None:
    """S1."""
    sale = await loaded(client, push)
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{push.url}/v1/sales/{sale.id}/socket") as talking,
    ):
        await talking.receive()
        await talking.send_str("hello?")
        async with asyncio.timeout(PATIENCE_S):
            while not talking.closed:
                await talking.receive()
        assert talking.close_code == 1008


@pytest.mark.parametrize("apart", [False, True])
async def test_who_sends_another_request_behind_a_stream_is_disconnected(
    push: Push, client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, *, apart: bool
) -> None:
    """S1: a server that reads no further would not see the connection end, and keep its place."""
    sale = await loaded(client, push)
    request = f"GET /v1/sales/{sale.id}/stream HTTP/1.1\r\nhost: x\r\n\r\n".encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", push.port)
    async with asyncio.timeout(PATIENCE_S):
        writer.write(request if apart else 2 * request)
        if apart:
            await reader.readuntil(b"event: sale")
            writer.write(request)
        with suppress(ConnectionError):
            await reader.read()
        while push.server.server_state.tasks:
            await asyncio.sleep(0.01)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
    assert not any(push.app.counts.open.values())
    assert not caplog.records


@each_form
async def test_who_has_gone_before_the_stream_began_takes_no_place(
    push: Push, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """Nothing tells of them later: what is sent to a connection that has ended gets lost (S1)."""
    sale = await loaded(client, push)
    looked, catalog = asyncio.Event(), push.parts.catalog
    found = await catalog.sale(sale.id)
    gone = asyncio.Event()

    async def slowly(_name: str) -> Any:
        looked.set()
        await gone.wait()
        return found

    monkeypatch.setattr(catalog, "known", lambda _: None)
    monkeypatch.setattr(catalog, "sale", slowly)
    _, writer = await asyncio.open_connection("127.0.0.1", push.port)
    upgrade = (
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    )
    more = upgrade if form == "socket" else ""
    writer.write(f"GET /v1/sales/{sale.id}/{form} HTTP/1.1\r\nhost: x\r\n{more}\r\n".encode())
    async with asyncio.timeout(PATIENCE_S):
        await looked.wait()
        writer.close()
        while push.server.server_state.connections:
            await asyncio.sleep(0.01)
        gone.set()
        while push.server.server_state.tasks:
            await asyncio.sleep(0.01)
    await writer.wait_closed()
    assert not any(push.app.counts.open.values())


async def test_monitoring_sees_what_listens(push: Push, client: httpx.AsyncClient) -> None:
    """S5."""
    sale = await loaded(client, push)
    async with (
        push.listen("stream", sale.id) as heard,
        aiohttp.ClientSession() as session,
    ):
        await heard.next_of("sale")
        for path in ("/livez", "/readyz"):
            async with session.get(push.url + path) as answer:
                assert answer.status in (200, 503), path
        async with session.get(push.url + "/metrics") as answer:
            told = await answer.text()
    assert 'fairdrop_push_streams{form="sse"} 1.0' in told
    assert 'fairdrop_push_messages_total{form="sse"}' in told
    assert "fairdrop_push_dropped_total 0.0" in told
    assert 'fairdrop_push_fan_out_seconds_bucket{le="+Inf"}' in told
