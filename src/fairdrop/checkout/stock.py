"""Stock while a sale runs: more, fewer, or exactly so many units, each change once (H9).

More units are new serials: rows first, the store after. Fewer are serials that the store picks among
the free ones, since it alone knows what is free: the store first, its answer written down after.
Both happen under the lock under which a store is rebuilt, so that a rebuild sees all of a change or
none of it, and under a key, so that whoever repeats one finishes it and does not do it twice.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from fairdrop.drivers.database import Queries
from fairdrop.ids import SaleRef, new_id

from .warehouse import WarehouseFailed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairdrop.catalog import Catalog, Sale, Variant
    from fairdrop.drivers.database import Connection, Database
    from fairdrop.inventory import Inventory

    from .loading import Loader

SQL = Queries("fairdrop.checkout", "stock")
CATALOG_SQL = Queries("fairdrop.catalog", "catalog")


class StockOutcome(StrEnum):
    """Every answer to a change of stock."""

    CHANGED = "changed"
    REPEATED = "repeated"
    KEY_REUSED = "idempotency_key_reused"
    TOO_FEW_FREE = "too_few_free"
    NO_VARIANT = "no_such_variant"


class StockAnswer(NamedTuple):
    """What became of a change; ``free`` units could go when too few were free."""

    outcome: StockOutcome
    free: int = 0


class UnknownVariant(ValueError):
    """A list of stock names what the sale has not got, or something twice; the message says what."""


class Stock:
    """Changes what is on sale. Raises StoreUnavailable and DatabaseUnavailable: then repeat it."""

    def __init__(
        self, database: Database, catalog: Catalog, inventory: Inventory, loader: Loader
    ) -> None:
        """Take the truth, and who brings it into the store."""
        self._database = database
        self._catalog = catalog
        self._inventory = inventory
        self._loader = loader

    async def change(
        self, sale: Sale, variant: str, delta: int, actor: str, *, key: str = ""
    ) -> StockAnswer:
        """Add units, or take free ones out; with the same key once, however often it is asked."""
        return await self._apply(sale, variant, actor, key or new_id(), delta=delta)

    async def set_units(
        self, sale: Sale, wanted: Mapping[str, int], actor: str, source: str
    ) -> dict[str, StockAnswer]:
        """Have exactly so many units of the variants, held and sold ones included.

        Repeating it changes nothing. Units that are held or sold stay: where more of them are than
        wanted, the answer is TOO_FEW_FREE and that variant is as it was.
        """
        return {
            variant: await self._apply(sale, variant, actor, new_id(), units=units, source=source)
            for variant, units in wanted.items()
        }

    async def _apply(  # noqa: PLR0913 - what a change of stock is made of
        self,
        sale: Sale,
        variant: str,
        actor: str,
        key: str,
        *,
        delta: int = 0,
        units: int | None = None,
        source: str = "",
    ) -> StockAnswer:
        sale = await self._loader.keep_loaded(sale)
        async with self._database.transaction() as connection:
            await connection.execute(CATALOG_SQL["lock_loading"], sale.id)
            row = await connection.fetchrow(SQL["stock_of"], UUID(sale.id), UUID(variant))
            if row is None:
                return StockAnswer(StockOutcome.NO_VARIANT)
            known = await connection.fetchrow(SQL["stock_change"], UUID(sale.id), key)
            if known is not None:
                same = (str(known["variant_id"]), known["delta"]) == (variant, delta)
                return StockAnswer(StockOutcome.REPEATED if same else StockOutcome.KEY_REUSED)
            if units is not None:
                delta = units - row["quantity"]
            answer = await self._carry_out(
                connection, SaleRef(sale.id, row["epoch"]), variant, delta, key
            )
            if answer.outcome is StockOutcome.CHANGED and delta:
                await self._note(connection, sale.id, variant, delta, actor, key, source)
        self._catalog.forget(sale.id)
        return answer

    async def _carry_out(
        self, connection: Connection, sale: SaleRef, variant: str, delta: int, key: str
    ) -> StockAnswer:
        if delta > 0:
            await connection.execute(SQL["add_units"], UUID(variant), delta)
            await connection.execute(SQL["touch"], UUID(sale.id))
        elif delta < 0:
            reduced = await self._inventory.reduce(sale, variant, -delta, key)
            if reduced.status == "KEY_REUSED":
                return StockAnswer(StockOutcome.KEY_REUSED)
            if reduced.status != "REDUCED":
                return StockAnswer(StockOutcome.TOO_FEW_FREE, reduced.free)
            await connection.execute(SQL["retire_units"], UUID(variant), reduced.retired)
        return StockAnswer(StockOutcome.CHANGED)

    @staticmethod
    async def _note(  # noqa: PLR0913 - a row
        connection: Connection,
        sale_id: str,
        variant: str,
        delta: int,
        actor: str,
        key: str,
        source: str,
    ) -> None:
        await connection.execute(SQL["note_stock_change"], UUID(sale_id), key, UUID(variant), delta)
        detail: dict[str, Any] = {"variant": variant, "units": abs(delta)}
        if source:
            detail["source"] = source
        action = "add_stock" if delta > 0 else "reduce_stock"
        await connection.execute(CATALOG_SQL["insert_audit"], actor, action, UUID(sale_id), detail)


def match_units(sale: Sale, listed: Sequence[tuple[str, int]]) -> dict[str, int]:
    """A list of (variant, units) by the variants' ids, all of it or nothing.

    A variant is named by its id, its name, or its product and name ("Ticket, Standing"). Raises
    UnknownVariant for one that the sale has not got, that may be several, or that comes twice.
    """
    wanted: dict[str, int] = {}
    for name, units in listed:
        found = [variant for variant in sale.variants if name in _names(variant)]
        if len(found) != 1:
            which = "several variants are" if found else "no variant is"
            raise UnknownVariant(f"{which} called {name!r}")
        if found[0].id in wanted:
            raise UnknownVariant(f"{name!r} comes twice")
        wanted[found[0].id] = units
    return wanted


def _names(variant: Variant) -> tuple[str, str, str]:
    return variant.id, variant.name, f"{variant.product}, {variant.name}"


def refused(answers: Mapping[str, StockAnswer]) -> None:
    """Raise WarehouseFailed for variants of which more is held or sold than the list says."""
    short = [variant for variant, answer in answers.items() if answer.outcome != "changed"]
    if short:
        raise WarehouseFailed(
            f"fewer units than are held and sold already: {', '.join(sorted(short))}"
        )
