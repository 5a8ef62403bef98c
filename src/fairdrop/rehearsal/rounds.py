"""A long rehearsal: round after round on one site, each judged at its end."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fairdrop.audit import audit, figures

from .drop import Deadlines, Drop
from .invariants import broken
from .rehearse import Wanted, rehearse
from .report import Report, make_report
from .schedule import draw_round
from .striking import Striker

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fairdrop.app import Parts
    from fairdrop.site import Site

    from .schedule import Round

OPENS_IN_S = 0.5
DEADLINES = Deadlines(
    claim_ttl_ms=2_000, lease_ttl_ms=8_000, hold_ttl_ms=2_000, payment_ttl_ms=1_500
)
ADDED_UP = (
    "units_total",
    "units_sold",
    "oversold",
    "orders_confirmed",
    "orders_expired",
    "orders_failed",
    "orders_cancelled",
    "orders_refunded",
    "paid_without_order",
    "duplicate_charges",
    "ledger_debits_minor",
    "ledger_credits_minor",
    "ledger_variance_minor",
)


@dataclass(frozen=True, slots=True)
class Held:
    """One round that was held: what was drawn, what was done to it, what it came to."""

    drawn: Round
    struck: tuple[str, ...]
    kills: int
    deaths: int
    report: Report


@dataclass(frozen=True, slots=True)
class Endurance:
    """All rounds of a rehearsal, and what the audit of the whole site found after them."""

    seed: int
    faults: bool
    rounds: tuple[Held, ...]
    differences: tuple[str, ...]
    wall_s: float

    @property
    def holds(self) -> bool:
        """Whether every invariant held in every round, and the whole site agrees."""
        return not self.differences and all(held.report.holds for held in self.rounds)

    def sums(self) -> dict[str, int]:
        """The figures of all rounds, added up."""
        sums: Counter[str] = Counter()
        for held in self.rounds:
            sums.update({name: held.report.figures[name] for name in ADDED_UP})
        return {name: sums[name] for name in ADDED_UP}

    def verdicts(self) -> list[dict[str, Any]]:
        """Each invariant: in how many of its rounds it held, and the figures where it did not."""
        judged = [each for held in self.rounds for each in held.report.invariants]
        names = {each.name: each.promise for each in judged}
        rounds = Counter(each.name for each in judged)
        failed = {
            (each.name, held.drawn.number): each.figures
            for held in self.rounds
            for each in broken(held.report.invariants)
        }
        return [
            {
                "name": name,
                "promise": promise,
                "held": sum(each.holds for each in judged if each.name == name),
                "rounds": rounds[name],
                "broken": {
                    number: words for (which, number), words in failed.items() if which == name
                },
            }
            for name, promise in names.items()
        ]

    def document(self) -> dict[str, Any]:
        """The JSON document; its keys are promised to stay."""
        return {
            "seed": self.seed,
            "faults": self.faults,
            "holds": self.holds,
            "wall_s": round(self.wall_s, 3),
            "kills": sum(held.kills for held in self.rounds),
            "deaths_at_points": sum(held.deaths for held in self.rounds),
            "figures": self.sums(),
            "invariants": self.verdicts(),
            "differences": list(self.differences),
            "rounds": [
                {
                    "schedule": {**asdict(held.drawn), "capture": held.drawn.capture.value},
                    "struck": list(held.struck),
                    "report": held.report.document(),
                }
                for held in self.rounds
            ],
        }


@dataclass(frozen=True, slots=True)
class Telling:
    """Whom to tell what happens, as it happens."""

    drawn: Callable[[Round], None]
    struck: Callable[[str], None]
    held: Callable[[Held], None]


async def endure(  # noqa: PLR0913 - what a long rehearsal needs
    site: Site,
    parts: Parts,
    directory: Path,
    *,
    seed: int,
    faults: bool,
    for_s: float,
    tell: Telling,
) -> Endurance:
    """Hold rounds until ``for_s`` seconds are over, at least one; the last one is held to its end.

    Raises TimeoutError when a process of the site does not come back, and whatever the audit raises.
    """
    began = time.monotonic()
    rounds: list[Held] = []
    while not rounds or time.monotonic() - began < for_s:
        drawn = draw_round(seed, len(rounds) + 1, faults=faults)
        tell.drawn(drawn)
        held = await _hold(site, parts, directory, drawn, tell)
        tell.held(held)
        rounds.append(held)
    found = await audit(parts)
    return Endurance(
        seed,
        faults,
        tuple(rounds),
        tuple(difference.words for difference in found),
        time.monotonic() - began,
    )


async def _hold(site: Site, parts: Parts, directory: Path, drawn: Round, tell: Telling) -> Held:
    began = time.monotonic()
    wanted = Wanted(
        drop=Drop(
            slug=f"round-{drawn.number}",
            name=f"Round {drawn.number}",
            units=drawn.units,
            rate_per_s=drawn.rate_per_s,
            deadlines=DEADLINES,
            accept_late=drawn.accept_late,
            capture=drawn.capture,
        ),
        buyers=drawn.buyers,
        seed=drawn.seed,
        manners=drawn.manners,
    )
    striker = Striker(site, directory, tell.struck)
    striking = asyncio.create_task(striker.strike(drawn.blows, OPENS_IN_S))
    try:
        rehearsed = await rehearse(
            wanted, parts, url=site.url, admin_key=site.admin_key, opens_in_s=OPENS_IN_S
        )
        await striking
    finally:
        striking.cancel()
    await striker.calm()
    report = make_report(
        wanted,
        rehearsed,
        await figures(parts, rehearsed.sale_id),
        await audit(parts, rehearsed.sale_id),
        workers=1,
        command_s=time.monotonic() - began,
    )
    kills = sum(blow.target is not None for blow in drawn.blows)
    return Held(drawn, tuple(striker.struck), kills, striker.deaths, report)
