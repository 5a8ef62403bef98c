"""What a batch of gateway events does, gathered before it is written: plain values, no I/O (O3).

A decision (``rules``) becomes rows here: a new state, audit, books, units, refunds, events. The
settlement then writes each kind of row in one statement for the whole batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from fairdrop import ledger
from fairdrop.ids import SaleRef, uuid7
from fairdrop.inventory import Lines
from fairdrop.outbox import Event

from .rules import (
    CAUSES,
    LIVE,
    Cause,
    Facts,
    OrderState,
    Verdict,
    judge_authorised,
    judge_decline,
    judge_success,
    transition,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import asyncpg


class LateUnits(NamedTuple):
    """New units for an order whose money came late (O7); none when there were too few."""

    sale: SaleRef
    lines: Lines


class LateEvent(NamedTuple):
    """A payment event that has to wait until somebody has looked for units."""

    event: int
    order: UUID
    sale: SaleRef
    buyer: str
    attempts: int


class LockedOrder:
    """One locked row, and what the batch has decided about it so far."""

    __slots__ = ("authorised", "changed", "declines", "key", "received", "refunded", "row", "state")

    def __init__(self, row: asyncpg.Record) -> None:
        """Begin with what the row says."""
        self.row = row
        self.key: UUID = row["id"]
        self.state = OrderState(row["state"])
        self.declines: int = row["declines"]
        self.received: int = row["received_minor"]
        self.refunded: int = row["refunded_minor"]
        self.authorised = False
        self.changed = False

    def facts(self, *, admission_used: bool = False) -> Facts:
        """What the rules look at."""
        row = self.row
        return Facts(
            self.state,
            row["currency"],
            row["total_minor"],
            self.declines,
            row["payment_attempts"],
            self.received,
            row["accept_late"],
            admission_used,
            row["looking"],
            row["payment_state"] == "AUTHORISED" or self.authorised,
        )

    @property
    def sale(self) -> SaleRef:
        """The order's sale as the store knows it."""
        return SaleRef(str(self.row["sale_id"]), self.row["epoch"])


class Batch:
    """The effects of one batch.

    ``late`` has an entry for each order for which somebody has looked for new units; its lines are
    empty when there were too few. ``admissions_used`` are orders whose buyers have begun anew.
    """

    def __init__(
        self,
        orders: Mapping[UUID, LockedOrder],
        late: Mapping[UUID, LateUnits],
        admissions_used: frozenset[UUID] = frozenset(),
    ) -> None:
        """Begin without effects."""
        self.orders = orders
        self.late = late
        self.admissions_used = admissions_used
        self.settled: list[tuple[int, str]] = []
        self.put_off: list[int] = []
        self.look_for_units: list[LateEvent] = []
        self.wait_for_units: list[int] = []
        self.transitions: list[tuple[UUID, str, str, str]] = []
        self.events: list[Event] = []
        self.entries: list[ledger.Entry] = []
        self.sold: list[UUID] = []
        self.sold_late: list[UUID] = []
        self.freed: list[UUID] = []
        self.received: list[tuple[UUID, int, str]] = []
        self.unasked: list[tuple[UUID, str, str, int, str]] = []
        self.authorised: list[tuple[UUID, str, str, int, str]] = []
        self.voided: list[tuple[UUID, str, str, int, str]] = []
        """(order, gateway, intent, amount, currency): set aside, and to be taken or let go."""
        self.declined: dict[UUID, str] = {}
        self.failed: list[UUID] = []
        self.closed: list[UUID] = []
        self.refunds: list[tuple[UUID, UUID, str, str, int, str, str]] = []
        self.refunds_done: list[UUID] = []
        self.ended: list[UUID] = []
        """Orders that end without units here: the store may still have their holds."""
        self.units_lost: Mapping[UUID, list[str | int]] = {}
        """Of late units, those that turned out to be other orders' (H8)."""

    def judge(self, event: asyncpg.Record, order: LockedOrder) -> Verdict:
        """What the rules say about one event; changes nothing."""
        kind = event["kind"]
        if kind == "SUCCEEDED":
            late = self.late.get(order.key)
            return judge_success(
                order.facts(admission_used=order.key in self.admissions_used),
                event["amount_minor"],
                event["currency"],
                late_units=None if late is None else bool(late.lines),
            )
        if kind == "AUTHORIZED":
            return judge_authorised(order.facts(), event["amount_minor"], event["currency"])
        if kind == "FAILED":
            return judge_decline(order.facts())
        if kind == "CANCELED" and order.state is OrderState.PAYMENT_PENDING:
            return Verdict.CLOSE
        return Verdict.NOTHING

    def decide(self, event: asyncpg.Record, order: LockedOrder) -> None:
        """One payment event against one locked order."""
        verdict = self.judge(event, order)
        before = order.state
        cause = CAUSES.get(verdict)
        if cause is not None and not self.step(order, cause):
            verdict = Verdict.NOTHING
        _EFFECTS[verdict](self, event, order, before)
        if verdict not in _UNSETTLED:
            self.settled.append((event["id"], verdict))

    def decide_refund(self, event: asyncpg.Record, refund: asyncpg.Record | None) -> None:
        """A refund that its gateway has confirmed counts once, by the refund's own locked row."""
        if refund is None:
            self.settled.append((event["id"], "unknown_refund"))
            return
        if refund["state"] != "PENDING" or refund["id"] in self.refunds_done:
            self.settled.append((event["id"], Verdict.NOTHING))
            return
        order = self.orders[event["order_id"]]
        order.refunded += refund["amount_minor"]
        order.changed = True
        self.refunds_done.append(refund["id"])
        self.entries += ledger.refund_paid(
            refund["id"],
            order.key,
            order.row["sale_id"],
            refund["currency"],
            refund["amount_minor"],
        )
        whole = order.refunded >= order.received
        self.step(order, Cause.REFUNDED_FULLY if whole else Cause.REFUNDED_PARTLY)
        self.settled.append((event["id"], "refunded"))

    def step(self, order: LockedOrder, cause: Cause) -> bool:
        """Move the order on by the table; False (and nothing done) when the table refuses."""
        to = transition(order.state, cause)
        if to is None:
            return False
        row = order.row
        self.transitions.append((order.key, order.state, to, cause))
        key = str(order.key)
        payload = {
            "order": key,
            "sale": str(row["sale_id"]),
            "total_minor": row["total_minor"],
            "currency": row["currency"],
        }
        what = _EVENTS.get(cause, to.lower())
        self.events.append(Event(key, f"order.{what}", payload))
        order.state = to
        order.changed = True
        return True


