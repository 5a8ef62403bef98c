"""Bringing a database to the newest schema, from any number of processes at once."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

import asyncpg
from alembic import command
from alembic.config import Config
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from fairdrop.drivers.database import BROKEN
from fairdrop.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from sqlalchemy import Connection

_LOCK = 0x_FA1D_0001
"""The advisory lock that one migrating process holds."""


async def migrate(database_url: str, revision: str = "head") -> None:
    """Upgrade to ``revision``; processes that come together wait for one of them to do it.

    Raises DatabaseUnavailable when the database does not answer.
    """

    async def connect() -> asyncpg.Connection[asyncpg.Record]:
        return await asyncpg.connect(database_url)

    engine = create_async_engine(
        "postgresql+asyncpg://", async_creator=connect, poolclass=NullPool
    )
    try:
        async with engine.begin() as connection:
            await connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
            await connection.run_sync(_upgrade, revision)
    except BROKEN as error:
        raise DatabaseUnavailable(str(error)) from error
    finally:
        await engine.dispose()


def _upgrade(connection: Connection, revision: str) -> None:
    config = Config()
    with resources.as_file(resources.files("fairdrop.schema") / "migrations") as directory:
        config.set_main_option("script_location", str(directory).replace("%", "%%"))
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
