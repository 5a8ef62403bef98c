"""What is on record of a draw, and what a step of it comes to."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec


class DrawState(StrEnum):
    """How far a draw is; it never goes back."""

    COMMITTED = "COMMITTED"
    FIXED = "FIXED"
    DRAWN = "DRAWN"
    FILLED = "FILLED"


class Step(StrEnum):
    """What holding a draw came to."""

    FILLED = "filled"
    ELSEWHERE = "elsewhere"
    """Another worker holds it at the moment."""
    AWAITS_BEACON = "awaits_beacon"
    NOT_SHUT = "not_shut"
    NO_DRAW = "no_draw"


class EnterOutcome(StrEnum):
    """What came of entering a beacon's value by hand."""

    ENTERED = "entered"
    NOT_ASKED = "not_asked"
    """The sale takes no value by hand."""
    LIST_OPEN = "list_open"
    """The list can still grow: whoever knows the value could choose entries that suit it."""
    DRAWN = "drawn"


class DrawRecord(msgspec.Struct, frozen=True):
    """The row of a draw, with the settings of its sale. ``seed`` is a secret until DRAWN."""

    sale_id: str
    slug: str
    name: str
    state: DrawState
    commitment: str
    seed: str
    opens_at: datetime
    lobby_ms: int
    window_ms: int
    beacon: str
    beacon_failure: str
    epoch: int | None = None
    entries: int | None = None
    root: str | None = None
    fixed_at: datetime | None = None
    beacon_value: str | None = None
    beacon_proof: dict[str, Any] | None = None
    beacon_problem: str | None = None
    drawn_at: datetime | None = None
    filled_at: datetime | None = None

    def __repr__(self) -> str:
        """Without the seed, so that no log can carry it."""
        return f"DrawRecord({self.sale_id}, {self.state})"

    @property
    def revealed(self) -> bool:
        """Whether the seed may be shown."""
        return self.state in {DrawState.DRAWN, DrawState.FILLED}


class Inclusion(msgspec.Struct, frozen=True):
    """The short proof that an entry is in the list: with it, the root alone is enough (W4).

    ``index`` counts from 0; ``path`` are the hashes beside the way to the root, in hex.
    """

    sale: str
    entry: str
    index: int
    entries: int
    root: str
    path: list[str]


class BeaconValue(msgspec.Struct, frozen=True):
    """What a beacon gave: the value that goes into the key, and what proves where it comes from."""

    value: str
    proof: dict[str, Any] | None = None
    problem: str | None = None
