"""Who the simulated buyers are: a plan for each, drawn from a seed.

A plan says what a person means to do, not what will happen: whoever finds everything sold never
comes to the declined card. The same seed and number give the same plan, whatever the size of the
crowd, so a run that went wrong can be looked at again.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

from fairdrop.payments.sandbox.mischief import Mischief

GOOD_CARD = "4242424242424242"
BAD_CARDS = ("4000000000000002", "4000000000009995")
PATIENCE_MS = (3_000, 20_000)
LEAVING_MS = (200, 6_000)
EARLY_MS = 1_500
"""How long before the opening the first people come."""


class Ending(StrEnum):
    """What a buyer means to do with units in hand."""

    BUYS = "buys"
    GIVES_BACK = "gives the reservation back"
    FORGETS_RESERVATION = "walks away from the reservation"
    FORGETS_ORDER = "starts checkout and walks away"
    FORGETS_PAYMENT = "starts payment and walks away"
    CANCELS = "cancels the order"
    HAS_BAD_CARDS_ONLY = "has only cards that are declined"
    PAYS_LATE = "pays after the deadline"


@dataclass(frozen=True, slots=True)
class Manners:
    """How a crowd behaves: shares of all buyers from 0 to 1, drawn independently of one another.

    ``endings`` holds the shares of those who do not simply buy; together they stay below 1. They
    are multiplied by ``patient_share_of_endings`` for patient people: whoever waits to the last
    for a unit mostly means to have it.
    """

    comes_early: float = 0.05
    joins_again: float = 0.20
    looks_early: float = 0.10
    leaves_line: float = 0.04
    misses_call: float = 0.05
    comes_back: float = 0.50
    """Of those who miss their call."""
    only_favourite: float = 0.25
    only_full_quantity: float = 0.20
    is_patient: float = 0.50
    """Stays until every unit that they want is sold, and takes whatever comes."""
    patient_share_of_endings: float = 0.4
    double_clicks: float = 0.15
    bad_card_first: float = 0.10
    slow_bank: float = 0.05
    webhook_twice: float = 0.10
    webhook_late: float = 0.05
    webhook_reordered: float = 0.05
    webhook_dropped: float = 0.03
    endings: tuple[tuple[Ending, float], ...] = (
        (Ending.GIVES_BACK, 0.04),
        (Ending.FORGETS_RESERVATION, 0.05),
        (Ending.FORGETS_ORDER, 0.03),
        (Ending.FORGETS_PAYMENT, 0.03),
        (Ending.CANCELS, 0.04),
        (Ending.HAS_BAD_CARDS_ONLY, 0.03),
        (Ending.PAYS_LATE, 0.04),
    )


@dataclass(frozen=True, slots=True)
class BuyerPlan:
    """One buyer. Times in milliseconds; ``wishes`` are numbers of variants, the dearest first."""

    number: int
    arrives_ms: int
    """After the opening; negative for people who come before it."""
    joins_again: int
    joins_at_once: bool
    """The repeated joins are sent at the same instant, not one after the other."""
    looks_early: bool
    leaves_line_after_ms: int | None
    misses_call: bool
    comes_back: bool
    wishes: tuple[int, ...]
    quantity: int
    takes_fewer: bool
    patience_ms: int | None
    """How long to wait for units to come back; None: until all are sold."""
    thinks_ms: int
    double_clicks: bool
    ending: Ending
    hesitates: bool
    """Cancels only after starting payment; pays late by waiting, not by a slow bank."""
    says_goodbye: bool
    """Leaves properly when there is nothing to get, which frees the place inside at once."""
    cards: tuple[str, ...]
    mischief: Mischief


def arrival_span_ms(buyers: int) -> int:
    """Within how many milliseconds of the opening all of them arrive: most of them at once."""
    return max(3_000, buyers * 2 // 3)


def draw_plan(
    seed: int, number: int, *, variants: int, span_ms: int, manners: Manners
) -> BuyerPlan:
    """The plan of one buyer. Pure: the same arguments give the same plan."""
    dice = random.Random(f"{seed}:{number}")

    def is_so(share: float) -> bool:
        return dice.random() < share

    # Every draw is made for everybody and in this order, so that a share can be changed without
    # making other people of those whom it does not concern.
    early = is_so(manners.comes_early)
    arrives_ms = _arrival_ms(dice, span_ms)
    before_ms = int(dice.random() * EARLY_MS)
    joins_again = 1 + is_so(0.3) if is_so(manners.joins_again) else 0
    at_once = is_so(0.5)
    looks_early = is_so(manners.looks_early)
    leaves = is_so(manners.leaves_line)
    leaves_after_ms = dice.randint(*LEAVING_MS)
    misses, comes_back = is_so(manners.misses_call), is_so(manners.comes_back)
    wishes = _wishes(dice, variants)
    quantity = dice.choices((1, 2, 3, 4), weights=(60, 28, 7, 5))[0]
    patient = is_so(manners.is_patient)
    patience_ms = dice.randint(*PATIENCE_MS)
    only_favourite = is_so(manners.only_favourite) and not patient
    only_full = is_so(manners.only_full_quantity) and not patient
    ending = _ending(dice, manners, manners.patient_share_of_endings if patient else 1.0)
    return BuyerPlan(
        number=number,
        arrives_ms=-before_ms if early else arrives_ms,
        joins_again=joins_again,
        joins_at_once=at_once,
        looks_early=looks_early,
        leaves_line_after_ms=leaves_after_ms if leaves else None,
        misses_call=misses,
        comes_back=comes_back,
        wishes=wishes[:1] if only_favourite else wishes,
        quantity=quantity,
        takes_fewer=not only_full,
        patience_ms=None if patient else patience_ms,
        thinks_ms=int(min(dice.expovariate(1 / 250), 1_500)),
        double_clicks=is_so(manners.double_clicks),
        ending=ending,
        hesitates=is_so(0.5),
        says_goodbye=is_so(0.7),
        cards=_cards(dice, ending, manners),
        mischief=_mischief(dice, manners),
    )


def draw_crowd(
    seed: int, buyers: int, *, variants: int, manners: Manners | None = None
) -> list[BuyerPlan]:
    """The plans of a whole crowd, in order of arrival. Cost: about 20 µs a buyer."""
    span_ms = arrival_span_ms(buyers)
    plans = [
        draw_plan(seed, number, variants=variants, span_ms=span_ms, manners=manners or Manners())
        for number in range(buyers)
    ]
    return sorted(plans, key=lambda plan: plan.arrives_ms)


def _arrival_ms(dice: random.Random, span_ms: int) -> int:
    """Like the seconds after an opening: half of the people come in the first sixth of the span."""
    return int(min(dice.expovariate(4 / span_ms), span_ms * dice.uniform(0.9, 1.0)))


def _wishes(dice: random.Random, variants: int) -> tuple[int, ...]:
    """All variants in an order of preference; the first ones are more popular."""
    return tuple(sorted(range(variants), key=lambda number: dice.random() * (number + 2)))


def _ending(dice: random.Random, manners: Manners, factor: float) -> Ending:
    chance = dice.random()
    for ending, share in manners.endings:
        if chance < share * factor:
            return ending
        chance -= share * factor
    return Ending.BUYS


def _cards(dice: random.Random, ending: Ending, manners: Manners) -> tuple[str, ...]:
    """The cards in the order in which they are tried."""
    bad = tuple(dice.choice(BAD_CARDS) for _ in range(3))
    first = 1 + (dice.random() < 0.2) if dice.random() < manners.bad_card_first else 0  # noqa: PLR2004
    if ending is Ending.HAS_BAD_CARDS_ONLY:
        return bad
    return (*bad[:first], GOOD_CARD)


def _mischief(dice: random.Random, manners: Manners) -> Mischief:
    """What the payment's way back to the shop suffers."""
    slow, twice, late, reordered, dropped = (dice.random() for _ in range(5))
    delay_ms, delay_webhook_ms = dice.randint(300, 1_500), dice.randint(500, 4_000)
    copies = dice.randint(1, 2)
    return Mischief(
        delay_ms=delay_ms if slow < manners.slow_bank else 0,
        duplicate=copies if twice < manners.webhook_twice else 0,
        delay_webhook_ms=delay_webhook_ms if late < manners.webhook_late else 0,
        reorder=reordered < manners.webhook_reordered,
        drop=dropped < manners.webhook_dropped,
    )
