"""What the waiting room says: states, places, and the replies of its scripts."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

import msgspec


class State(StrEnum):
    """Where one visitor stands in one sale (W5)."""

    LOBBY = "LOBBY"
    WAITING = "WAITING"
    READY = "READY"
    ADMITTED = "ADMITTED"
    MISSED = "MISSED"
    NOT_ENTERED = "NOT_ENTERED"
    CLOSED = "CLOSED"
    LINE_FULL = "LINE_FULL"


class Mode(StrEnum):
    """What a sale does at the moment (W17)."""

    SCHEDULED = "scheduled"
    LOBBY = "lobby"
    DRAWING = "drawing"
    OPEN = "open"
    PAUSED = "paused"
    DRAINING = "draining"
    CLOSED = "closed"


class Place(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One visitor's place. ``rank`` is exact and counts the people ahead, from zero."""

    state: State
    position: int = 0
    rank: int = 0
    deadline_ms: int = 0
    admission: str = ""
    issued_s: int = 0
    entry: str = ""


class Line(msgspec.Struct, array_like=True, frozen=True):
    """The reply of ``join``, ``status`` and ``claim``: the places of a batch, and the line as a whole."""

    status: str
    places: list[Place] = []
    mode: Mode = Mode.SCHEDULED
    served: int = 0
    tail: int = 0
    waiting: int = 0
    outflow_milli: int = -1
    lobby: int = 0
    outlook: str = ""
    restoring_until_ms: int = 0


class Standing(NamedTuple):
    """One visitor's place, with the line it is in."""

    place: Place
    line: Line


class Ticked(msgspec.Struct, array_like=True, frozen=True):
    """What one run of ``tick`` did; ``more`` asks for another run at once.

    ``to_fill`` counts the places of the draw that are not in the line yet. ``sold_out``: nobody is
    called, because all that was on sale is sold (W16).
    """

    status: str
    called: int = 0
    missed: int = 0
    lapsed: int = 0
    mode: Mode = Mode.SCHEDULED
    more: bool = False
    to_fill: int = 0
    sold_out: bool = False


class Entrants(msgspec.Struct, array_like=True, frozen=True):
    """The reply of ``entrants``: how long the lobby's list is, what is filled, a piece of the list."""

    status: str
    drawn: int = 0
    filled: int = 0
    piece: list[str] = []


class Filled(msgspec.Struct, array_like=True, frozen=True):
    """The reply of ``fill``: OK, ELSEWHERE or NOT_SHUT, and how many places of the draw are done."""

    status: str
    filled: int = 0
    placed: int = 0


class Called(msgspec.Struct, array_like=True, frozen=True):
    """The reply of ``called``: (visitor, claim deadline) of those invited, and how long a window is."""

    status: str
    claim_ttl_ms: int = 0
    people: list[tuple[str, int]] = []
    more: bool = False


class LeaveOutcome(StrEnum):
    """What ``leave`` found."""

    LEFT = "LEFT"
    NOT_THERE = "NOT_THERE"


class Left(msgspec.Struct, array_like=True, frozen=True):
    """The reply of ``leave``."""

    status: str
    outcomes: list[LeaveOutcome] = []


REVOKED_CHARS = 8
"""Characters of an id that the list carries: 48 bits of chance, so that two ids that begin the same
among 100,000 are less likely than one in a thousand million for each token asked about."""


class Observed(msgspec.Struct, array_like=True, frozen=True):
    """The reply of ``observe``."""

    status: str


class Measures(msgspec.Struct, array_like=True, frozen=True):
    """The reply of ``measures``: DUE or NOT_DUE, and what the checkout did since the last step.

    ``completed_before`` is what the step before counted, brought to the same length of time.
    """

    status: str
    step: int = 0
    elapsed_ms: int = 0
    rate_milli: int = 0
    requests: int = 0
    slow: int = 0
    failed: int = 0
    completed: int = 0
    completed_before: float = 0.0
    inside: int = 0
    waiting: int = 0


class Adapted(msgspec.Struct, array_like=True, frozen=True):
    """The reply of ``adapt``: ADAPTED or TOO_LATE, and the pace."""

    status: str
    rate_milli: int = 0


class RestoreOutcome(StrEnum):
    """What came of a receipt that was presented."""

    RESTORED = "RESTORED"
    ADMITTED_AGAIN = "ADMITTED_AGAIN"
    HAS_PLACE = "HAS_PLACE"
    PLACE_USED = "PLACE_USED"
    SALE_CLOSED = "SALE_CLOSED"


class Presented(msgspec.Struct, array_like=True, frozen=True):
    """One item of ``restore``: a place that a receipt proves, and the admission if there was one."""

    visitor: str
    position: int
    admission: str | bool = False
    issued_s: int = 0
    lease_ms: int = 0
    hold: str | bool = False


class Restored(msgspec.Struct, array_like=True, frozen=True):
    """The reply of ``restore``."""

    status: str
    outcomes: list[RestoreOutcome] = []


class Grace(msgspec.Struct, array_like=True, frozen=True):
    """The reply of ``grace``: until when nobody is called; 0 when people are."""

    status: str
    restoring_until_ms: int = 0


class FrontOutcome(StrEnum):
    """What ``front`` did for an invited visitor."""

    PLACED = "PLACED"
    UNCHANGED = "UNCHANGED"
    TOO_EARLY = "TOO_EARLY"
    SHUT = "SHUT"


class Fronted(msgspec.Struct, array_like=True, frozen=True):
    """The reply of ``front``."""

    status: str
    outcomes: list[FrontOutcome] = []


class RevokedPage(msgspec.Struct, array_like=True, frozen=True):
    """The reply of ``revocations``: the beginnings of ids, and whether another page follows."""

    status: str
    ids: list[str] = []
    more: bool = False
