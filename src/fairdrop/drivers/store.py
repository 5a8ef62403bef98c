"""The store: one client, and scripts that take a batch.

A script is a ``.lua`` file whose header is its contract. One calling convention serves all:

- ``KEYS`` are the structures named on the header's ``KEYS:`` line, in that order;
- ``ARGV[1]`` is the time in milliseconds, or ``0`` for the store's own ``TIME``;
- ``ARGV[2]`` is the batch, as msgpack; the reply is one msgpack value.

One packed argument each way costs Python two calls into C a batch instead of some work an
argument, and lets replies be decoded straight into typed structures.

Every script is safe to run twice with the same arguments, so a call whose connection broke is
repeated once: a pooled connection that died with the old server costs a retry, not an error.

What the server has answered may still be lost when it dies. Where that may not be, :class:`Waits`
has each batch wait until replicas, or the server's own append-only file, have it (H8): ``WAIT`` and
``WAITAOF`` follow the script on its connection, once however many requests the batch carries.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import msgspec
from hiredis import pack_command
from redis import exceptions as redis_errors
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from fairdrop.errors import StoreUnavailable

from .keys import sale_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from redis.asyncio.connection import AbstractConnection

Reply = TypeVar("Reply")

_FIRST_LINE = re.compile(r"\A--[^\n]*")
_KEYS_LINE = re.compile(r"^--\s*KEYS:\s*(.+)$", re.MULTILINE)
_REPLY_LINE = re.compile(r"^--\s+([A-Z][A-Z_]+)\s{2,}\S", re.MULTILINE)
_encode = msgspec.msgpack.encode
CONNECTIONS = 100
"""What one process keeps open to the store at the most; ``?max_connections=`` in the URL changes it."""
LANES = 16
"""Connections that scripts keep for themselves besides: a batch or two of each script at one time."""


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua file with the keys and replies that its header declares."""

    name: str
    source: str
    sha: str
    key_names: tuple[str, ...]
    replies: tuple[str, ...]
    reads_only: bool = False
    """Whether its header's first line says that it changes nothing: then there is nothing to keep."""

    @classmethod
    def load(cls, package: str, name: str) -> Script:
        """Read ``lua/<name>.lua`` of the package; raises ValueError without a ``KEYS:`` line."""
        source = resources.files(package).joinpath("lua", f"{name}.lua").read_text("utf-8")
        keys = _KEYS_LINE.search(source)
        if keys is None:
            raise ValueError(f"{package}/lua/{name}.lua declares no KEYS")
        return cls(
            name=name,
            source=source,
            sha=hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest(),
            key_names=tuple(keys.group(1).split()),
            replies=tuple(dict.fromkeys(_REPLY_LINE.findall(source))),
            reads_only="changes nothing" in (_FIRST_LINE.findall(source) or [""])[0],
        )

    def keys(self, sale_id: str, epoch: int) -> tuple[str, ...]:
        """The script's keys for one sale; compute once and keep."""
        return tuple(sale_key(sale_id, epoch, name) for name in self.key_names)


class Waits(NamedTuple):
    """What has to have a batch before it is answered (H8); nothing besides the server by default."""

    replicas: int = 0
    """So many replicas have it in memory (``WAIT``)."""
    aof: bool = False
    """The server's append-only file has it on the disk (``WAITAOF``)."""
    timeout_ms: int = 250
    """So long it may take; a file that is synced once a second (``everysec``) takes up to 100 ms."""

    def __bool__(self) -> bool:
        """Whether there is anything to wait for."""
        return self.replicas > 0 or self.aof


NO_WAITS = Waits()


