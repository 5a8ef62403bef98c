"""The rows of draws and the parts of their public files."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from fairdrop.drivers.database import Queries

from .model import DrawRecord, DrawState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fairdrop.drivers.database import Connection, Database

SQL = Queries("fairdrop.draw", "draw")
PART_BYTES = 1 << 20
"""Bytes of a part: a million entries are 23 parts, and no query carries much more than one."""
_COLUMNS = tuple(
    name for name in DrawRecord.__struct_fields__ if name not in {"sale_id", "state", "commitment"}
)


async def draw_of(connection: Connection, sale_id: str) -> DrawRecord | None:
    """The draw of a sale; None for a sale made before there were draws."""
    row = await connection.fetchrow(SQL["draw_of"], UUID(sale_id))
    if row is None:
        return None
    return DrawRecord(
        sale_id=str(row["sale_id"]),
        state=DrawState(row["state"]),
        commitment=row["commitment"] or "",
        **{column: row[column] for column in _COLUMNS},
    )


async def add_file(connection: Connection, sale_id: str, name: str, body: bytes) -> None:
    """Write a public file, in parts. It must not be there."""
    parts = [body[at : at + PART_BYTES] for at in range(0, len(body), PART_BYTES)]
    await connection.executemany(
        SQL["add_part"],
        [(UUID(sale_id), name, number, part) for number, part in enumerate(parts)],
    )


async def file_size(database: Database, sale_id: str, name: str) -> int | None:
    """Bytes of a public file; None when it is not there."""
    async with database.connection() as connection:
        size = await connection.fetchval(SQL["file_size"], UUID(sale_id), name)
    return None if size is None else int(size)


async def file_parts(database: Database, sale_id: str, name: str) -> AsyncIterator[bytes]:
    """The parts of a public file, one query each, so that no connection waits for a slow reader."""
    number = 0
    while True:
        async with database.connection() as connection:
            body = await connection.fetchval(SQL["file_part"], UUID(sale_id), name, number)
        if body is None:
            return
        yield body
        number += 1
