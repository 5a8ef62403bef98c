"""What a rehearsal with faults suffers, and when: drawn from a seed, round by round.

A round is one sale with a crowd of its own. The same seed and number give the same round: the same
crowd with the same plans and the same gateway mischief for each of its payments, and the same blows
at the same times after the opening. What real processes make of that differs from run to run.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

from fairdrop.faults import Point
from fairdrop.payments import CaptureMode

from .plan import Manners

BUYERS = (60, 160)
UNITS = (20, 60)
RATE_PER_S = (60.0, 160.0)
BLOWS = (4, 8)
FIRST_BLOW_MS, LAST_BLOW_MS = 300, 7_000
"""After the opening; the sale is at its busiest in these seconds."""
SECOND_PASSINGS = 6
"""A point is armed for one of its first so many passings."""


class Target(StrEnum):
    """A process that can be killed, by the name that its supervisor knows."""

    WEB = "web"
    WORKER = "worker"
    STORE = "valkey"
    DATABASE = "postgres"
    GATEWAY = "gateway"


@dataclass(frozen=True, slots=True)
class Blow:
    """One thing that is done to the site: a process is killed, or a fault point is armed."""

    at_ms: int
    """After the opening."""
    target: Target | None = None
    point: Point | None = None
    passing: int = 1

    @property
    def words(self) -> str:
        """What it is, in short."""
        if self.target is not None:
            return f"kill {self.target}"
        return f"die at {self.point}, passing {self.passing}"


@dataclass(frozen=True, slots=True)
class Round:
    """One sale of a rehearsal, with all that happens to it."""

    number: int
    seed: int
    """The crowd's."""
    buyers: int
    units: int
    rate_per_s: float
    accept_late: bool
    capture: CaptureMode
    manners: Manners
    blows: tuple[Blow, ...]


def draw_round(seed: int, number: int, *, faults: bool) -> Round:
    """The ``number``-th round of this seed. Pure. Without ``faults`` nothing is done to the site."""
    dice = random.Random(f"{seed}:round:{number}")
    buyers, units = dice.randint(*BUYERS), dice.randint(*UNITS)
    rate_per_s, accept_late = round(dice.uniform(*RATE_PER_S), 1), dice.random() < 0.7  # noqa: PLR2004 - a share
    manners, blows = _rough_manners(dice), _blows(dice)
    crowd, capture = dice.randrange(1_000_000), dice.choice(list(CaptureMode))
    return Round(
        number=number,
        seed=crowd,
        buyers=buyers,
        units=units,
        rate_per_s=rate_per_s,
        accept_late=accept_late,
        capture=capture,
        manners=manners if faults else Manners(),
        blows=blows if faults else (),
    )


def _rough_manners(dice: random.Random) -> Manners:
    """A crowd with worse cards and banks than usual, and a gateway that tells badly."""
    return Manners(
        double_clicks=dice.uniform(0.1, 0.5),
        bad_card_first=dice.uniform(0.1, 0.4),
        slow_bank=dice.uniform(0.05, 0.25),
        webhook_twice=dice.uniform(0.1, 0.5),
        webhook_late=dice.uniform(0.05, 0.3),
        webhook_reordered=dice.uniform(0.05, 0.3),
        webhook_dropped=dice.uniform(0.03, 0.25),
    )


def _blows(dice: random.Random) -> tuple[Blow, ...]:
    blows = []
    for _ in range(dice.randint(*BLOWS)):
        at_ms = dice.randint(FIRST_BLOW_MS, LAST_BLOW_MS)
        target, point = dice.choice(list(Target)), dice.choice(list(Point))
        passing = dice.randint(1, SECOND_PASSINGS)
        if dice.random() < 0.4:  # noqa: PLR2004 - a share
            blows.append(Blow(at_ms, target=target))
        else:
            blows.append(Blow(at_ms, point=point, passing=passing))
    return tuple(sorted(blows, key=lambda blow: blow.at_ms))
