"""The sandbox bank's decisions, case by case."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairdrop.payments import CaptureMode, IntentStatus
from fairdrop.payments.sandbox.cards import CARDS
from fairdrop.payments.sandbox.mischief import NO_MISCHIEF, Mischief
from fairdrop.payments.sandbox.rules import (
    CANCELLATIONS,
    Attempt,
    AttemptKind,
    Capture,
    decide_attempt,
    decide_capture,
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


@pytest.mark.parametrize(
    ("status", "mischief", "kind"),
    [
        (OPEN, NO_MISCHIEF, AttemptKind.AUTHORIZED),
        (OPEN, Mischief(decline="expired"), AttemptKind.DECLINED),
        (OPEN, Mischief(delay_ms=5), AttemptKind.PROCESSING),
        (IntentStatus.REQUIRES_CAPTURE, NO_MISCHIEF, AttemptKind.ALREADY_AUTHORIZED),
        (IntentStatus.CANCELED, NO_MISCHIEF, AttemptKind.REFUSED_CANCELED),
    ],
)
def test_with_manual_capture_the_bank_sets_the_money_aside(
    status: IntentStatus, mischief: Mischief, kind: AttemptKind
) -> None:
    assert decide_attempt(status, GOOD, mischief, CaptureMode.MANUAL).kind is kind


@pytest.mark.parametrize(
    ("status", "amount", "outcome"),
    [
        (IntentStatus.REQUIRES_CAPTURE, 900, Capture.CAPTURES),
        (IntentStatus.REQUIRES_CAPTURE, 899, Capture.REFUSED),
        (IntentStatus.REQUIRES_CAPTURE, 901, Capture.REFUSED),
        (IntentStatus.SUCCEEDED, 900, Capture.CAPTURED),
        (IntentStatus.SUCCEEDED, 899, Capture.REFUSED),
        (OPEN, 900, Capture.REFUSED),
        (IntentStatus.PROCESSING, 900, Capture.REFUSED),
        (IntentStatus.CANCELED, 900, Capture.REFUSED),
    ],
)
def test_only_what_is_set_aside_is_captured_in_full_and_once(
    status: IntentStatus, amount: int, outcome: Capture
) -> None:
    assert decide_capture(status, 900, amount) is outcome


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
