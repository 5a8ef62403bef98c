"""The first answers to keyed requests, kept for a day (H3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fairdrop.drivers.database import Queries

if TYPE_CHECKING:
    from fairdrop.drivers.database import Database

SQL = Queries("fairdrop.checkout", "answers")
LIFE_H = 24
"""How long an answer is kept; the key may be used for something else afterwards."""
ABANDONED_AFTER_S = 60
"""When a request that never ended is taken for dead, and may be carried out again."""
PURGE_LIMIT = 1_000


class KnownAnswer(NamedTuple):
    """What was asked under a key, in short, and the answer; no status: it is under way."""

    fingerprint: str
    status: int | None
    content_type: str | None
    body: bytes | None


class Answers:
    """Keeps answers by client and key. Raises DatabaseUnavailable. One statement a call."""

    def __init__(self, database: Database) -> None:
        """Take the database."""
        self._database = database

    async def begin(self, client: str, key: str, fingerprint: str) -> bool:
        """Take the key; False when a request has it already, under way or answered."""
        async with self._database.connection() as connection:
            taken = await connection.fetchval(
                SQL["begin"], client, key, fingerprint, ABANDONED_AFTER_S, LIFE_H
            )
        return bool(taken)

    async def known(self, client: str, key: str) -> KnownAnswer | None:
        """What has the key; None when nothing has it (any more)."""
        async with self._database.connection() as connection:
            row = await connection.fetchrow(SQL["known"], client, key)
        return None if row is None else KnownAnswer(*row)

    async def keep(
        self, client: str, key: str, status: int, content_type: str, body: bytes
    ) -> None:
        """The answer to the request that has the key."""
        async with self._database.connection() as connection:
            await connection.execute(SQL["keep"], client, key, status, content_type, body)

    async def forget(self, client: str, key: str) -> None:
        """The request came to nothing: whoever asks again starts anew."""
        async with self._database.connection() as connection:
            await connection.execute(SQL["forget"], client, key)

    async def purge(self) -> int:
        """Delete some answers whose life is over; returns how many."""
        async with self._database.connection() as connection:
            rows = await connection.fetch(SQL["purge"], LIFE_H, PURGE_LIMIT)
        return len(rows)