def _receive(batch: Batch, event: asyncpg.Record, order: LockedOrder) -> None:
    amount, intent = event["amount_minor"], event["intent_id"]
    order.received = amount
    if order.row["payment_state"] is None:
        batch.unasked.append((order.key, event["gateway"], intent, amount, event["currency"]))
    else:
        batch.received.append((order.key, amount, intent))


def _confirm(batch: Batch, event: asyncpg.Record, order: LockedOrder, before: OrderState) -> None:
    row, key = order.row, order.key
    _receive(batch, event, order)
    batch.entries += ledger.payment(
        key, row["sale_id"], row["currency"], row["subtotal_minor"], row["fee_minor"]
    )
    (batch.sold if before in LIVE else batch.sold_late).append(key)


def _secure(batch: Batch, event: asyncpg.Record, order: LockedOrder, _before: OrderState) -> None:
    order.authorised = True
    batch.authorised.append(_set_aside(event, order))


def _void(batch: Batch, event: asyncpg.Record, order: LockedOrder, before: OrderState) -> None:
    batch.voided.append(_set_aside(event, order))
    if before in LIVE:
        batch.failed.append(order.key)
        batch.freed.append(order.key)
        batch.ended.append(order.key)


def _set_aside(event: asyncpg.Record, order: LockedOrder) -> tuple[UUID, str, str, int, str]:
    amount, currency = event["amount_minor"], event["currency"]
    return (order.key, event["gateway"], event["intent_id"], amount, currency)


def _return_money(
    batch: Batch, event: asyncpg.Record, order: LockedOrder, before: OrderState
) -> None:
    row, key = order.row, order.key
    refund_id, amount, currency = uuid7(), event["amount_minor"], event["currency"]
    _receive(batch, event, order)
    reason = (
        "late" if (amount, currency) == (row["total_minor"], row["currency"]) else "wrong_amount"
    )
    batch.refunds.append(
        (refund_id, key, event["gateway"], event["intent_id"], amount, currency, reason)
    )
    batch.entries += ledger.unearned(refund_id, key, row["sale_id"], currency, amount)
    if before in LIVE:
        batch.freed.append(key)
    batch.ended.append(order.key)


def _look_for_units(
    batch: Batch, event: asyncpg.Record, order: LockedOrder, _before: OrderState
) -> None:
    batch.look_for_units.append(
        LateEvent(event["id"], order.key, order.sale, order.row["buyer"], event["attempts"])
    )


def _count_decline(
    batch: Batch, event: asyncpg.Record, order: LockedOrder, _before: OrderState
) -> None:
    order.declines += 1
    order.changed = True
    batch.declined[order.key] = event["detail"] or "declined"


def _fail(batch: Batch, event: asyncpg.Record, order: LockedOrder, _before: OrderState) -> None:
    order.declines += 1
    batch.declined[order.key] = event["detail"] or "declined"
    batch.failed.append(order.key)
    batch.freed.append(order.key)
    batch.ended.append(order.key)


def _close(batch: Batch, _event: asyncpg.Record, order: LockedOrder, _before: OrderState) -> None:
    batch.closed.append(order.key)
    batch.freed.append(order.key)
    batch.ended.append(order.key)


def _nothing(batch: Batch, event: asyncpg.Record, order: LockedOrder, _before: OrderState) -> None:
    if event["kind"] == "CANCELED":
        batch.closed.append(order.key)


def _wait_for_units(
    batch: Batch, event: asyncpg.Record, _order: LockedOrder, _before: OrderState
) -> None:
    batch.wait_for_units.append(event["id"])


_EVENTS = {Cause.AUTHORISED: "authorised"}
"""Kinds of events of steps that lead to no new state; of all others it is the new state."""
_UNSETTLED = (Verdict.LOOK_FOR_UNITS, Verdict.WAIT_FOR_UNITS)
_EFFECTS = {
    Verdict.CONFIRM: _confirm,
    Verdict.CONFIRM_LATE: _confirm,
    Verdict.LOOK_FOR_UNITS: _look_for_units,
    Verdict.WAIT_FOR_UNITS: _wait_for_units,
    Verdict.SECURE: _secure,
    Verdict.VOID: _void,
    Verdict.VOID_WRONG: _void,
    Verdict.RETURN_MONEY: _return_money,
    Verdict.RETURN_WRONG: _return_money,
    Verdict.COUNT_DECLINE: _count_decline,
    Verdict.FAIL: _fail,
    Verdict.CLOSE: _close,
    Verdict.NOTHING: _nothing,
}
