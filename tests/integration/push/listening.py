"""A push server to listen to, and clients that listen in both forms."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from fairdrop.app import Parts
from fairdrop.embedded import free_port
from fairdrop.web.push import PushApp
from fairdrop.web.push.server import PushServer

PATIENCE_S = 20.0
Event = tuple[str, Any]


class Heard:
    """What one client has heard and not looked at yet."""

    def __init__(self, events: AsyncIterator[Event]) -> None:
        self._events = events
        self.close_code: int | None = None

    async def next(self) -> Event:
        """The next event; StopAsyncIteration once the stream has ended."""
        async with asyncio.timeout(PATIENCE_S):
            return await anext(self._events)

    async def next_of(self, kind: str) -> Any:
        """The data of the next event of this kind; others are passed over."""
        while True:
            found, data = await self.next()
            if found == kind:
                return data

    async def until(self, kind: str, **expected: Any) -> Any:
        """The first event of the kind whose data has these members."""
        while True:
            data = await self.next_of(kind)
            if all(data.get(name) == value for name, value in expected.items()):
                return data

    async def to_the_end(self) -> list[Event]:
        found = []
        try:
            while True:
                found.append(await self.next())
        except StopAsyncIteration:
            return found


class Push:
    """The server, and ways to listen to it."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.app = PushApp(parts)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.server = PushServer(self.app, host="127.0.0.1", port=self.port)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self.server.serve())
        while not self.server.started:
            assert not self._task.done()
            await asyncio.sleep(0.01)

    async def stop(self) -> None:
        self.server.should_exit = True
        if self._task is not None:
            await self._task

    def cookie(self, visitor: str) -> dict[str, str]:
        return {"cookie": f"fairdrop_visitor={self.parts.visitors.token(visitor)}"}

    @asynccontextmanager
    async def listen(
        self, form: str, sale: str, headers: Mapping[str, str] | None = None, query: str = ""
    ) -> AsyncIterator[Heard]:
        """``form`` is ``stream`` or ``socket``."""
        address = f"{self.url}/v1/sales/{sale}/{form}{query}"
        async with aiohttp.ClientSession() as session:
            if form == "stream":
                async with session.get(address, headers=headers) as answer:
                    assert answer.status == 200, await answer.text()
                    assert answer.headers["content-type"].startswith("text/event-stream")
                    yield Heard(_events(answer))
            else:
                async with session.ws_connect(address, headers=headers) as socket:
                    heard = Heard(_messages(socket))
                    yield heard

    async def refused(
        self, form: str, sale: str, headers: Mapping[str, str] | None = None, query: str = ""
    ) -> tuple[int, str]:
        """The status and the problem's code of a stream that is refused."""
        upgrade = {
            "upgrade": "websocket",
            "connection": "Upgrade",
            "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
            "sec-websocket-version": "13",
        }
        sent = {**(headers or {}), **(upgrade if form == "socket" else {})}
        address = f"{self.url}/v1/sales/{sale}/{form}{query}"
        async with aiohttp.ClientSession() as session, session.get(address, headers=sent) as answer:
            assert answer.headers["content-type"] == "application/problem+json"
            document = json.loads(await answer.text())
            return answer.status, document["code"]


async def _events(answer: aiohttp.ClientResponse) -> AsyncIterator[Event]:
    kind = ""
    async for raw in answer.content:
        line = raw.decode().rstrip("\n")
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield kind, json.loads(line.removeprefix("data: "))


async def _messages(socket: aiohttp.ClientWebSocketResponse) -> AsyncIterator[Event]:
    async for message in socket:
        assert message.type is aiohttp.WSMsgType.TEXT
        document = json.loads(message.data)
        yield document["type"], document["data"]
    yield "closed", socket.close_code
