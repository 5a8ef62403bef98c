"""Refunds that an operator grants (O9): decided and booked here, paid out by the reconciler.

One transaction, under the lock of the order's row, decides, books what is owed and moves the order
on; whatever dies afterwards, the reconciler finds the refund and has the gateway pay it, under the
refund's id as the key.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import msgspec
import structlog

from fairdrop import ledger
from fairdrop.drivers.database import Queries
from fairdrop.errors import StoreUnavailable
from fairdrop.ids import SaleRef, is_uuid, uuid7
from fairdrop.outbox import Event, insert_events
from fairdrop.payments import charge_step_minor

from . import records
from .model import late_hold
from .refund_rules import Share, Sums, share_of_amount, share_of_units
from .rules import Cause, OrderState, transition

if TYPE_CHECKING:
    import asyncpg

    from fairdrop.drivers.database import Connection, Database
    from fairdrop.inventory import Inventory
    from fairdrop.waiting_room import WaitingRoom

_log = structlog.get_logger(__name__)
SQL = Queries("fairdrop.checkout", "refunds")
POOL_BATCH = 50
_CATALOG_SQL = Queries("fairdrop.catalog", "catalog")


class Refund(msgspec.Struct, frozen=True):
    """Money to give back, or given back. ``state`` is PENDING or SUCCEEDED."""

    id: str
    order: str
    amount_minor: int
    fee_minor: int
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
    NOT_PAYABLE = "refund_not_payable"
    NOT_THEIR_UNIT = "refund_unit_unknown"
    KEY_REUSED = "idempotency_key_reused"


class Granted(msgspec.Struct, frozen=True):
    """A refund that was granted, now or by an earlier request with the same key (``replayed``)."""

    refund: Refund
    replayed: bool


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator asks for: an amount, some units, or (neither) all that is left.

    ``units`` are (variant, serial). ``to_pool`` puts the units on sale again, those named or all;
    otherwise nobody gets them. ``keep_fee`` leaves the booking fee with the shop.
    """

    amount_minor: int | None = None
    units: list[tuple[str, int]] = []
    to_pool: bool = False
    keep_fee: bool = False
    reason: str = ""


class Refunds:
    """Grants refunds. Raises DatabaseUnavailable."""

    def __init__(self, database: Database, inventory: Inventory, waiting_room: WaitingRoom) -> None:
        """Take the database, and the store's services that hear of units which are free again."""
        self._database = database
        self._inventory = inventory
        self._waiting_room = waiting_room

    async def grant(
        self, order_id: str, wanted: Wanted, *, key: str, actor: str
    ) -> Granted | RefundRefusal:
        """Give part or all of an order's money back (O9).

        The order is CONFIRMED or PARTIALLY_REFUNDED; with refunds that are on their way, never more
        goes back than came in. ``key`` is the operator's Idempotency-Key: the same request again
        gives the same refund, another one under the same key is refused.
        """
        if not is_uuid(order_id):
            return RefundRefusal.NO_ORDER
        order_key = UUID(order_id)
        digest = hashlib.blake2b(msgspec.json.encode(wanted), digest_size=16).hexdigest()
        async with self._database.transaction() as connection:
            if wanted.to_pool:
                # While the store is being filled anew nobody could say whether it knows of the units.
                await connection.execute(SQL["lock_pool"], order_key)
            order = await connection.fetchrow(SQL["lock_order"], order_key)
            if order is None:
                return RefundRefusal.NO_ORDER
            known = await connection.fetchrow(SQL["refund_of_key"], order_key, key)
            if known is not None:
                if known["request_digest"] != digest:
                    return RefundRefusal.KEY_REUSED
                return Granted(refund_of(known), replayed=True)
            state = OrderState(order["state"])
            if state is OrderState.REFUND_PENDING:
                return RefundRefusal.UNDER_WAY
            if transition(state, Cause.REFUND) is None:
                return RefundRefusal.NOT_REFUNDABLE
            plan = await _plan(connection, order, wanted)
            if isinstance(plan, RefundRefusal):
                return plan
            row = await _write(connection, order, wanted, plan, (key, digest))
            detail = {
                "order": order_id,
                "refund": str(row["id"]),
                "amount_minor": plan.share.amount_minor,
                "units": len(plan.units),
                "to_pool": wanted.to_pool,
            }
            await connection.execute(
                _CATALOG_SQL["insert_audit"], actor, "refund", order["sale_id"], detail
            )
        if row["pool_epoch"] is not None:
            await self.return_units(row["id"])
        return Granted(refund_of(row), replayed=False)

    async def return_units(self, refund: UUID | None = None) -> int:
        """Tell the store of units that are free again; returns how many refunds it now knows of.

        What it does not hear of stays written down, and is told again. An epoch that is over had its
        stock filled from rows in which the units were free already. A store that has not even heard
        that they were sold is told of that first, as the settlement would have: what it takes for
        held, it would free once more.
        """
        async with self._database.connection() as connection:
            rows = await connection.fetch(SQL["pools_to_tell"], POOL_BATCH, refund)
            if not rows:
                return 0
            lines: dict[UUID, list[tuple[str, list[int]]]] = {row["id"]: [] for row in rows}
            for unit in await connection.fetch(SQL["units_of_refunds"], list(lines)):
                lines[unit["refund_id"]].append((str(unit["variant_id"]), unit["serials"]))
        told = []
        for row in rows:
            if row["epoch"] == row["pool_epoch"]:
                sale, order = SaleRef(str(row["sale_id"]), row["epoch"]), str(row["order_id"])
                try:
                    # The hold last: as long as it is there, the sweep does all of this.
                    if row["admission"]:
                        await self._waiting_room.complete(sale, row["buyer"], row["admission"])
                    await self._inventory.commit(sale, late_hold(order) if row["late"] else order)
                    await self._inventory.give_back(
                        sale, str(row["id"]), row["buyer"], lines[row["id"]]
                    )
                except StoreUnavailable as error:
                    _log.warning("store_not_told", step="refund", error=str(error))
                    continue
            told.append(row["id"])
        if told:
            async with self._database.connection() as connection:
                await connection.execute(SQL["pool_told"], told)
        return len(told)


