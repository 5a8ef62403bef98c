"""The catalogue's use cases: create, look up, change, and steer sales."""

from __future__ import annotations

import asyncio
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from uuid import UUID

import asyncpg

from fairdrop.errors import DatabaseUnavailable
from fairdrop.ids import is_uuid, new_id

from . import records
from .model import NewSale, Sale
from .records import SQL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairdrop.drivers.database import Connection, Database

FRESH_S = 1.0
"""How long a process trusts its copy of a sale (modes and limits are read in the store anyway)."""
_REMEMBERED = 10_000


class CreateOutcome(StrEnum):
    """Every answer to creating a sale."""

    CREATED = "created"
    SLUG_TAKEN = "slug_taken"


class Steer(StrEnum):
    """What an operator can make a sale do (W17)."""

    OPEN = "open"
    PAUSE = "pause"
    RESUME = "resume"
    DRAIN = "drain"
    CLOSE = "close"


STEERING: dict[Steer, tuple[str, tuple[str, ...]]] = {
    Steer.OPEN: ("open", ("scheduled", "lobby", "closed")),
    Steer.PAUSE: ("paused", ("open",)),
    Steer.RESUME: ("open", ("paused", "draining")),
    Steer.DRAIN: ("draining", ("open", "paused")),
    Steer.CLOSE: ("closed", ("scheduled", "lobby", "drawing", "open", "paused", "draining")),
}
"""Steering input -> (the new mode, the modes it is possible in)."""


class Catalog:
    """Sales in the database, with a copy in memory that serves while the database is away."""

    def __init__(self, database: Database) -> None:
        """Start with nothing remembered."""
        self._database = database
        self._sales: dict[str, tuple[float, Sale | None]] = {}
        self._loading: dict[str, asyncio.Task[Sale | None]] = {}

    def known(self, sale_id: str) -> Sale | None:
        """The remembered sale, refreshed in the background once it is a second old.

        Costs a dictionary look-up. None when the sale was never asked for, or is not there.
        """
        entry = self._sales.get(sale_id)
        if entry is None:
            return None
        if entry[0] <= time.monotonic() and sale_id not in self._loading:
            self._load(sale_id)
        return entry[1]

    async def sale(self, id_or_slug: str) -> Sale | None:
        """The sale of an id or a slug, at most a second old; None when there is none.

        While the database is away the last known copy serves: the line goes on. Raises
        DatabaseUnavailable for a sale that was never seen.
        """
        if "\0" in id_or_slug:
            return None  # no text of the database has one
        entry = self._sales.get(id_or_slug)
        if entry is not None and entry[0] > time.monotonic():
            return entry[1]
        try:
            return await asyncio.shield(self._load(id_or_slug))
        except DatabaseUnavailable:
            if entry is not None:
                return entry[1]
            raise

    def _load(self, id_or_slug: str) -> asyncio.Task[Sale | None]:
        """One read of the database, however many ask for the sale at the moment."""
        task = self._loading.get(id_or_slug)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._read(id_or_slug))
            self._loading[id_or_slug] = task
            task.add_done_callback(lambda done: self._loaded(id_or_slug, done))
        return task

    async def _read(self, id_or_slug: str) -> Sale | None:
        by_id = is_uuid(id_or_slug)
        async with self._database.connection() as connection:
            rows = await connection.fetch(
                SQL["sale_by_id" if by_id else "sale_by_slug"],
                UUID(id_or_slug) if by_id else id_or_slug,
            )
            found = await records.sales_with_variants(connection, rows)
        return found[0] if found else None

    def _loaded(self, id_or_slug: str, task: asyncio.Task[Sale | None]) -> None:
        del self._loading[id_or_slug]
        if not task.cancelled() and task.exception() is None:
            self._remember(id_or_slug, task.result())

    async def sales(self, limit: int = 200) -> list[Sale]:
        """The newest sales."""
        async with self._database.connection() as connection:
            rows = await connection.fetch(SQL["list_sales"], limit)
            return await records.sales_with_variants(connection, rows)

    async def running(self) -> list[Sale]:
        """The sales that a worker looks after."""
        async with self._database.connection() as connection:
            rows = await connection.fetch(SQL["running_sales"])
            return await records.sales_with_variants(connection, rows)

    async def create(self, new: NewSale, actor: str) -> tuple[CreateOutcome, str]:
        """Create a sale; the answer carries its id."""
        sale_id = new_id()
        try:
            async with self._database.transaction() as connection:
                await records.insert_sale(connection, sale_id, new)
                await _audit(connection, actor, "create", sale_id, {"slug": new.slug})
        except asyncpg.UniqueViolationError:
            return CreateOutcome.SLUG_TAKEN, ""
        return CreateOutcome.CREATED, sale_id

    async def change(self, sale_id: str, changes: Mapping[str, Any], actor: str) -> None:
        """Change what may change while a sale runs; ``changes`` names columns."""
        async with self._database.transaction() as connection:
            await records.change_sale(connection, sale_id, changes)
            shown = {name: str(value) for name, value in changes.items()}
            await _audit(connection, actor, "change", sale_id, shown)
        self.forget(sale_id)

    async def steer(self, sale_id: str, steer: Steer, actor: str) -> bool:
        """Open, pause, resume, drain or close; False when the sale's mode does not allow it.

        Opening a lobby moves the opening time to now: its people are drawn before anybody is called.
        """
        mode, possible = STEERING[steer]
        async with self._database.transaction() as connection:
            version = None
            if steer is Steer.OPEN:
                version = await connection.fetchval(SQL["open_lobby"], UUID(sale_id))
            if version is None:
                version = await connection.fetchval(
                    SQL["set_mode"], UUID(sale_id), mode, list(possible)
                )
            if version is None:
                return False
            await _audit(connection, actor, steer.value, sale_id, {})
        self.forget(sale_id)
        return True

    async def note_mode(self, sale: Sale, mode: str) -> None:
        """Record the mode that the store's clock has set."""
        async with self._database.connection() as connection:
            await connection.execute(SQL["note_mode"], UUID(sale.id), mode, sale.version)

    async def note_action(
        self, sale_id: str, action: str, detail: dict[str, Any], actor: str
    ) -> None:
        """Put into the audit what an operator did to the store alone (W17)."""
        async with self._database.connection() as connection:
            await _audit(connection, actor, action, sale_id, detail)

    async def reset(self, sale_id: str, actor: str) -> bool:
        """Start the line anew: no place, token or receipt from before counts (case 3).

        Orders, units sold and what is set up stay. False while the sale calls people, and for one
        that was never in the store.
        """
        async with self._database.transaction() as connection:
            epoch = await connection.fetchval(SQL["reset_sale"], UUID(sale_id))
            if epoch is None:
                return False
            await _audit(connection, actor, "reset", sale_id, {})
        self.forget(sale_id)
        return True

    def forget(self, sale_id: str) -> None:
        """Read the sale anew next time, under its id and under its slug."""
        self._sales = {
            key: entry
            for key, entry in self._sales.items()
            if key != sale_id and (entry[1] is None or entry[1].id != sale_id)
        }

    def _remember(self, key: str, sale: Sale | None) -> None:
        if len(self._sales) >= _REMEMBERED:
            self._sales.clear()
        self._sales[key] = (time.monotonic() + FRESH_S, sale)


async def _audit(
    connection: Connection, actor: str, action: str, sale_id: str, detail: dict[str, Any]
) -> None:
    await connection.execute(SQL["insert_audit"], actor, action, UUID(sale_id), detail)