class Store:
    """A connection pool to one Valkey or Redis server, lanes for scripts, and nothing else.

    A pool takes a lock to hand a connection out and to take it back, and looks at it each time: more
    than half of the 100 us of a call. Coalesced calls need few connections, so they keep some.
    """

    def __init__(self, url: str, *, timeout_s: float = 0.4, waits: Waits = NO_WAITS) -> None:
        """Connect lazily to ``url`` (``redis://``, ``rediss://`` or ``unix://``).

        ``timeout_s`` bounds each call as a whole: connecting, answers and the repetition. A caller
        may wait for a batch in flight and then for their own, so less than half a second keeps the
        promise to tell of an unreachable store within a second (W14).
        """
        self.url = url
        self._timeout_s = timeout_s
        self._waits = waits
        # A call beyond the limit waits for a connection; the client's usual pool refuses it at once,
        # which would tell buyers that the store is away while it is merely busy.
        self.redis: Redis = Redis.from_pool(
            BlockingConnectionPool.from_url(
                url,
                max_connections=CONNECTIONS,
                timeout=timeout_s,
                socket_timeout=timeout_s,
                socket_connect_timeout=timeout_s,
                retry=Retry(NoBackoff(), 0),
                health_check_interval=0,
                protocol=2,
            )
        )
        self._lanes: list[AbstractConnection] = []
        self._free_lanes: list[AbstractConnection] = []

    async def run(
        self,
        script: Script,
        keys: Sequence[str],
        batch: Any,
        reply: msgspec.msgpack.Decoder[Reply],
        *,
        now_ms: int = 0,
    ) -> Reply:
        """Run the script on one batch and decode its reply.

        Raises StoreUnavailable when the store cannot be reached, is loading, or refuses writes; also
        when it has done its work and what :class:`Waits` asks for did not come in time. Then the
        effects stand, and whoever repeats the request finds them, by its key.
        Cost: one round trip; a second one after a restart of the store (reload by source).
        """
        arguments = (len(keys), *keys, str(now_ms), _encode(batch))
        try:
            # The timeouts of a connection add up: connecting, greeting, each answer, once again.
            async with asyncio.timeout(self._timeout_s):
                return reply.decode(await self._evaluate(script, arguments))
        except (TimeoutError, redis_errors.TimeoutError) as error:
            raise StoreUnavailable(f"{script.name}: no answer in time") from error
        except (redis_errors.ConnectionError, OSError) as error:
            raise StoreUnavailable(f"{script.name}: {type(error).__name__}") from error
        except redis_errors.ResponseError as error:
            # A server without an append-only file cannot promise to have written it.
            if _is_refusal(error) or "WAITAOF" in str(error):
                raise StoreUnavailable(f"{script.name}: {error}") from error
            raise

    async def _evaluate(self, script: Script, arguments: tuple[Any, ...]) -> bytes:
        """By its digest, by its source where the server has it not; once more if the line broke."""
        for may_repeat in (True, False):
            try:
                if self._waits and not script.reads_only:
                    return await self._evaluate_and_wait(script, arguments)
                try:
                    return await self._call("EVALSHA", script.sha, arguments)
                except redis_errors.NoScriptError:
                    return await self._call("EVAL", script.source, arguments)
            except (redis_errors.ConnectionError, OSError):
                if not may_repeat:
                    raise
        raise AssertionError("unreachable")

    async def _call(self, command: str, code: str, arguments: tuple[Any, ...]) -> bytes:
        """One run of a script, on a lane; of the pool's connections one, when all lanes are busy."""
        if self._free_lanes:
            lane = self._free_lanes.pop()
        elif len(self._lanes) < LANES:
            lane = self.redis.connection_pool.make_connection()  # type: ignore[no-untyped-call]
            # One timeout bounds the whole call (:meth:`run`): none is set for each of its halves.
            lane.socket_timeout = None
            self._lanes.append(lane)
        else:
            call = self.redis.execute_command(command, code, *arguments)  # type: ignore[no-untyped-call]
            return cast("bytes", await call)
        try:
            packed = pack_command((command, code, *arguments))
            await lane.send_packed_command(packed, check_health=False)
            return cast("bytes", await lane.read_response())
        finally:
            # Whatever broke in the middle of a call was disconnected: its next call connects anew.
            self._free_lanes.append(lane)

    async def _evaluate_and_wait(self, script: Script, arguments: tuple[Any, ...]) -> bytes:
        """The script, and after it on the same connection what waits for its effects."""
        replies = await self._in_one_go("EVALSHA", script.sha, arguments)
        if isinstance(replies[0], redis_errors.NoScriptError):
            replies = await self._in_one_go("EVAL", script.source, arguments)
        for reply in replies:
            if isinstance(reply, Exception):
                raise reply
        waits, acknowledged = self._waits, replies[2:]
        if waits.replicas > 0 and (got := acknowledged.pop(0)) < waits.replicas:
            raise StoreUnavailable(f"{script.name}: {got} of {waits.replicas} replicas have it")
        if waits.aof and acknowledged.pop(0)[0] < 1:
            raise StoreUnavailable(f"{script.name}: not in the append-only file in time")
        return cast("bytes", replies[0])

    async def _in_one_go(self, command: str, code: str, arguments: tuple[Any, ...]) -> list[Any]:
        """Replies of the script, of a write, and of the waiting; one packet there, one back.

        The server waits for what this connection has written. A script that finds its work done
        writes nothing, although the first call's effects may be nowhere else yet: so something is
        written after it, and what is waited for covers all that came before.
        """
        waits = self._waits
        pipeline = self.redis.pipeline(transaction=False)
        pipeline.execute_command(command, code, *arguments)
        pipeline.set(f"{arguments[1].rpartition(':')[0]}:waited", 1)
        if waits.replicas > 0:
            pipeline.execute_command("WAIT", waits.replicas, waits.timeout_ms)
        if waits.aof:
            pipeline.execute_command("WAITAOF", 1, 0, waits.timeout_ms)
        return await pipeline.execute(raise_on_error=False)

    async def append(self, stream: str, field: str, values: Sequence[bytes], *, kept: int) -> None:
        """Append entries of one field to a stream, which keeps about the newest ``kept``.

        One round trip. Raises StoreUnavailable; some of the entries may be there all the same.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                pipeline = self.redis.pipeline(transaction=False)
                for value in values:
                    pipeline.xadd(stream, {field: value}, maxlen=kept, approximate=True)
                await pipeline.execute()
        except (redis_errors.RedisError, OSError) as error:
            raise StoreUnavailable(f"append: {type(error).__name__}") from error

    async def ping(self) -> None:
        """Raise StoreUnavailable unless the store answers."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await self.redis.ping()
        except (redis_errors.RedisError, OSError) as error:
            raise StoreUnavailable(str(error) or "no answer in time") from error

    async def unlink(self, keys: Sequence[str]) -> None:
        """Take keys away at once; their memory is freed beside. Raises StoreUnavailable."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await self.redis.unlink(*keys)
        except (redis_errors.RedisError, OSError) as error:
            raise StoreUnavailable(str(error) or "no answer in time") from error

    async def eviction_policy(self) -> str:
        """The server's ``maxmemory-policy``; anything but ``noeviction`` may lose a line (case 9).

        Raises StoreUnavailable.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                # INFO tells where hosted stores refuse CONFIG.
                memory = await self.redis.info("memory")
        except (redis_errors.RedisError, OSError) as error:
            raise StoreUnavailable(str(error) or "no answer in time") from error
        return str(memory.get("maxmemory_policy", "unknown"))

    async def close(self) -> None:
        """Close all connections."""
        for lane in self._lanes:
            await lane.disconnect()
        await self.redis.aclose()


_REFUSALS = (
    redis_errors.OutOfMemoryError,
    redis_errors.ReadOnlyError,
    redis_errors.MasterDownError,
    redis_errors.ClusterDownError,
)


def _is_refusal(error: redis_errors.ResponseError) -> bool:
    """Whether an error reply means 'not now' (out of memory, replica, busy) and not 'a bug'.

    The client makes classes of some codes and takes the code off the message; others it leaves.
    """
    return isinstance(error, _REFUSALS) or str(error).startswith(("NOREPLICAS", "MISCONF", "BUSY"))
