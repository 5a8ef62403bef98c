"""The sale that is rehearsed: its variants, its pace, and deadlines short enough to watch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from fairdrop.payments import CaptureMode

CURRENCY = "EUR"
FEE_BPS = 1_000
ORDER_LIMIT = 4
EACH_INSIDE_MS = 2
"""Added to each deadline for each place inside: all of these people share one simulator's speed."""
INSIDE_PER_UNIT = 3
LEAST_INSIDE = 100
MOST_INSIDE = 1_500
LEAST_RATE_PER_S = 50
CROWD_PASSES_IN_S = 12
_SEATS = (
    # name, price in minor units, share of the units
    ("Standing", 3_900, 0.50),
    ("Stalls", 6_500, 0.25),
    ("Balcony", 5_200, 0.15),
    ("Front row", 14_900, 0.10),
)


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Short enough to watch how units come back and are sold again."""

    claim_ttl_ms: int = 5_000
    lease_ttl_ms: int = 25_000
    hold_ttl_ms: int = 4_000
    payment_ttl_ms: int = 2_500

    def body(self, inside: int) -> dict[str, int]:
        """The fields of a sale with so many people inside at one time."""
        slack_ms = EACH_INSIDE_MS * inside
        return {name: ttl_ms + slack_ms for name, ttl_ms in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class Drop:
    """What to create. ``rate_per_s`` is the admission pace in people per second."""

    slug: str
    name: str
    units: int
    rate_per_s: float
    description: str = ""
    deadlines: Deadlines | None = Deadlines()
    """None: the defaults of the control plane, which are for people."""
    lobby_ms: int = 0
    """How long before the opening the lobby opens; 0 is no lobby."""
    accept_late: bool = True
    """Whether money that comes late buys new units, while there are any (O7)."""
    capture: CaptureMode = CaptureMode.AUTOMATIC
    """Whether the gateway takes the money when the buyer agrees, or when the units are secured (O4)."""

    @property
    def cap(self) -> int:
        """People inside at one time: some for each unit, since not everybody inside buys (W9)."""
        return min(max(LEAST_INSIDE, INSIDE_PER_UNIT * self.units), MOST_INSIDE)

    def variants(self) -> list[dict[str, Any]]:
        """The variants as the control plane takes them; together they have all units."""
        quantities = split_units(self.units)
        return [
            {
                "product": "Rooftop concert",
                "name": name,
                "price_minor": price_minor,
                "quantity": quantity,
            }
            for (name, price_minor, _), quantity in zip(_SEATS, quantities, strict=True)
            if quantity
        ]

    def body(self, opens_at_s: float) -> dict[str, Any]:
        """The body of ``POST /admin/v1/sales``; ``opens_at_s`` in seconds since the epoch."""
        return {
            "slug": self.slug,
            "name": self.name,
            "description": self.description,
            "timezone": "Europe/Berlin",
            "opens_at": datetime.fromtimestamp(opens_at_s, UTC).isoformat(),
            "currency": CURRENCY,
            "fee_bps": FEE_BPS,
            "rate_per_s": self.rate_per_s,
            "cap": self.cap,
            # Everybody gets in line: what is rehearsed is the crowd.
            "line_cap_factor": 0,
            **({} if self.deadlines is None else self.deadlines.body(self.cap)),
            "accept_late": self.accept_late,
            "capture": self.capture.value,
            "order_limit": ORDER_LIMIT,
            "buyer_limit": ORDER_LIMIT,
            "lobby_ms": self.lobby_ms,
            "variants": self.variants(),
        }


def split_units(units: int) -> list[int]:
    """How many units each variant has: by the shares, rounded down, the first takes the rest.

    >>> split_units(200), split_units(1)
    ([100, 50, 30, 20], [1, 0, 0, 0])
    """
    others = [int(units * share) for _, _, share in _SEATS[1:]]
    return [units - sum(others), *others]


def default_rate_per_s(buyers: int) -> float:
    """A pace at which the whole crowd could pass in CROWD_PASSES_IN_S, so that a line forms.

    >>> default_rate_per_s(2_000), default_rate_per_s(100)
    (166.0, 50.0)
    """
    return float(max(LEAST_RATE_PER_S, buyers // CROWD_PASSES_IN_S))


def time_limit_s(buyers: int, rate_per_s: float) -> float:
    """How long a rehearsal may take before it counts as stuck: many times what it should need."""
    return 90.0 + buyers / 50 + buyers / max(rate_per_s, 1.0)