class _Plan(NamedTuple):
    """A refund that is possible: how much, and which units with it."""

    share: Share
    units: list[tuple[UUID, int]]


async def _plan(
    connection: Connection, order: asyncpg.Record, wanted: Wanted
) -> _Plan | RefundRefusal:
    """What the request comes to, under the order's lock."""
    granted = await connection.fetchrow(SQL["granted"], order["id"])
    assert granted is not None, "an aggregate has a row"
    units = {
        (row["variant_id"], row["serial"]): row
        for row in await connection.fetch(SQL["units_of_order"], order["id"])
    }
    sums = Sums(
        order["subtotal_minor"],
        order["fee_minor"],
        order["received_minor"],
        granted["amount"],
        granted["fee"],
        sum(row["price_minor"] for row in units.values() if row["refunded"]),
    )
    step = charge_step_minor(order["gateway"], order["currency"])
    if wanted.units:
        named = [(UUID(variant), serial) for variant, serial in wanted.units]
        if any(unit not in units or units[unit]["refunded"] for unit in named):
            return RefundRefusal.NOT_THEIR_UNIT
        price = sum(units[unit]["price_minor"] for unit in named)
        share = share_of_units(sums, price, keep_fee=wanted.keep_fee, step_minor=step)
    else:
        share = share_of_amount(sums, wanted.amount_minor, keep_fee=wanted.keep_fee)
        left = [unit for unit, row in units.items() if not row["refunded"]]
        named = left if wanted.amount_minor is None else []
    if share is None:
        return RefundRefusal.TOO_MUCH
    if share.amount_minor % step:
        return RefundRefusal.NOT_PAYABLE
    return _Plan(share, named)


async def _write(
    connection: Connection,
    order: asyncpg.Record,
    wanted: Wanted,
    plan: _Plan,
    request: tuple[str, str],
) -> asyncpg.Record:
    """The refund's row, its units, the order's step, its audit row, the posting and the event."""
    amount, fee = plan.share
    to_pool = wanted.to_pool and bool(plan.units)
    row = await connection.fetchrow(
        SQL["insert_refund"],
        uuid7(),
        order["id"],
        order["gateway"],
        order["intent_id"],
        amount,
        order["currency"],
        wanted.reason,
        *request,
        fee,
        order["epoch"] if to_pool else None,
    )
    assert row is not None, "an insert that does not raise returns its row"
    if plan.units:
        variants, serials = zip(*plan.units, strict=True)
        await connection.execute(
            SQL["insert_refund_units"], row["id"], order["id"], variants, serials, wanted.to_pool
        )
        if to_pool:
            await connection.execute(SQL["units_to_pool"], order["id"], variants, serials)
    before, after = OrderState(order["state"]), OrderState.REFUND_PENDING
    await connection.execute(SQL["set_state"], order["id"], after)
    await records.note_transitions(connection, [(order["id"], before, after, Cause.REFUND)])
    await ledger.insert_entries(
        connection,
        ledger.refund_owed(
            row["id"], order["id"], order["sale_id"], order["currency"], amount - fee, fee
        ),
    )
    payload = {
        "order": str(order["id"]),
        "sale": str(order["sale_id"]),
        "refund": str(row["id"]),
        "amount_minor": amount,
        "currency": order["currency"],
    }
    await insert_events(connection, [Event(str(order["id"]), "order.refund_pending", payload)])
    return row


def refund_of(row: asyncpg.Record) -> Refund:
    """The refund of a row."""
    return Refund(
        id=str(row["id"]),
        order=str(row["order_id"]),
        amount_minor=row["amount_minor"],
        fee_minor=row["fee_minor"],
        currency=row["currency"],
        reason=row["reason"],
        state=row["state"],
        attempts=row["attempts"],
        last_error=row["last_error"],
        created_at=row["created_at"],
    )
