"""What the rules make of one payment event: a line a scenario, near misses beside hits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairdrop.checkout import OrderState, model
from fairdrop.checkout.rules import (
    CAUSES,
    DEAD,
    LIVE,
    Facts,
    HoldEnding,
    Verdict,
    end_hold,
    judge_authorised,
    judge_decline,
    judge_success,
    transition,
)
from fairdrop.ids import new_id

UNKNOWN = None
"""Nobody has looked for units yet."""


def facts(state: str = "PAYMENT_PENDING", **known: object) -> Facts:
    """An order of 49.50 EUR, three attempts."""
    given = {"currency": "EUR", "total_minor": 4_950, "declines": 0, "payment_attempts": 3}
    return Facts(OrderState(state), **{"received_minor": 0, **given, **known})  # type: ignore[arg-type]


SUCCESSES = [
    # state            amount  cur    late     order differs in            verdict
    ("PAYMENT_PENDING", 4_950, "EUR", UNKNOWN, {}, "confirmed"),
    ("RESERVED", 4_950, "EUR", UNKNOWN, {}, "confirmed"),
    ("PAYMENT_PENDING", 4_950, "EUR", UNKNOWN, {"declines": 2}, "confirmed"),
    ("PAYMENT_PENDING", 4_950, "EUR", UNKNOWN, {"accept_late": False}, "confirmed"),
    # One minor unit beside it, another currency, another exponent.
    ("PAYMENT_PENDING", 4_949, "EUR", UNKNOWN, {}, "wrong_amount_returned"),
    ("PAYMENT_PENDING", 4_951, "EUR", UNKNOWN, {}, "wrong_amount_returned"),
    ("PAYMENT_PENDING", 495_000, "EUR", UNKNOWN, {}, "wrong_amount_returned"),
    ("PAYMENT_PENDING", 4_950, "USD", UNKNOWN, {}, "wrong_amount_returned"),
    ("PAYMENT_PENDING", 4_950, "eur", UNKNOWN, {}, "wrong_amount_returned"),
    ("EXPIRED", 4_949, "EUR", True, {}, "wrong_amount_returned"),
    ("CANCELLED", 4_949, "EUR", UNKNOWN, {}, "wrong_amount_returned"),
    # Nothing came in: nothing to give back.
    ("PAYMENT_PENDING", 0, "EUR", UNKNOWN, {}, "nothing_to_do"),
    ("PAYMENT_PENDING", -4_950, "EUR", UNKNOWN, {}, "nothing_to_do"),
    ("EXPIRED", 0, "EUR", UNKNOWN, {}, "nothing_to_do"),
    # The same payment told again, rightly or wrongly, at any stage.
    ("CONFIRMED", 4_950, "EUR", UNKNOWN, {"received_minor": 4_950}, "nothing_to_do"),
    ("REFUND_PENDING", 4_950, "EUR", UNKNOWN, {"received_minor": 4_950}, "nothing_to_do"),
    ("REFUNDED", 4_949, "EUR", UNKNOWN, {"received_minor": 4_949}, "nothing_to_do"),
    ("PARTIALLY_REFUNDED", 4_950, "EUR", True, {"received_minor": 4_950}, "nothing_to_do"),
    # Late: look, then buy or give back.
    ("EXPIRED", 4_950, "EUR", UNKNOWN, {}, "looks_for_units"),
    ("EXPIRED", 4_950, "EUR", UNKNOWN, {"looking": True}, "waits_for_units"),
    ("EXPIRED", 4_950, "EUR", True, {}, "confirmed_late"),
    ("EXPIRED", 4_950, "EUR", True, {"looking": True}, "confirmed_late"),
    ("EXPIRED", 4_950, "EUR", False, {}, "money_returned"),
    ("PAYMENT_FAILED", 4_950, "EUR", UNKNOWN, {"declines": 3}, "looks_for_units"),
    ("PAYMENT_FAILED", 4_950, "EUR", True, {"declines": 3}, "confirmed_late"),
    ("PAYMENT_FAILED", 4_950, "EUR", False, {"declines": 3}, "money_returned"),
    ("EXPIRED", 4_950, "EUR", UNKNOWN, {"accept_late": False}, "money_returned"),
    ("EXPIRED", 4_950, "EUR", True, {"accept_late": False}, "money_returned"),
    ("EXPIRED", 4_950, "EUR", True, {"admission_used": True}, "money_returned"),
    ("EXPIRED", 4_950, "EUR", UNKNOWN, {"admission_used": True}, "money_returned"),
    # The buyer has said no: never sold after all, whatever is left.
    ("CANCELLED", 4_950, "EUR", UNKNOWN, {}, "money_returned"),
    ("CANCELLED", 4_950, "EUR", True, {}, "money_returned"),
]


SET_ASIDE = [
    ("PAYMENT_PENDING", 4_950, "EUR", {}, "units_secured"),
    ("RESERVED", 4_950, "EUR", {}, "units_secured"),
    ("PAYMENT_PENDING", 4_950, "EUR", {"declines": 2}, "units_secured"),
    ("PAYMENT_PENDING", 4_949, "EUR", {}, "wrong_amount_voided"),
    ("PAYMENT_PENDING", 4_950, "USD", {}, "wrong_amount_voided"),
    ("PAYMENT_PENDING", 4_950, "EUR", {"authorised": True}, "nothing_to_do"),
    ("CONFIRMED", 4_950, "EUR", {"received_minor": 4_950}, "nothing_to_do"),
    ("REFUNDED", 4_950, "EUR", {"received_minor": 4_950}, "nothing_to_do"),
    ("EXPIRED", 4_950, "EUR", {}, "voided"),
    ("EXPIRED", 4_949, "EUR", {}, "voided"),
    ("EXPIRED", 4_950, "EUR", {"accept_late": False}, "voided"),
    ("PAYMENT_FAILED", 4_950, "EUR", {"declines": 3}, "voided"),
    ("CANCELLED", 4_950, "EUR", {}, "voided"),
]


@pytest.mark.parametrize(("state", "amount", "currency", "known", "verdict"), SET_ASIDE)
def test_what_money_set_aside_leads_to(
    state: str, amount: int, currency: str, known: dict[str, object], verdict: str
) -> None:
    """O4: it is taken for units that are secured, and let go for anything else."""
    assert judge_authorised(facts(state, **known), amount, currency) == verdict
    cause = CAUSES.get(Verdict(verdict))
    assert cause is None or transition(OrderState(state), cause) is not None


@pytest.mark.parametrize(("state", "amount", "currency", "late", "known", "verdict"), SUCCESSES)
def test_what_a_success_leads_to(
    state: str,
    amount: int,
    currency: str,
    late: bool | None,
    known: dict[str, object],
    verdict: str,
) -> None:
    judged = judge_success(facts(state, **known), amount, currency, late_units=late)
    assert judged is Verdict(verdict)


DECLINES = [
    # state              declines  attempts  received  verdict
    ("PAYMENT_PENDING", 0, 3, 0, "decline_counted"),
    ("PAYMENT_PENDING", 1, 3, 0, "decline_counted"),
    ("PAYMENT_PENDING", 2, 3, 0, "failed"),
    ("PAYMENT_PENDING", 7, 3, 0, "failed"),  # the operator has lowered the limit meanwhile
    ("PAYMENT_PENDING", 0, 1, 0, "failed"),
    ("PAYMENT_PENDING", 2, 3, 4_950, "nothing_to_do"),
    ("RESERVED", 2, 3, 0, "nothing_to_do"),
    ("CONFIRMED", 2, 3, 4_950, "nothing_to_do"),
    ("PAYMENT_FAILED", 3, 3, 0, "nothing_to_do"),
    ("EXPIRED", 2, 3, 0, "nothing_to_do"),
    ("CANCELLED", 2, 3, 0, "nothing_to_do"),
    ("REFUND_PENDING", 2, 3, 4_950, "nothing_to_do"),
]


@pytest.mark.parametrize(("state", "declines", "attempts", "received", "verdict"), DECLINES)
def test_what_a_decline_leads_to(
    state: str, declines: int, attempts: int, received: int, verdict: str
) -> None:
    known = {"declines": declines, "payment_attempts": attempts, "received_minor": received}
    assert judge_decline(facts(state, **known)) is Verdict(verdict)


@given(
    state=st.sampled_from(sorted(LIVE | DEAD)),
    amount=st.integers(1, 10**12),
    currency=st.sampled_from(["EUR", "USD", "JPY"]),
    total=st.integers(1, 10**12) | st.just(4_950),
    accept_late=st.booleans(),
    admission_used=st.booleans(),
    late=st.booleans(),
)
def test_new_money_always_ends_as_a_confirmation_or_a_return(
    state: OrderState,
    amount: int,
    currency: str,
    total: int,
    accept_late: bool,
    admission_used: bool,
    late: bool,
) -> None:
    """O8, and the table has the step that the verdict asks for."""
    known = facts(state, total_minor=total, accept_late=accept_late, admission_used=admission_used)
    verdict = judge_success(known, amount, currency, late_units=late)
    after = transition(state, CAUSES[verdict])
    if (amount, currency) == (total, "EUR") and state in LIVE:
        assert after is OrderState.CONFIRMED
    assert after in (OrderState.CONFIRMED, OrderState.REFUND_PENDING)
    if after is OrderState.CONFIRMED:
        assert (amount, currency) == (total, "EUR")


HOLDS = [
    # order's state       all units of the hold are sold to it    the first hold  the late hold
    ("RESERVED", False, "extend", "free"),
    ("PAYMENT_PENDING", False, "extend", "free"),
    ("CONFIRMED", True, "commit", "commit"),
    ("CONFIRMED", False, "free", "free"),  # it has the units of its other hold
    ("EXPIRED", False, "free", "free"),
    ("PAYMENT_FAILED", False, "free", "free"),
    ("CANCELLED", False, "free", "free"),
    ("REFUND_PENDING", False, "free", "free"),  # money that never bought anything
    ("REFUND_PENDING", True, "commit", "commit"),  # an operator's refund; the units stay sold
    ("REFUNDED", False, "free", "free"),
    ("REFUNDED", True, "commit", "commit"),
    ("PARTIALLY_REFUNDED", True, "commit", "commit"),
    ("DISPUTED", True, "commit", "commit"),
]


@pytest.mark.parametrize(("state", "sold", "first", "late"), HOLDS)
def test_what_becomes_of_a_hold_is_what_the_database_says(
    state: str, sold: bool, first: str, late: str
) -> None:
    for late_hold, ending in ((False, first), (True, late)):
        judged = end_hold(OrderState(state), sold=sold, late_hold=late_hold)
        assert judged is HoldEnding(ending)


def test_the_late_hold_of_an_order_has_a_name_of_its_own_that_leads_back_to_it() -> None:
    order = new_id()
    late = model.late_hold(order)
    assert late != order
    assert model.order_of_hold(late) == (order, True)
    assert model.order_of_hold(order) == (order, False)
