"""The sandbox bank's decisions, case by case."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairdrop.payments import IntentStatus
from fairdrop.payments.sandbox.cards import CARDS
from fairdrop.payments.sandbox.mischief import NO_MISCHIEF, Mischief
from fairdrop.payments.sandbox.rules import (
    CANCELLATIONS,
    Attempt,
    AttemptKind,
    decide_attempt,
    may_refund,
)
from fairdrop.payments.sandbox.webhook_sender import retry_after_ms

OPEN = IntentStatus.REQUIRES_PAYMENT
GOOD = CARDS["4242424242424242"]
BAD = CARDS["4000000000000002"]
SLOW = CARDS["4000000000000259"]


@pytest.mark.parametrize(
    ("status", "card", "mischief", "expected"),
    [
        (OPEN, GOOD, NO_MISCHIEF, Attempt(AttemptKind.CHARGED)),
        (OPEN, BAD, NO_MISCHIEF, Attempt(AttemptKind.DECLINED, "card_declined")),
        (OPEN, GOOD, Mischief(decline="expired"), Attempt(AttemptKind.DECLINED, "expired")),
        (OPEN, SLOW, NO_MISCHIEF, Attempt(AttemptKind.PROCESSING, None, 3_000)),
        (OPEN, GOOD, Mischief(delay_ms=5), Attempt(AttemptKind.PROCESSING, None, 5)),
        (OPEN, BAD, Mischief(delay_ms=5), Attempt(AttemptKind.PROCESSING, "card_declined", 5)),
        (OPEN, GOOD, Mischief(drop=True, duplicate=3), Attempt(AttemptKind.CHARGED)),
        (IntentStatus.SUCCEEDED, BAD, NO_MISCHIEF, Attempt(AttemptKind.ALREADY_SUCCEEDED)),
        (IntentStatus.PROCESSING, GOOD, NO_MISCHIEF, Attempt(AttemptKind.ALREADY_PROCESSING)),
        (IntentStatus.CANCELED, GOOD, NO_MISCHIEF, Attempt(AttemptKind.REFUSED_CANCELED)),
    ],
)
def test_an_attempt_is_put_to_the_bank_only_while_the_intent_is_open(
    status: IntentStatus, card: object, mischief: Mischief, expected: Attempt
) -> None:
    assert decide_attempt(status, card, mischief) == expected  # type: ignore[arg-type]


def test_every_status_says_what_cancelling_comes_to() -> None:
    assert set(CANCELLATIONS) == set(IntentStatus)


@given(st.integers(1, 10_000), st.lists(st.integers(1, 5_000)))
def test_refunds_never_add_up_to_more_than_was_received(received: int, asked: list[int]) -> None:
    refunded = 0
    for amount in asked:
        if may_refund(received, refunded, amount):
            refunded += amount
        else:
            assert refunded + amount > received
    assert refunded <= received


def test_retries_double_from_200_ms_to_30_s() -> None:
    pauses = [retry_after_ms(attempts) for attempts in range(1, 12)]
    assert pauses == [200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000, 30_000]
    assert retry_after_ms(100_000) == 30_000
