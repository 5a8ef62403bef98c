"""What the database says, read inside one snapshot; big tables come through cursors, in pages."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from fairdrop.drivers.database import Queries

from .model import Difference, Kind
from .rules import KnownVariant, OrderOfHold, Unit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    import asyncpg

    from fairdrop.drivers.database import Connection

ORDERS = Queries("fairdrop.audit", "orders")
LEDGER = Queries("fairdrop.audit", "ledger")
STOCK = Queries("fairdrop.audit", "stock")
GATEWAY = Queries("fairdrop.audit", "gateway")
LIMIT = 1_000
"""Differences of one kind of check that are told; beyond it, more of the same."""
PAGE = 5_000
TIMEOUT_S = 300.0
"""What one query may take: they read whole tables."""


async def check_orders(connection: Connection) -> list[Difference]:
    """Orders, units, payments and refunds against one another. Cost: a few passes over each."""
    found = [
        Difference(
            Kind(kind),
            (("order", str(row["id"])), ("sale", str(row["sale_id"]))),
            *(words.format(**row) for words in _ORDER_WORDS[Kind(kind)]),
        )
        for row in await connection.fetch(ORDERS["order_checks"], LIMIT, timeout=TIMEOUT_S)
        for kind in row["wrong"]
    ]
    found += [
        _difference(row["kind"], row, expected=row["expected"], found=row["found"])
        for row in await connection.fetch(ORDERS["unit_checks"], LIMIT, timeout=TIMEOUT_S)
    ]
    for row in await connection.fetch(ORDERS["sold_twice"], LIMIT, timeout=TIMEOUT_S):
        orders = ", ".join(map(str, row["order_ids"]))
        found.append(_difference(Kind.SOLD_TWICE, row, expected="one order", found=orders))
    return found


_ORDER_WORDS = {
    Kind.ORDER_UNEXPLAINED: ("a transition to {state} in the audit", "none"),
    Kind.ORDER_WITHOUT_LINES: ("lines", "none"),
    Kind.ORDER_SUBTOTAL: ("a subtotal of {lines_minor}, as its lines add up", "{subtotal_minor}"),
    Kind.PAYMENT_MISSING: (
        "a payment SUCCEEDED with {total_minor}",
        "{payment_state} with {received}",
    ),
    Kind.PAYMENT_UNUSED: (
        "{received} received to be for a confirmed order, or going back",
        "{state}, and {granted} going back",
    ),
    Kind.REFUND_EXCEEDS_PAYMENT: ("refunds of at most {received}, which came in", "{granted}"),
    Kind.ORDER_REFUNDED_SUM: ("{done} refunded, as its refunds say", "{refunded_minor}"),
    Kind.ORDER_REFUND_STATE: (
        "a state that fits {pending} refunds on their way, {done} of {received} refunded",
        "{state}",
    ),
}
"""What is expected and what was found, from the columns of ``order_checks``."""


async def check_ledger(connection: Connection) -> list[Difference]:
    """The books against themselves, the orders and the refunds. Cost: a few passes over them."""
    found = [
        Difference(
            Kind.POSTING_UNBALANCED,
            (("posting", f"{row['kind']} {row['reference']}"),),
            f"as much credit as debit: {row['debits_minor']} {row['currency']}",
            f"credits of {row['credits_minor']}",
        )
        for row in await connection.fetch(LEDGER["unbalanced"], LIMIT, timeout=TIMEOUT_S)
    ]
    found += [
        _difference(row["kind"], row, expected=row["expected"], found=row["found"])
        for row in await connection.fetch(LEDGER["entry_checks"], LIMIT, timeout=TIMEOUT_S)
    ]
    for row in await connection.fetch(LEDGER["refund_shares"], LIMIT, timeout=TIMEOUT_S):
        expected = f"{row['expected_minor']} taken back from the fees"
        found.append(
            _difference(Kind.REFUND_SHARE, row, expected=expected, found=str(row["found_minor"]))
        )
    for row in await connection.fetch(LEDGER["revenue"], LIMIT, timeout=TIMEOUT_S):
        expected = (
            f"{row['account']} of {row['expected_minor']} {row['currency']}, as orders add up"
        )
        found.append(
            _difference(Kind.REVENUE, row, expected=expected, found=str(row["found_minor"]))
        )
    return found


def _difference(kind: str, row: asyncpg.Record, *, expected: str, found: str) -> Difference:
    names = (
        ("order", "order_id"),
        ("reference", "reference"),
        ("sale", "sale_id"),
        ("variant", "variant_id"),
        ("serial", "serial"),
    )
    subject = tuple(
        (word, str(row[column]))
        for word, column in names
        if column in row and row[column] is not None
    )
    return Difference(Kind(kind), subject, expected, found)


class StockedSale(NamedTuple):
    """A sale that was ever in the store."""

    id: str
    slug: str
    mode: str
    epoch: int


async def stocked_sales(connection: Connection) -> list[StockedSale]:
    """All of them."""
    rows = await connection.fetch(STOCK["sales"], timeout=TIMEOUT_S)
    return [StockedSale(str(row["id"]), row["slug"], row["mode"], row["epoch"]) for row in rows]


async def variants(connection: Connection, sale: str) -> list[KnownVariant]:
    """The variants of a sale."""
    rows = await connection.fetch(STOCK["variants"], UUID(sale), timeout=TIMEOUT_S)
    return [
        KnownVariant(str(row["id"]), row["quantity"], row["last_serial"], row["retired"])
        for row in rows
    ]


async def units(connection: Connection, variant: str) -> AsyncIterator[Unit]:
    """The unit rows of a variant, in order of their serials."""
    cursor = connection.cursor(STOCK["units"], UUID(variant), prefetch=PAGE, timeout=TIMEOUT_S)
    async for row in cursor:
        yield Unit(row["serial"], str(row["order_id"]), row["state"])


async def live_orders(connection: Connection, sale: str) -> list[str]:
    """The ids of the orders under way."""
    rows = await connection.fetch(STOCK["live_orders"], UUID(sale), timeout=TIMEOUT_S)
    return [str(row["id"]) for row in rows]


async def orders_of_holds(connection: Connection, orders: Sequence[str]) -> dict[str, OrderOfHold]:
    """Those of the orders that there are, by id."""
    found = {}
    for start in range(0, len(orders), PAGE):
        page = [UUID(order) for order in orders[start : start + PAGE]]
        for row in await connection.fetch(STOCK["orders_of_holds"], page, timeout=TIMEOUT_S):
            found[str(row["id"])] = OrderOfHold(row["state"])
    return found


UnitsOfOrders = defaultdict[str, defaultdict[str, set[tuple[str, int]]]]
"""order -> state of the unit -> {(variant, serial)}"""


def no_units() -> UnitsOfOrders:
    """An empty one."""
    return defaultdict(lambda: defaultdict(set))
