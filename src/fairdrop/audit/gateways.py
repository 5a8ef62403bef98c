"""The gateways' own records, page by page, each charge and refund beside what we have of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from fairdrop.ids import is_uuid

from .model import Difference, Kind
from .records import GATEWAY, PAGE, TIMEOUT_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    import asyncpg

    from fairdrop.drivers.database import Connection
    from fairdrop.payments import Gateway, GatewayCharge, GatewayRefund

GATEWAY_PAGE = 1_000


class ChargeSeen(NamedTuple):
    """A charge, the order it refers to, and whether that order had a charge before it."""

    charge: GatewayCharge
    order: asyncpg.Record | None
    again: bool


async def charges(
    connection: Connection, gateway: Gateway, seen: set[str]
) -> AsyncIterator[ChargeSeen]:
    """All charges, oldest first; ``seen`` gathers the references. Raises GatewayUnavailable."""
    after = None
    while True:
        page = await gateway.charges(after, GATEWAY_PAGE)
        keys = {UUID(c.reference) for c in page.data if is_uuid(c.reference)}
        rows = await connection.fetch(GATEWAY["paid_orders"], list(keys), timeout=TIMEOUT_S)
        orders = {str(row["id"]): row for row in rows}
        for charge in page.data:
            again = charge.reference in seen
            seen.add(charge.reference)
            yield ChargeSeen(charge, orders.get(charge.reference), again)
        after = page.next
        if after is None:
            return


def paid_for(charge: GatewayCharge, order: asyncpg.Record | None) -> bool:
    """Whether the charge has become a sold order, or is going back, whole (O8)."""
    if order is None:
        return False
    return bool(order["sold"]) or order["granted_minor"] >= charge.amount_minor > 0


async def check_known(connection: Connection, known: Mapping[str, Gateway]) -> list[Difference]:
    """Every gateway that took money is one that can be asked."""
    rows = await connection.fetch(GATEWAY["gateways_used"], timeout=TIMEOUT_S)
    return [
        Difference(
            Kind.GATEWAY_NOT_CONFIGURED,
            (("gateway", row["gateway"]),),
            "its record, to compare payments with",
            "no settings for it",
        )
        for row in rows
        if row["gateway"] not in known
    ]


async def check(
    connection: Connection, gateway: Gateway, in_flight_after_ms: int
) -> list[Difference]:
    """The record of one gateway against our orders and refunds.

    What happened there after ``in_flight_after_ms`` may not have reached us yet: its webhook is on
    its way. Raises GatewayUnavailable. Cost: a page of its record and one query a thousand.
    """
    found: list[Difference] = []
    charged: set[str] = set()
    async for seen in charges(connection, gateway, charged):
        found += _check_charge(gateway.name, seen, in_flight_after_ms)
    found += [each async for each in _without_charge(connection, gateway.name, charged)]
    refunded: set[str] = set()
    async for refund, row in _refunds(connection, gateway):
        refunded.add(refund.reference)
        found += _check_refund(gateway.name, refund, row, in_flight_after_ms)
    found += [each async for each in _without_refund(connection, gateway.name, refunded)]
    return found


def _check_charge(gateway: str, seen: ChargeSeen, in_flight_after_ms: int) -> Iterator[Difference]:
    charge, order, again = seen
    subject = (("gateway", gateway), ("charge", charge.id), ("order", charge.reference))
    amount = f"{charge.amount_minor} {charge.currency}"
    if again:
        yield Difference(Kind.DUPLICATE_CHARGE, subject, "one charge an order", f"another {amount}")
        return
    if not paid_for(charge, order):
        told = order is not None and order["received_minor"] > 0
        if told or order is None or charge.created_ms < in_flight_after_ms:
            state = "no such order" if order is None else f"the order {order['state']}"
            yield Difference(
                Kind.PAID_WITHOUT_ORDER,
                subject,
                f"a confirmed order or a refund for {amount}",
                f"{state}, nothing going back",
            )
        return
    assert order is not None, "paid for"
    due = (order["total_minor"], order["currency"])
    if order["sold"] and due != (charge.amount_minor, charge.currency):
        yield Difference(
            Kind.CHARGE_AMOUNT, subject, f"{due[0]} {due[1]}, the order's total", amount
        )
    elif order["received_minor"] != charge.amount_minor:
        yield Difference(
            Kind.CHARGE_AMOUNT,
            subject,
            f"{order['received_minor']} {order['currency']}, as our payment says",
            amount,
        )


async def _without_charge(
    connection: Connection, gateway: str, charged: set[str]
) -> AsyncIterator[Difference]:
    after = None
    while True:
        rows = await connection.fetch(
            GATEWAY["sold_orders"], gateway, after, PAGE, timeout=TIMEOUT_S
        )
        for row in rows:
            if str(row["id"]) not in charged:
                yield Difference(
                    Kind.ORDER_WITHOUT_CHARGE,
                    (
                        ("gateway", gateway),
                        ("order", str(row["id"])),
                        ("sale", str(row["sale_id"])),
                    ),
                    f"a charge of {row['total_minor']} {row['currency']}",
                    "none",
                )
        if len(rows) < PAGE:
            return
        after = rows[-1]["id"]


async def _refunds(
    connection: Connection, gateway: Gateway
) -> AsyncIterator[tuple[GatewayRefund, asyncpg.Record | None]]:
    after = None
    while True:
        page = await gateway.refunds(after, GATEWAY_PAGE)
        keys = {UUID(r.reference) for r in page.data if is_uuid(r.reference)}
        rows = await connection.fetch(GATEWAY["refunds_by_id"], list(keys), timeout=TIMEOUT_S)
        ours = {str(row["id"]): row for row in rows}
        for refund in page.data:
            yield refund, ours.get(refund.reference)
        after = page.next
        if after is None:
            return


def _check_refund(
    gateway: str, refund: GatewayRefund, row: asyncpg.Record | None, in_flight_after_ms: int
) -> Iterator[Difference]:
    subject = (("gateway", gateway), ("refund", refund.reference))
    amount = f"{refund.amount_minor} {refund.currency}"
    if row is None:
        yield Difference(Kind.REFUND_UNKNOWN, subject, "a refund of ours", f"{amount} paid out")
        return
    if (row["amount_minor"], row["currency"]) != (refund.amount_minor, refund.currency):
        expected = f"{row['amount_minor']} {row['currency']}"
        yield Difference(Kind.REFUND_AMOUNT, subject, expected, amount)
    if row["state"] != "SUCCEEDED" and refund.created_ms < in_flight_after_ms:
        yield Difference(Kind.REFUND_NOT_SETTLED, subject, "SUCCEEDED, as paid out", row["state"])


async def _without_refund(
    connection: Connection, gateway: str, refunded: set[str]
) -> AsyncIterator[Difference]:
    after = None
    while True:
        rows = await connection.fetch(
            GATEWAY["refunds_done"], gateway, after, PAGE, timeout=TIMEOUT_S
        )
        for row in rows:
            if str(row["id"]) not in refunded:
                yield Difference(
                    Kind.REFUND_NOT_AT_GATEWAY,
                    (
                        ("gateway", gateway),
                        ("refund", str(row["id"])),
                        ("order", str(row["order_id"])),
                    ),
                    f"{row['amount_minor']} paid out",
                    "nothing in the gateway's record",
                )
        if len(rows) < PAGE:
            return
        after = rows[-1]["id"]
