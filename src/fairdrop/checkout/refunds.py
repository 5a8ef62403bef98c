"""Refunds that an operator grants (O9): decided and booked here, paid out by the reconciler.

One transaction, under the lock of the order's row, decides, books what is owed and moves the order
on; whatever dies afterwards, the reconciler finds the refund and has the gateway pay it, under the
refund's id as the key.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING
from uuid import UUID

import msgspec

from fairdrop import ledger
from fairdrop.drivers.database import Queries
from fairdrop.ids import is_uuid, uuid7
from fairdrop.outbox import Event, insert_events

from . import records
from .rules import Cause, OrderState, transition

if TYPE_CHECKING:
    import asyncpg

    from fairdrop.drivers.database import Connection, Database

SQL = Queries("fairdrop.checkout", "refunds")
_CATALOG_SQL = Queries("fairdrop.catalog", "catalog")


class Refund(msgspec.Struct, frozen=True):
    """Money to give back, or given back. ``state`` is PENDING or SUCCEEDED."""

    id: str
    order: str
    amount_minor: int
    currency: str
    reason: str
    state: str
    attempts: int
    last_error: str | None
    created_at: datetime


class RefundRefusal(StrEnum):
    """Why a refund is not granted; nothing changed. Each is the ``code`` of the answer."""

    NO_ORDER = "no_order"
    NOT_REFUNDABLE = "order_not_refundable"
    UNDER_WAY = "refund_under_way"
    TOO_MUCH = "refund_too_much"
    KEY_REUSED = "idempotency_key_reused"


class Granted(msgspec.Struct, frozen=True):
    """A refund that was granted, now or by an earlier request with the same key (``replayed``)."""

    refund: Refund
    replayed: bool


def split(
    amount_minor: int, *, granted_minor: int, subtotal_minor: int, fee_minor: int
) -> tuple[int, int]:
    """How much of a refund is taken back from sales and how much from fees, in minor units.

    A refund returns price and booking fee in the proportion in which they were paid. Only the fee's
    share of everything granted so far is rounded (half up), and each refund books the difference to
    the share before it: so the parts of any sequence of refunds add up to exactly what was paid.

    >>> split(1000, granted_minor=0, subtotal_minor=1995, fee_minor=200)
    (909, 91)
    >>> split(1195, granted_minor=1000, subtotal_minor=1995, fee_minor=200)
    (1086, 109)
    """
    total = subtotal_minor + fee_minor

    def fee_until(sum_minor: int) -> int:
        return (2 * sum_minor * fee_minor + total) // (2 * total)

    fee = fee_until(granted_minor + amount_minor) - fee_until(granted_minor)
    return amount_minor - fee, fee


class Refunds:
    """Grants refunds. Raises DatabaseUnavailable."""

    def __init__(self, database: Database) -> None:
        """Take the database."""
        self._database = database

    async def grant(
        self, order_id: str, amount_minor: int | None, reason: str, *, key: str, actor: str
    ) -> Granted | RefundRefusal:
        """Give part or all (``amount_minor`` None) of an order's money back.

        The order is CONFIRMED or PARTIALLY_REFUNDED; with refunds that are on their way, never more
        goes back than came in. ``key`` is the operator's Idempotency-Key: the same request again
        gives the same refund, another one under the same key is refused.
        """
        if not is_uuid(order_id):
            return RefundRefusal.NO_ORDER
        digest = _digest(amount_minor, reason)
        async with self._database.transaction() as connection:
            order = await connection.fetchrow(SQL["lock_order"], UUID(order_id))
            if order is None:
                return RefundRefusal.NO_ORDER
            known = await connection.fetchrow(SQL["refund_of_key"], order["id"], key)
            if known is not None:
                if known["request_digest"] != digest:
                    return RefundRefusal.KEY_REUSED
                return Granted(refund_of(known), replayed=True)
            state = OrderState(order["state"])
            if state is OrderState.REFUND_PENDING:
                return RefundRefusal.UNDER_WAY
            if transition(state, Cause.REFUND) is None:
                return RefundRefusal.NOT_REFUNDABLE
            granted: int = await connection.fetchval(SQL["granted_minor"], order["id"])
            left = order["received_minor"] - granted
            amount = left if amount_minor is None else amount_minor
            if not 0 < amount <= left:
                return RefundRefusal.TOO_MUCH
            row = await connection.fetchrow(
                SQL["insert_refund"],
                uuid7(),
                order["id"],
                order["gateway"],
                order["intent_id"],
                amount,
                order["currency"],
                reason,
                key,
                digest,
            )
            assert row is not None, "an insert that does not raise returns its row"
            await _book(connection, order, row, granted)
            detail = {"order": order_id, "refund": str(row["id"]), "amount_minor": amount}
            await connection.execute(
                _CATALOG_SQL["insert_audit"], actor, "refund", order["sale_id"], detail
            )
        return Granted(refund_of(row), replayed=False)


async def _book(
    connection: Connection, order: asyncpg.Record, refund: asyncpg.Record, granted_minor: int
) -> None:
    """The order's step, its audit row, the posting and the event of a refund just granted."""
    before = OrderState(order["state"])
    after = OrderState.REFUND_PENDING
    subtotal, fee = split(
        refund["amount_minor"],
        granted_minor=granted_minor,
        subtotal_minor=order["subtotal_minor"],
        fee_minor=order["fee_minor"],
    )
    await connection.execute(SQL["set_state"], order["id"], after)
    await records.note_transitions(connection, [(order["id"], before, after, Cause.REFUND)])
    await ledger.insert_entries(
        connection,
        ledger.refund_owed(
            refund["id"], order["id"], order["sale_id"], order["currency"], subtotal, fee
        ),
    )
    payload = {
        "order": str(order["id"]),
        "sale": str(order["sale_id"]),
        "refund": str(refund["id"]),
        "amount_minor": refund["amount_minor"],
        "currency": order["currency"],
    }
    await insert_events(connection, [Event(str(order["id"]), "order.refund_pending", payload)])


def refund_of(row: asyncpg.Record) -> Refund:
    """The refund of a row."""
    return Refund(
        id=str(row["id"]),
        order=str(row["order_id"]),
        amount_minor=row["amount_minor"],
        currency=row["currency"],
        reason=row["reason"],
        state=row["state"],
        attempts=row["attempts"],
        last_error=row["last_error"],
        created_at=row["created_at"],
    )


def _digest(amount_minor: int | None, reason: str) -> str:
    return hashlib.blake2b(msgspec.json.encode([amount_minor, reason]), digest_size=16).hexdigest()
