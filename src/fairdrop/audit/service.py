"""The audit's two questions: is everything as it has to be, and what are a sale's figures (O11)."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from uuid import UUID

from fairdrop import ledger
from fairdrop.clock import now_ms
from fairdrop.drivers.database import Queries
from fairdrop.ids import SaleRef
from fairdrop.ledger import Account

from . import gateways, records
from .model import Difference, Kind, Report
from .rules import (
    FREE,
    HELD,
    LIVE,
    RETIRED,
    Serials,
    StoredStock,
    check_counts,
    check_hold,
    check_sold,
)
from .store import read_sale

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from fairdrop.app import Parts
    from fairdrop.drivers.database import Connection, Database

    from .rules import KnownVariant
    from .store import StoredSale

FIGURES = Queries("fairdrop.audit", "figures")
IN_FLIGHT_MS = 60_000
"""How long the gateway's word may take to reach us, its webhook lost and the reconciler's turn come."""
GRACE_MS = 30_000
"""How long after its deadline a hold may wait for a sweep."""
PASSES = 5


async def audit(
    parts: Parts,
    sale_id: str | None = None,
    *,
    in_flight_ms: int = IN_FLIGHT_MS,
    grace_ms: int = GRACE_MS,
    pause_s: float = 0.5,
) -> list[Difference]:
    """All differences between store, orders, units, ledger and gateways; none is the normal state.

    The three are read one after the other, so on a running system something may just be on its way
    from one to the next. What is found is looked at again, up to five times, ``pause_s`` apart, and
    only what every look shows in the same words is told. A payment or refund younger than
    ``in_flight_ms`` may not have been told to us yet, and a hold may be ``grace_ms`` past its
    deadline. With ``sale_id``, what is about other sales is left out. Changes nothing.

    Raises StoreUnavailable, DatabaseUnavailable, GatewayUnavailable.
    Cost: some passes over the tables of orders, units and ledger, a read of the holds, and the
    gateways' whole records: about 8 s for 100,000 orders on a machine that sells meanwhile.
    """
    found = [
        difference
        for difference in await _compare(parts, in_flight_ms, grace_ms)
        if sale_id is None or dict(difference.subject).get("sale", sale_id) == sale_id
    ]
    for _ in range(PASSES - 1):
        if not found:
            break
        await asyncio.sleep(pause_s)
        again = set(await _compare(parts, in_flight_ms, grace_ms))
        stays = [difference for difference in found if difference in again]
        if len(stays) == len(found):
            break
        found = stays
    return found


async def figures(parts: Parts, sale_id: str) -> Report:
    """The figures of one sale, from the store, the database and the gateways' own records.

    ``sale_id`` is an id or a slug. Raises LookupError when there is no such sale, and what
    :func:`audit` raises.
    """
    sale = await parts.catalog.sale(sale_id)
    if sale is None:
        raise LookupError(f"there is no sale {sale_id}")
    live = await parts.inventory.figures(sale.ref, [variant.id for variant in sale.variants])
    key = UUID(sale.id)
    async with _snapshot(parts.database) as connection:
        rows = await connection.fetch(FIGURES["states"], key, timeout=records.TIMEOUT_S)
        states = {row["state"]: row["orders"] for row in rows}
        units = await connection.fetchrow(FIGURES["units"], key, timeout=records.TIMEOUT_S)
        balances = await ledger.balances(connection, sale.id)
        unpaid = twice = 0
        for gateway in parts.gateways.values():
            async for charge, order, again in gateways.charges(connection, gateway, set()):
                if order is not None and order["sale_id"] != key:
                    continue
                twice += again
                unpaid += not again and not gateways.paid_for(charge, order)
    assert units is not None, "an aggregate has a row"
    earned = {
        balance.account: balance.credits_minor - balance.debits_minor
        for balance in balances
        if balance.currency == sale.currency
    }
    return Report(
        units_total=units["total"],
        units_sold=units["sold"],
        units_held=sum(stock.held for stock in live.variants),
        units_free=sum(stock.free for stock in live.variants),
        oversold=units["beyond"],
        orders_confirmed=states.get("CONFIRMED", 0),
        orders_expired=states.get("EXPIRED", 0),
        orders_failed=states.get("PAYMENT_FAILED", 0),
        orders_cancelled=states.get("CANCELLED", 0),
        orders_refunded=states.get("REFUNDED", 0),
        orders_partially_refunded=states.get("PARTIALLY_REFUNDED", 0),
        refunds_pending=states.get("REFUND_PENDING", 0),
        orders_open=sum(states.get(state, 0) for state in LIVE),
        paid_without_order=unpaid,
        duplicate_charges=twice,
        ledger_debits_minor=sum(balance.debits_minor for balance in balances),
        ledger_credits_minor=sum(balance.credits_minor for balance in balances),
        ledger_variance_minor=_variance_minor(balances),
        revenue_minor=earned.get(Account.SALES, 0),
        fees_minor=earned.get(Account.FEES, 0),
        currency=sale.currency,
        joined=live.joined,
        admitted=live.admitted,
    )


def _variance_minor(balances: Iterable[ledger.Balance]) -> int:
    """How far debits and credits are apart, over all currencies; neither makes up for another."""
    apart: dict[str, int] = {}
    for balance in balances:
        difference = balance.debits_minor - balance.credits_minor
        apart[balance.currency] = apart.get(balance.currency, 0) + difference
    return sum(map(abs, apart.values()))


@asynccontextmanager
async def _snapshot(database: Database) -> AsyncIterator[Connection]:
    """One state of the whole database, whatever happens meanwhile."""
    async with (
        database.connection() as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        yield connection


async def _compare(parts: Parts, in_flight_ms: int, grace_ms: int) -> list[Difference]:
    async with _snapshot(parts.database) as connection:
        found = await records.check_orders(connection)
        found += await records.check_ledger(connection)
        for sale in await records.stocked_sales(connection):
            found += await _compare_store(parts, connection, sale, grace_ms)
        found += await gateways.check_known(connection, parts.gateways)
        for gateway in parts.gateways.values():
            found += await gateways.check(connection, gateway, now_ms() - in_flight_ms)
    return found


async def _compare_store(
    parts: Parts, connection: Connection, sale: records.StockedSale, grace_ms: int
) -> list[Difference]:
    stored = await read_sale(parts.store, SaleRef(sale.id, sale.epoch))
    if stored is None:
        if sale.mode == "closed":
            return []
        subject = (("sale", sale.id),)
        return [Difference(Kind.SALE_NOT_LOADED, subject, f"{sale.slug} in the store", "nothing")]
    return await _Comparison(connection, sale.id, stored).run(stored.now_ms - grace_ms)


class _Comparison:
    """One sale in the store against the database."""

    def __init__(self, connection: Connection, sale: str, stored: StoredSale) -> None:
        self._connection = connection
        self._sale = sale
        self._stored = stored
        self._units = records.no_units()
        """The unit rows of the orders that have holds."""
        self._held: dict[str, list[int]] = {}
        """The serials in holds, by variant."""
        self._in_holds: dict[str, set[tuple[str, int]]] = {}
        """Units in the holds of each order."""
        for hold in stored.holds.values():
            self._in_holds.setdefault(hold.order, set()).update(hold.units)
            for variant, serial in hold.units:
                self._held.setdefault(variant, []).append(serial)
        self._found: list[Difference] = []

    async def run(self, overdue_before_ms: int) -> list[Difference]:
        holds = self._stored.holds
        orders = await records.orders_of_holds(
            self._connection, list({hold.order for hold in holds.values()})
        )
        for variant in await records.variants(self._connection, self._sale):
            await self._check_variant(variant)
        for hold in holds.values():
            self._found += check_hold(
                self._sale,
                hold,
                orders.get(hold.order),
                self._units[hold.order],
                overdue_before_ms,
            )
        for order in await records.live_orders(self._connection, self._sale):
            if order not in holds:
                subject = (("sale", self._sale), ("order", order))
                self._found.append(
                    Difference(
                        Kind.HOLD_MISSING, subject, "a hold of its units", "none in the store"
                    )
                )
        return self._found

    async def _check_variant(self, variant: KnownVariant) -> None:
        stock = self._stored.variants.get(variant.id, _NOTHING)
        held = self._held.get(variant.id, [])
        self._found += check_counts(self._sale, variant, stock, len(held))
        serials = Serials(self._sale, variant.id, variant.last_serial)
        serials.put_range(stock.next_serial, stock.last_serial, FREE)
        for serial in stock.returned:
            serials.put(serial, FREE)
        for serial in variant.retired:
            serials.put(serial, RETIRED)
        for serial in held:
            serials.put(serial, HELD)
        sold = not_told = 0
        async for unit in records.units(self._connection, variant.id):
            in_its_hold = (variant.id, unit.serial) in self._in_holds.get(unit.order, ())
            serials.row(unit, in_its_hold=in_its_hold)
            if unit.order in self._in_holds:
                self._units[unit.order][unit.state].add((variant.id, unit.serial))
            if unit.state == "SOLD":
                sold += 1
                not_told += in_its_hold
        serials.lost()
        self._found += serials.differences
        self._found += check_sold(self._sale, variant.id, stock, sold, not_told)


_NOTHING = StoredStock(0, 0, 0, 1, 0, [])
