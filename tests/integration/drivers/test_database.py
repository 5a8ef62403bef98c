"""An outage of the database is told as one; a mistake of ours is not (W14)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg
import pytest

from fairdrop.app import Parts
from fairdrop.drivers.database import Database
from fairdrop.errors import DatabaseUnavailable

Call = Callable[[Any], Awaitable[object]]


async def too_few_arguments(connection: Any) -> None:
    await connection.fetchval("SELECT $1::int")


async def two_at_once(connection: Any) -> None:
    calls = (connection.fetchval("SELECT pg_sleep(0.01)") for _ in range(2))
    for answer in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(answer, BaseException):
            raise answer


async def a_transaction_begun_twice(connection: Any) -> None:
    transaction = connection.transaction()
    await transaction.start()
    await transaction.start()


async def killed_by_its_own_hand(connection: Any) -> None:
    await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")


async def used_after_it_was_killed(connection: Any) -> None:
    with pytest.raises((asyncpg.PostgresError, OSError, asyncpg.InterfaceError)):
        await killed_by_its_own_hand(connection)
    await connection.fetchval("SELECT 1")


async def taking_too_long(connection: Any) -> None:
    await connection.fetchval("SELECT pg_sleep(30)", timeout=0.05)


async def a_transaction_of_one_that_dies(connection: Any) -> None:
    async with connection.transaction():
        await killed_by_its_own_hand(connection)


async def used_in_a_transaction_after_it_was_killed(connection: Any) -> None:
    async with connection.transaction():
        await used_after_it_was_killed(connection)


async def cleaning_up_after_a_broken_call(connection: Any) -> None:
    """What then goes wrong follows from it, however well the connection may look."""
    try:
        await taking_too_long(connection)
    finally:
        await too_few_arguments(connection)


MISTAKES: list[Call] = [too_few_arguments, two_at_once, a_transaction_begun_twice]
OUTAGES: list[Call] = [
    killed_by_its_own_hand,
    used_after_it_was_killed,
    taking_too_long,
    a_transaction_of_one_that_dies,
    used_in_a_transaction_after_it_was_killed,
    cleaning_up_after_a_broken_call,
]


@pytest.fixture
async def database(parts: Parts) -> AsyncIterator[Database]:
    database = Database(parts.database.url, max_size=1)
    await database.open()
    yield database
    await database.close()


@pytest.mark.parametrize("call", MISTAKES)
async def test_a_mistake_in_a_call_is_no_outage(database: Database, call: Call) -> None:
    with pytest.raises(asyncpg.InterfaceError):
        async with database.connection() as connection:
            await call(connection)
    await is_well(database)


@pytest.mark.parametrize("call", OUTAGES)
async def test_a_connection_that_breaks_is_an_outage_whatever_is_called_on_it_then(
    database: Database, call: Call
) -> None:
    with pytest.raises(DatabaseUnavailable):
        async with database.connection() as connection:
            await call(connection)
    await is_well(database)


async def test_a_pool_that_is_closed_is_an_outage(database: Database) -> None:
    pool = database._pool
    assert pool is not None
    await pool.close()
    with pytest.raises(DatabaseUnavailable):
        await is_well(database)


async def is_well(database: Database) -> None:
    async with database.connection() as connection:
        assert await connection.fetchval("SELECT 1") == 1
