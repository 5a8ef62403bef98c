"""Mischief comes by its shares, and the same for the same seed (SPEC O4)."""

from __future__ import annotations

import pytest

from fairdrop.payments.sandbox.mischief import (
    NO_MISCHIEF,
    REORDER_WINDOW_MS,
    Dice,
    Mischief,
    MischiefDefaults,
)
from fairdrop.payments.sandbox.rules import plan_deliveries

ROLLS = 5_000


def test_a_seed_repeats_its_mischief_and_another_seed_does_not() -> None:
    def rolls(seed: int) -> list[Mischief]:
        dice = Dice(MischiefDefaults(seed=seed, drop_share=0.3, duplicate_share=0.3))
        return [dice.roll() for _ in range(100)]

    assert rolls(7) == rolls(7)
    assert rolls(7) != rolls(8)


def test_each_share_is_kept_and_independent_of_the_others() -> None:
    dice = Dice(
        MischiefDefaults(
            seed=1,
            decline_share=0.1,
            delay_share=0.2,
            delay_webhook_share=0.1,
            duplicate_share=0.1,
            reorder_share=0.1,
            drop_share=0.05,
        )
    )
    rolled = [dice.roll() for _ in range(ROLLS)]
    shares = {
        "decline": sum(one.decline == "card_declined" for one in rolled) / ROLLS,
        "delay": sum(one.delay_ms == 1_000 for one in rolled) / ROLLS,
        "delay_webhook": sum(one.delay_webhook_ms == 300 for one in rolled) / ROLLS,
        "duplicate": sum(one.duplicate == 1 for one in rolled) / ROLLS,
        "reorder": sum(one.reorder for one in rolled) / ROLLS,
        "drop": sum(one.drop for one in rolled) / ROLLS,
        "duplicate and delay": sum(one.duplicate and one.delay_ms > 0 for one in rolled) / ROLLS,
    }
    assert shares == pytest.approx(
        {
            "decline": 0.1,
            "delay": 0.2,
            "delay_webhook": 0.1,
            "duplicate": 0.1,
            "reorder": 0.1,
            "drop": 0.05,
            "duplicate and delay": 0.02,
        },
        abs=0.02,
    )


def test_raising_one_share_leaves_the_other_draws_as_they_were() -> None:
    low = Dice(MischiefDefaults(seed=3, drop_share=0.2))
    high = Dice(MischiefDefaults(seed=3, drop_share=0.2, duplicate_share=0.9))
    assert [low.roll().drop for _ in range(200)] == [high.roll().drop for _ in range(200)]


def test_without_shares_there_is_no_mischief() -> None:
    dice = Dice(MischiefDefaults(seed=5))
    assert {dice.roll() for _ in range(100)} == {NO_MISCHIEF}


@pytest.mark.parametrize(
    ("mischief", "planned"),
    [
        (NO_MISCHIEF, [(1_000, False)]),
        (Mischief(duplicate=2), [(1_000, False)] * 3),
        (Mischief(delay_webhook_ms=300), [(1_300, False)]),
        (Mischief(reorder=True), [(1_000 + REORDER_WINDOW_MS, True)]),
        (Mischief(drop=True, duplicate=5, reorder=True), []),
    ],
)
def test_deliveries_follow_the_mischief(
    mischief: Mischief, planned: list[tuple[int, bool]]
) -> None:
    assert plan_deliveries(mischief, now_ms=1_000) == planned
