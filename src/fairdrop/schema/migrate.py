"""Bringing a database to the newest schema, from any number of processes at once."""

from __future__ import annotations

from importlib import resources

import asyncpg

from fairdrop.drivers.database import BROKEN
from fairdrop.errors import DatabaseUnavailable


async def migrate(database_url: str, revision: str = "head") -> None:
    """Upgrade to ``revision``; processes that come together wait for one of them to do it.

    Raises DatabaseUnavailable when the database does not answer.
    """
    # Alembic takes half a second to load, and most starts find nothing to do.
    from .upgrade import upgrade  # noqa: PLC0415

    try:
        await upgrade(database_url, revision)
    except BROKEN as error:
        raise DatabaseUnavailable(str(error)) from error


async def ensure_migrated(database_url: str) -> None:
    """Upgrade when the database is not at the newest revision; costs one query when it is.

    Raises DatabaseUnavailable when the database does not answer.
    """
    try:
        connection = await asyncpg.connect(database_url)
        try:
            present = await connection.fetchval("SELECT max(version_num) FROM alembic_version")
        except asyncpg.UndefinedTableError:
            present = None
        finally:
            await connection.close()
    except BROKEN as error:
        raise DatabaseUnavailable(str(error)) from error
    # A newer one belongs to newer code that runs beside us during an upgrade (S6).
    if present is None or present < newest_revision():
        await migrate(database_url)


def newest_revision() -> str:
    """The revision that the code expects: migrations are numbered ``0001_what.py``."""
    files = (resources.files("fairdrop.schema") / "migrations" / "versions").iterdir()
    return max(file.name[:4] for file in files if file.name[:4].isdigit())
