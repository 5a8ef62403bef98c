"""The store: one client, and scripts that take a batch.

A script is a ``.lua`` file whose header is its contract. One calling convention serves all:

- ``KEYS`` are the structures named on the header's ``KEYS:`` line, in that order;
- ``ARGV[1]`` is the time in milliseconds, or ``0`` for the store's own ``TIME``;
- ``ARGV[2]`` is the batch, as msgpack; the reply is one msgpack value.

One packed argument each way costs Python two calls into C a batch instead of some work an
argument, and lets replies be decoded straight into typed structures.

Every script is safe to run twice with the same arguments, so a call whose connection broke is
repeated once: a pooled connection that died with the old server costs a retry, not an error.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec
from redis import exceptions as redis_errors
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from fairdrop.errors import StoreUnavailable

from .keys import sale_key

if TYPE_CHECKING:
    from collections.abc import Sequence

Reply = TypeVar("Reply")

_KEYS_LINE = re.compile(r"^--\s*KEYS:\s*(.+)$", re.MULTILINE)
_REPLY_LINE = re.compile(r"^--\s+([A-Z][A-Z_]+)\s{2,}\S", re.MULTILINE)
_encode = msgspec.msgpack.encode


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua file with the keys and replies that its header declares."""

    name: str
    source: str
    sha: str
    key_names: tuple[str, ...]
    replies: tuple[str, ...]

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
        )

    def keys(self, sale_id: str, epoch: int) -> tuple[str, ...]:
        """The script's keys for one sale; compute once and keep."""
        return tuple(sale_key(sale_id, epoch, name) for name in self.key_names)


class Store:
    """A connection pool to one Valkey or Redis server, and nothing else."""

    def __init__(self, url: str, *, timeout_s: float = 0.4) -> None:
        """Connect lazily to ``url`` (``redis://``, ``rediss://`` or ``unix://``).

        ``timeout_s`` bounds each call as a whole: connecting, answers and the repetition. A caller
        may wait for a batch in flight and then for their own, so less than half a second keeps the
        promise to tell of an unreachable store within a second (W14).
        """
        self.url = url
        self._timeout_s = timeout_s
        self.redis: Redis = Redis.from_url(
            url,
            socket_timeout=timeout_s,
            socket_connect_timeout=timeout_s,
            retry=Retry(NoBackoff(), 0),
            health_check_interval=0,
            protocol=2,
        )

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

        Raises StoreUnavailable when the store cannot be reached, is loading, or refuses writes.
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
            if _is_refusal(error):
                raise StoreUnavailable(f"{script.name}: {error}") from error
            raise

    async def _evaluate(self, script: Script, arguments: tuple[Any, ...]) -> bytes:
        """By its digest, by its source where the server has it not; once more if the line broke."""
        for may_repeat in (True, False):
            try:
                try:
                    return cast("bytes", await self.redis.evalsha(script.sha, *arguments))
                except redis_errors.NoScriptError:
                    return cast("bytes", await self.redis.eval(script.source, *arguments))
            except (redis_errors.ConnectionError, OSError):
                if not may_repeat:
                    raise
        raise AssertionError("unreachable")

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
        """The server's ``maxmemory-policy``; anything but ``noeviction`` may lose a line."""
        config = await self.redis.config_get("maxmemory-policy")
        return str(config.get("maxmemory-policy", ""))

    async def close(self) -> None:
        """Close all connections."""
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
