"""Loading stock from the warehouse before a sale opens, again and again until it opens (H9).

A sale whose ``stock_source`` is the warehouse is loaded once for its opening time, beginning a minute
before it. When that fails until the opening, the sale opens with what the catalogue says: the log,
the audit and the console tell so.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import structlog

from fairdrop.errors import FairdropError, StoreUnavailable

from .stock import CATALOG_SQL, SQL, Stock, UnknownVariant, match_units, refused
from .warehouse import Warehouse, WarehouseFailed

if TYPE_CHECKING:
    from fairdrop.catalog import Catalog, Sale
    from fairdrop.drivers.database import Database

_log = structlog.get_logger(__name__)
ACTOR = "warehouse"
NOT_CONFIGURED = "no warehouse is configured (FAIRDROP_WAREHOUSE_URL)"
NOT_ASKED = "nobody asked the warehouse in time: no worker was running"
_LOOK_BACK = timedelta(hours=1)
"""So long after its opening a sale that was never loaded is still told about."""


class StockLoad(NamedTuple):
    """How the load for a sale's opening stands: waiting, failing, loaded or failed."""

    state: str
    attempts: int
    error: str | None
    units: int | None
    message: str


class StockLoading:
    """Loads what is due. Any number of workers may do so side by side."""

    def __init__(  # noqa: PLR0913 - two parts and their settings
        self,
        database: Database,
        catalog: Catalog,
        stock: Stock,
        warehouse: Warehouse | None,
        *,
        lead_ms: int,
        retry_ms: int,
    ) -> None:
        """``lead_ms`` before the opening it begins; a failure is followed after ``retry_ms``."""
        self._database = database
        self._catalog = catalog
        self._stock = stock
        self._warehouse = warehouse
        self._lead = timedelta(milliseconds=lead_ms)
        self._retry_ms = retry_ms

    async def load_due(self, sale: Sale, now: datetime) -> bool:
        """Try the sale's load if it is due; True when it was loaded by this call.

        Raises DatabaseUnavailable; what the warehouse does wrong is written down, not raised.
        """
        if sale.stock_source != "warehouse" or not self._near(sale, now):
            return False
        over = now >= sale.opens_at or sale.mode not in {"scheduled", "lobby"}
        attempt = None
        async with self._database.connection() as connection:
            await connection.execute(SQL["begin_load"], UUID(sale.id), sale.opens_at)
            if not over:
                attempt = await connection.fetchval(
                    SQL["claim_load"], UUID(sale.id), self._retry_ms
                )
        if over:
            await self._give_up(sale)
        if attempt is None:
            return False
        try:
            units = await self._load(sale)
        except (WarehouseFailed, UnknownVariant, StoreUnavailable) as error:
            reason = str(error)
            _log.error("warehouse_failed", sale=sale.slug, attempt=attempt, reason=reason)
            async with self._database.connection() as connection:
                await connection.execute(SQL["load_failed"], UUID(sale.id), reason)
            return False
        await self._note_loaded(sale, units)
        return True

    async def state_of(self, sale: Sale) -> StockLoad | None:
        """How the load stands, for people; None for a sale whose stock is the catalogue's."""
        if sale.stock_source != "warehouse":
            return None
        async with self._database.connection() as connection:
            row = await connection.fetchrow(SQL["load_of"], UUID(sale.id))
        if row is None or row["opens_at"] != sale.opens_at:
            return StockLoad("waiting", 0, None, None, "")
        attempts, error = row["attempts"], row["last_error"]
        if row["loaded_at"] is not None:
            return StockLoad("loaded", attempts, None, row["units"], "")
        if row["given_up_at"] is not None:
            message = f"Stock did not come from the warehouse: {error}. {_SOLD_INSTEAD}"
            return StockLoad("failed", attempts, error, None, message)
        if error is None:
            return StockLoad("waiting", attempts, None, None, "")
        message = (
            f"The warehouse: {error} (attempt {attempts}). It is asked until the sale opens; after"
            " that the catalogue's stock is sold."
        )
        return StockLoad("failing", attempts, error, None, message)

    def _near(self, sale: Sale, now: datetime) -> bool:
        return sale.opens_at - self._lead <= now < sale.opens_at + _LOOK_BACK

    async def _load(self, sale: Sale) -> int:
        if self._warehouse is None:
            raise WarehouseFailed(NOT_CONFIGURED)
        wanted = match_units(sale, await self._warehouse.stock_of(sale))
        refused(await self._stock.set_units(sale, wanted, ACTOR, "warehouse"))
        return sum(wanted.values())

    async def _note_loaded(self, sale: Sale, units: int) -> None:
        async with self._database.transaction() as connection:
            attempts = await connection.fetchval(SQL["load_done"], UUID(sale.id), units)
            if attempts is not None:
                detail = {"units": units, "attempts": attempts}
                await connection.execute(
                    CATALOG_SQL["insert_audit"], ACTOR, "load_stock", UUID(sale.id), detail
                )
        _log.info("warehouse_loaded", sale=sale.slug, units=units)

    async def _give_up(self, sale: Sale) -> None:
        missing = NOT_CONFIGURED if self._warehouse is None else NOT_ASKED
        async with self._database.transaction() as connection:
            row = await connection.fetchrow(SQL["give_up_load"], UUID(sale.id), missing)
            if row is None:
                return
            detail = {"reason": row["last_error"], "attempts": row["attempts"]}
            await connection.execute(
                CATALOG_SQL["insert_audit"], ACTOR, "load_stock_failed", UUID(sale.id), detail
            )
        on_sale = {
            f"{variant.product}, {variant.name}": variant.quantity for variant in sale.variants
        }
        _log.error(
            "opened_with_catalogue_stock", sale=sale.slug, reason=row["last_error"], on_sale=on_sale
        )


_SOLD_INSTEAD = (
    "The sale opened with the catalogue's stock; `fairdrop sale stock import` changes it."
)


async def load_all_due(loading: StockLoading, sales: list[Sale]) -> None:
    """The worker's step: every sale that is due; trouble with one never stops another."""
    now = datetime.now(UTC)
    for sale in sales:
        try:
            await loading.load_due(sale, now)
        except FairdropError as error:
            _log.warning("stock_not_loaded", sale=sale.slug, error=str(error))
