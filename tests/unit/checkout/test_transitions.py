"""The order's state machine is a table: what is not in it is refused (O2)."""

from __future__ import annotations

from itertools import product

import pytest

from fairdrop.checkout import TRANSITIONS, Cause, OrderState
from fairdrop.checkout.rules import CAUSES, DEAD, LIVE, SECOND_CHANCE, Verdict, transition

# One line a state: what each cause makes of it; a cause that is not named is refused.
TABLE = """
RESERVED            pay PAYMENT_PENDING  paid CONFIRMED  paid_wrong_amount REFUND_PENDING
RESERVED            deadline EXPIRED  cancelled CANCELLED  authorised PAYMENT_PENDING
RESERVED            authorised_wrong_amount PAYMENT_FAILED
PAYMENT_PENDING     paid CONFIRMED  paid_wrong_amount REFUND_PENDING  declined PAYMENT_FAILED
PAYMENT_PENDING     payment_closed PAYMENT_FAILED  deadline EXPIRED  cancelled CANCELLED
PAYMENT_PENDING     authorised PAYMENT_PENDING  authorised_wrong_amount PAYMENT_FAILED
CONFIRMED           refund_asked REFUND_PENDING
PAYMENT_FAILED      paid_late CONFIRMED  paid_too_late REFUND_PENDING
PAYMENT_FAILED      paid_wrong_amount REFUND_PENDING
EXPIRED             paid_late CONFIRMED  paid_too_late REFUND_PENDING
EXPIRED             paid_wrong_amount REFUND_PENDING
CANCELLED           paid_too_late REFUND_PENDING  paid_wrong_amount REFUND_PENDING
REFUND_PENDING      refunded REFUNDED  refunded_partly PARTIALLY_REFUNDED
REFUNDED
PARTIALLY_REFUNDED  refund_asked REFUND_PENDING
DISPUTED
"""
EXPECTED = {
    (OrderState(words[0]), Cause(cause)): OrderState(after)
    for words in (line.split() for line in TABLE.strip().splitlines())
    for cause, after in zip(words[1::2], words[2::2], strict=True)
}


@pytest.mark.parametrize("state", OrderState)
@pytest.mark.parametrize("cause", Cause)
def test_every_pair_of_state_and_cause_is_in_the_table_or_refused(
    state: OrderState, cause: Cause
) -> None:
    assert transition(state, cause) is EXPECTED.get((state, cause))


def test_the_table_names_every_state() -> None:
    assert {line.split()[0] for line in TABLE.strip().splitlines()} == set(OrderState)


def test_no_step_leads_back_to_a_state_that_waits_for_money() -> None:
    """Case 20: states only move forward."""
    reached: dict[OrderState, set[OrderState]] = {state: set() for state in OrderState}
    for _ in OrderState:
        for (before, _cause), after in TRANSITIONS.items():
            reached[before] |= {after} | reached[after]
    for state, waiting in product(OrderState, LIVE):
        if waiting in reached[state]:
            assert waiting is OrderState.PAYMENT_PENDING
            assert state in LIVE
    going_round = {state for state in OrderState if state in reached[state]}
    assert going_round == {
        OrderState.PAYMENT_PENDING,  # set aside, then taken
        OrderState.REFUND_PENDING,
        OrderState.PARTIALLY_REFUNDED,
    }


def test_every_order_that_money_reaches_can_end_confirmed_or_refunded() -> None:
    """O8: whatever state an order is in when its payment is told, the table has an answer."""
    money_causes = {
        CAUSES[verdict]
        for verdict in (
            Verdict.CONFIRM,
            Verdict.CONFIRM_LATE,
            Verdict.RETURN_MONEY,
            Verdict.RETURN_WRONG,
        )
    }
    for state in LIVE | DEAD:
        answers = {transition(state, cause) for cause in money_causes} - {None}
        assert OrderState.REFUND_PENDING in answers
        assert answers <= {OrderState.REFUND_PENDING, OrderState.CONFIRMED}


def test_the_sets_of_states_say_what_the_table_says() -> None:
    assert {state for state in OrderState if transition(state, Cause.EXPIRE)} == LIVE
    assert {state for state in OrderState if transition(state, Cause.PAID_LATE)} == SECOND_CHANCE
    assert {state for state in OrderState if transition(state, Cause.PAID_TOO_LATE)} == DEAD
