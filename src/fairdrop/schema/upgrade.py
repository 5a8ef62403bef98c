"""Alembic, run on a connection of ours, under a lock."""

from __future__ import annotations

from importlib import resources

import asyncpg
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

_LOCK = 0x_FA1D_0001
"""The advisory lock that one migrating process holds."""


async def upgrade(database_url: str, revision: str) -> None:
    """Upgrade in one transaction, while no other process does."""

    async def connect() -> asyncpg.Connection[asyncpg.Record]:
        return await asyncpg.connect(database_url)

    engine = create_async_engine("postgresql+asyncpg://", async_creator=connect, poolclass=NullPool)
    try:
        async with engine.begin() as connection:
            await connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
            await connection.run_sync(_run, revision)
    finally:
        await engine.dispose()


def _run(connection: Connection, revision: str) -> None:
    config = Config()
    with resources.as_file(resources.files("fairdrop.schema") / "migrations") as directory:
        config.set_main_option("script_location", str(directory).replace("%", "%%"))
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
