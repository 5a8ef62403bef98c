"""The order's state machine as data, and the pure decision on what a gateway tells (O2, O6, O7).

A pair of state and cause that :data:`TRANSITIONS` does not have is refused. Everything here is
plain values in, plain values out: no clock, no connection.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple


class OrderState(StrEnum):
    """The states of an order."""

    RESERVED = "RESERVED"
    PAYMENT_PENDING = "PAYMENT_PENDING"
    CONFIRMED = "CONFIRMED"
    PAYMENT_FAILED = "PAYMENT_FAILED"
    EXPIRED = "EXPIRED"
    CANCELLED = "CANCELLED"
    REFUND_PENDING = "REFUND_PENDING"
    REFUNDED = "REFUNDED"
    PARTIALLY_REFUNDED = "PARTIALLY_REFUNDED"
    DISPUTED = "DISPUTED"


class Cause(StrEnum):
    """Why an order's state changes; the word stands in the audit table."""

    START = "start"
    PAY = "pay"
    PAID = "paid"
    PAID_LATE = "paid_late"
    PAID_TOO_LATE = "paid_too_late"
    PAID_WRONG = "paid_wrong_amount"
    AUTHORISED = "authorised"
    AUTHORISED_WRONG = "authorised_wrong_amount"
    DECLINE = "declined"
    VOID = "payment_closed"
    EXPIRE = "deadline"
    CANCEL = "cancelled"
    REFUND = "refund_asked"
    REFUNDED_FULLY = "refunded"
    REFUNDED_PARTLY = "refunded_partly"


_S, _C = OrderState, Cause
TRANSITIONS: MappingProxyType[tuple[OrderState, Cause], OrderState] = MappingProxyType(
    {
        (_S.RESERVED, _C.PAY): _S.PAYMENT_PENDING,
        (_S.RESERVED, _C.PAID): _S.CONFIRMED,
        (_S.RESERVED, _C.PAID_WRONG): _S.REFUND_PENDING,
        (_S.RESERVED, _C.EXPIRE): _S.EXPIRED,
        (_S.RESERVED, _C.CANCEL): _S.CANCELLED,
        (_S.PAYMENT_PENDING, _C.PAID): _S.CONFIRMED,
        (_S.PAYMENT_PENDING, _C.PAID_WRONG): _S.REFUND_PENDING,
        (_S.PAYMENT_PENDING, _C.DECLINE): _S.PAYMENT_FAILED,
        (_S.PAYMENT_PENDING, _C.VOID): _S.PAYMENT_FAILED,
        (_S.PAYMENT_PENDING, _C.EXPIRE): _S.EXPIRED,
        (_S.PAYMENT_PENDING, _C.CANCEL): _S.CANCELLED,
        # Set aside at the bank: the units are secured, and the money is taken next (O4).
        (_S.RESERVED, _C.AUTHORISED): _S.PAYMENT_PENDING,
        (_S.PAYMENT_PENDING, _C.AUTHORISED): _S.PAYMENT_PENDING,
        (_S.RESERVED, _C.AUTHORISED_WRONG): _S.PAYMENT_FAILED,
        (_S.PAYMENT_PENDING, _C.AUTHORISED_WRONG): _S.PAYMENT_FAILED,
        # Money for an order that was given up: new units if there are any, else back (O7, O8).
        (_S.EXPIRED, _C.PAID_LATE): _S.CONFIRMED,
        (_S.EXPIRED, _C.PAID_TOO_LATE): _S.REFUND_PENDING,
        (_S.EXPIRED, _C.PAID_WRONG): _S.REFUND_PENDING,
        (_S.PAYMENT_FAILED, _C.PAID_LATE): _S.CONFIRMED,
        (_S.PAYMENT_FAILED, _C.PAID_TOO_LATE): _S.REFUND_PENDING,
        (_S.PAYMENT_FAILED, _C.PAID_WRONG): _S.REFUND_PENDING,
        # The buyer has said no: never sold to them after all.
        (_S.CANCELLED, _C.PAID_TOO_LATE): _S.REFUND_PENDING,
        (_S.CANCELLED, _C.PAID_WRONG): _S.REFUND_PENDING,
        (_S.CONFIRMED, _C.REFUND): _S.REFUND_PENDING,
        (_S.PARTIALLY_REFUNDED, _C.REFUND): _S.REFUND_PENDING,
        (_S.REFUND_PENDING, _C.REFUNDED_FULLY): _S.REFUNDED,
        (_S.REFUND_PENDING, _C.REFUNDED_PARTLY): _S.PARTIALLY_REFUNDED,
    }
)

LIVE = frozenset({_S.RESERVED, _S.PAYMENT_PENDING})
"""States whose orders hold units that are not sold yet."""
DEAD = frozenset({_S.EXPIRED, _S.PAYMENT_FAILED, _S.CANCELLED})
"""States whose orders hold nothing and owe nothing."""
SECOND_CHANCE = frozenset({_S.EXPIRED, _S.PAYMENT_FAILED})
"""States in which late money may still buy units (policy ``accept_late``)."""


