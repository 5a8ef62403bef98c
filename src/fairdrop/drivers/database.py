"""The database: a pool, named SQL, and one translation of broken connections.

Statements live in ``.sql`` files as titled blocks::

    -- name: insert_orders
    -- What it does, and what it locks.
    INSERT ...;

They are loaded once and called by name, so that a file reads as its table of contents.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager
from importlib import resources
from typing import TYPE_CHECKING

import asyncpg
import msgspec

from fairdrop.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from asyncpg.pool import PoolConnectionProxy

    Connection = PoolConnectionProxy[asyncpg.Record]

_BLOCK = re.compile(r"^--\s*name:\s*(\w+)\s*$", re.MULTILINE)

BROKEN = (
    OSError,
    TimeoutError,
    asyncio.TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # used between the server's farewell and the end of the connection
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
)
"""What asyncpg raises when the server went away; nothing is known of a commit that met one.

InterfaceError it also raises for a mistake of the caller: :meth:`Database.connection` tells these apart.
"""


class Queries:
    """The statements of one ``.sql`` file, by name."""

    def __init__(self, package: str, name: str) -> None:
        """Read ``sql/<name>.sql`` of the package."""
        text = resources.files(package).joinpath("sql", f"{name}.sql").read_text("utf-8")
        parts = _BLOCK.split(text)
        self._statements = {
            title: body.strip() for title, body in zip(parts[1::2], parts[2::2], strict=True)
        }

    def __getitem__(self, name: str) -> str:
        """The statement; raises KeyError for a name that the file does not have."""
        return self._statements[name]

    def names(self) -> tuple[str, ...]:
        """All titles, in the order of the file."""
        return tuple(self._statements)


class Database:
    """A pool of connections to one PostgreSQL database."""

    def __init__(self, url: str, *, max_size: int = 10, timeout_s: float = 10.0) -> None:
        """Remember where to connect; :meth:`open` connects."""
        self.url = url
        self._max_size = max_size
        self._timeout_s = timeout_s
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None

    async def open(self) -> None:
        """Make the pool. Raises DatabaseUnavailable when the server does not answer."""
        try:
            self._pool = await asyncpg.create_pool(
                self.url,
                min_size=1,
                max_size=self._max_size,
                timeout=self._timeout_s,
                command_timeout=self._timeout_s,
                init=_prepare_connection,
                reset=_keep,
                max_inactive_connection_lifetime=0.0,
            )
        except BROKEN as error:
            raise DatabaseUnavailable(str(error)) from error

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection outside a transaction; broken ones are told as DatabaseUnavailable.

        Raises asyncpg.InterfaceError for a mistake in the use of one that is well: a bug of ours, and
        no outage that would pass if only it is tried again.
        """
        if self._pool is None:
            raise DatabaseUnavailable("the pool is not open")
        mistaken = False
        try:
            async with self._pool.acquire(timeout=self._timeout_s) as connection:
                try:
                    yield connection
                except asyncpg.InterfaceError as error:
                    mistaken = _is_well(connection) and not _follows_from_an_outage(error)
                    raise
        except BROKEN as error:
            if mistaken:
                raise
            raise DatabaseUnavailable(f"{type(error).__name__}: {error}") from error

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """One read-committed transaction; rolled back when the block raises."""
        async with self.connection() as connection, connection.transaction():
            yield connection

    async def close(self) -> None:
        """Close the pool, waiting a moment for statements in flight."""
        pool, self._pool = self._pool, None
        if pool is not None:
            try:
                await asyncio.wait_for(pool.close(), 2)
            except (TimeoutError, *BROKEN):
                pool.terminate()


def _is_well(connection: Connection) -> bool:
    """Whether the connection is ours and open: the pool takes one back that breaks."""
    try:
        return not connection.is_closed()
    except asyncpg.InterfaceError:
        return False


def _follows_from_an_outage(error: BaseException) -> bool:
    """Whether it was raised while a broken call was cleaned up after, a transaction's say."""
    earlier = error.__cause__ or error.__context__
    return earlier is not None and (
        isinstance(earlier, (*BROKEN, asyncio.CancelledError)) or _follows_from_an_outage(earlier)
    )


_JSONB_VERSION = b"\x01"


async def _keep(_: asyncpg.Connection[asyncpg.Record]) -> None:
    """Give a connection back as it is, without asking the server for a clean one.

    The pool itself rolls back what was left open. Nothing here sets anything for a session, takes a
    session's lock or listens, and a round trip for each use was a fifth of what a small batch costs.
    """


async def _prepare_connection(connection: asyncpg.Connection[asyncpg.Record], /) -> None:
    # In the binary form, so that COPY can write it too.
    await connection.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        encoder=lambda value: _JSONB_VERSION + msgspec.json.encode(value),
        decoder=lambda packed: msgspec.json.decode(packed[1:]),
        format="binary",
    )
