"""The plans of a simulated crowd are drawn from the seed, and from nothing else."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairdrop.payments.sandbox.cards import CARDS
from fairdrop.rehearsal.plan import (
    EARLY_MS,
    GOOD_CARD,
    BuyerPlan,
    Ending,
    Manners,
    arrival_span_ms,
    draw_crowd,
    draw_plan,
)

SEEDS = st.integers(0, 2**63)
CROWD = 4_000


@pytest.fixture(scope="module")
def crowd() -> list[BuyerPlan]:
    return draw_crowd(1, CROWD, variants=4)


@given(seed=SEEDS, buyers=st.integers(0, 40), variants=st.integers(1, 6))
def test_the_same_seed_gives_the_same_crowd(seed: int, buyers: int, variants: int) -> None:
    assert draw_crowd(seed, buyers, variants=variants) == draw_crowd(
        seed, buyers, variants=variants
    )


def test_another_seed_gives_another_crowd() -> None:
    assert draw_crowd(1, 50, variants=4) != draw_crowd(2, 50, variants=4)


@given(seed=SEEDS, number=st.integers(0, 100_000))
def test_a_buyer_is_the_same_person_in_a_crowd_of_any_size(seed: int, number: int) -> None:
    small = draw_plan(seed, number, variants=4, span_ms=3_000, manners=Manners())
    large = draw_plan(seed, number, variants=4, span_ms=90_000, manners=Manners())
    assert replace(small, arrives_ms=0) == replace(large, arrives_ms=0)


def test_a_share_of_one_behaviour_changes_nobody_else() -> None:
    usual = draw_crowd(7, 300, variants=4, manners=Manners())
    clicking = draw_crowd(7, 300, variants=4, manners=replace(Manners(), double_clicks=1.0))
    assert all(plan.double_clicks for plan in clicking)
    assert [replace(plan, double_clicks=False) for plan in usual] == [
        replace(plan, double_clicks=False) for plan in clicking
    ]


@given(seed=SEEDS, buyers=st.integers(1, 60), variants=st.integers(1, 6))
def test_every_plan_can_be_lived(seed: int, buyers: int, variants: int) -> None:
    for plan in draw_crowd(seed, buyers, variants=variants):
        assert set(plan.wishes) <= set(range(variants))
        assert len(set(plan.wishes)) == len(plan.wishes) >= 1
        assert 1 <= plan.quantity <= 4
        assert -EARLY_MS <= plan.arrives_ms <= arrival_span_ms(buyers)
        assert plan.cards
        assert set(plan.cards) <= set(CARDS)
        assert (GOOD_CARD in plan.cards) is (plan.ending is not Ending.HAS_BAD_CARDS_ONLY)


@given(seed=SEEDS, buyers=st.integers(0, 60))
def test_plans_come_in_order_of_arrival(seed: int, buyers: int) -> None:
    arrivals = [plan.arrives_ms for plan in draw_crowd(seed, buyers, variants=4)]
    assert arrivals == sorted(arrivals)


def test_patient_people_take_whatever_is_left(crowd: list[BuyerPlan]) -> None:
    patient = [plan for plan in crowd if plan.patience_ms is None]
    assert len(patient) > CROWD // 3
    assert all(len(plan.wishes) == 4 and plan.takes_fewer for plan in patient)


def test_every_misbehaviour_has_its_share(crowd: list[BuyerPlan]) -> None:
    """With the seed given, no behaviour is so rare that a rehearsal would not have it."""
    manners = Manners()
    shares = {
        "joins again": sum(plan.joins_again > 0 for plan in crowd),
        "joins at once": sum(plan.joins_at_once and plan.joins_again > 0 for plan in crowd),
        "comes early": sum(plan.arrives_ms < 0 for plan in crowd),
        "leaves": sum(plan.leaves_line_after_ms is not None for plan in crowd),
        "misses": sum(plan.misses_call for plan in crowd),
        "double clicks": sum(plan.double_clicks for plan in crowd),
        "declined first": sum(len(plan.cards) > 1 for plan in crowd),
        "duplicates": sum(plan.mischief.duplicate > 0 for plan in crowd),
        "late": sum(plan.mischief.delay_webhook_ms > 0 for plan in crowd),
        "reordered": sum(plan.mischief.reorder for plan in crowd),
        "dropped": sum(plan.mischief.drop for plan in crowd),
        "slow": sum(plan.mischief.delay_ms > 0 for plan in crowd),
    }
    assert min(shares.values()) > CROWD * 0.02, shares
    assert abs(shares["misses"] / CROWD - manners.misses_call) < 0.02
    endings = Counter(plan.ending for plan in crowd)
    assert set(endings) == set(Ending)
    assert endings[Ending.BUYS] > CROWD * 0.7