def transition(state: OrderState, cause: Cause) -> OrderState | None:
    """The state that follows, or None: the pair is refused and nothing changes."""
    return TRANSITIONS.get((state, cause))


class Facts(NamedTuple):
    """What the decision on a payment event looks at."""

    state: OrderState
    currency: str
    total_minor: int
    declines: int
    payment_attempts: int
    received_minor: int
    accept_late: bool = True
    admission_used: bool = False
    """Whether the buyer has begun anew: another order under way has the same admission."""
    looking: bool = False
    """Whether somebody is looking for new units at this moment."""
    authorised: bool = False
    """Whether the money is set aside and the units are secured already."""


class Verdict(StrEnum):
    """What to do with one payment event."""

    CONFIRM = "confirmed"
    CONFIRM_LATE = "confirmed_late"
    LOOK_FOR_UNITS = "looks_for_units"
    WAIT_FOR_UNITS = "waits_for_units"
    SECURE = "units_secured"
    VOID = "voided"
    VOID_WRONG = "wrong_amount_voided"
    RETURN_MONEY = "money_returned"
    RETURN_WRONG = "wrong_amount_returned"
    COUNT_DECLINE = "decline_counted"
    FAIL = "failed"
    CLOSE = "payment_closed"
    NOTHING = "nothing_to_do"


def judge_success(
    facts: Facts, amount_minor: int, currency: str, *, late_units: bool | None = None
) -> Verdict:
    """What to do when the gateway says that an order's intent was paid.

    ``late_units`` says whether new units have been taken for an order that had given up its own;
    None means that nobody has looked, and asks for it. A payment counts once: ``received_minor``
    above zero means that this one is known already.
    """
    if amount_minor <= 0 or facts.received_minor > 0:
        return Verdict.NOTHING
    if amount_minor != facts.total_minor or currency != facts.currency:
        return Verdict.RETURN_WRONG
    if facts.state in LIVE:
        return Verdict.CONFIRM
    # One admission is one order (W13), also when the first one's money comes after all.
    if facts.state in SECOND_CHANCE and facts.accept_late and not facts.admission_used:
        if late_units is None:
            return Verdict.WAIT_FOR_UNITS if facts.looking else Verdict.LOOK_FOR_UNITS
        if late_units:
            return Verdict.CONFIRM_LATE
    return Verdict.RETURN_MONEY


def judge_authorised(facts: Facts, amount_minor: int, currency: str) -> Verdict:
    """What to do when the bank has set the money aside: take it, or let it go (O4).

    Nothing has been taken, so there is nothing to return: what comes too late, or is not what the
    order costs, is voided (case 33). ``accept_late`` is about money that came in.
    """
    if facts.received_minor > 0 or facts.authorised:
        return Verdict.NOTHING
    if facts.state not in LIVE:
        return Verdict.VOID
    if amount_minor != facts.total_minor or currency != facts.currency:
        return Verdict.VOID_WRONG
    return Verdict.SECURE


def judge_decline(facts: Facts) -> Verdict:
    """What to do with a declined attempt: count it, or give the order up after the last one.

    A decline that is told after the success, or after the end, changes nothing (states only move
    forward, case 20).
    """
    paid = facts.received_minor > 0 or facts.authorised
    if facts.state is not OrderState.PAYMENT_PENDING or paid:
        return Verdict.NOTHING
    return Verdict.FAIL if facts.declines + 1 >= facts.payment_attempts else Verdict.COUNT_DECLINE


CAUSES: MappingProxyType[Verdict, Cause] = MappingProxyType(
    {
        Verdict.CONFIRM: Cause.PAID,
        Verdict.CONFIRM_LATE: Cause.PAID_LATE,
        Verdict.SECURE: Cause.AUTHORISED,
        Verdict.VOID_WRONG: Cause.AUTHORISED_WRONG,
        Verdict.RETURN_MONEY: Cause.PAID_TOO_LATE,
        Verdict.RETURN_WRONG: Cause.PAID_WRONG,
        Verdict.FAIL: Cause.DECLINE,
        Verdict.CLOSE: Cause.VOID,
    }
)
"""The transition that a verdict asks for; verdicts that are not here change no state."""


class HoldEnding(StrEnum):
    """What becomes of a hold in the store whose order has decided, or has yet to decide."""

    EXTEND = "extend"
    FREE = "free"
    COMMIT = "commit"


def end_hold(state: OrderState, *, sold: bool, late_hold: bool) -> HoldEnding:
    """What the database says about one of an order's holds (H7).

    An order has the hold that its buyer made, and another one if it had given up the first when its
    money came (``late_hold``). ``sold``: all units of this hold are sold to this order.
    """
    if sold:
        return HoldEnding.COMMIT
    if state in LIVE and not late_hold:
        return HoldEnding.EXTEND
    return HoldEnding.FREE
