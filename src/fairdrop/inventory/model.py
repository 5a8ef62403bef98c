"""What the inventory says: outcomes of its scripts, holds, and the live figures."""

from __future__ import annotations

from enum import StrEnum

import msgspec

Lines = list[tuple[str, list[int]]]
"""Units as (variant, serial numbers)."""


class ReserveOutcome(StrEnum):
    """Every answer to a reservation; those after ALREADY_RESERVED took nothing."""

    RESERVED = "RESERVED"
    REPLAYED = "REPLAYED"
    ALREADY_RESERVED = "ALREADY_RESERVED"
    SOLD_OUT = "SOLD_OUT"
    BUYER_LIMIT = "BUYER_LIMIT"
    ORDER_LIMIT = "ORDER_LIMIT"
    PERSON_LIMIT = "PERSON_LIMIT"
    UNKNOWN_VARIANT = "UNKNOWN_VARIANT"
    NOT_ADMITTED = "NOT_ADMITTED"
    OTHER_ADMISSION = "OTHER_ADMISSION"
    SALE_CLOSED = "SALE_CLOSED"
    KEY_REUSED = "KEY_REUSED"


class Reservation(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The answer to one reservation; ``hold``, ``deadline_ms`` and ``lines`` when units are held."""

    outcome: ReserveOutcome
    hold: str | bool = False
    deadline_ms: int = 0
    lines: Lines = []
    detail: str = ""


class Reserved(msgspec.Struct, array_like=True, frozen=True):
    """The reply of ``reserve``."""

    status: str
    outcomes: list[Reservation] = []


class ReserveRequest(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One item of ``reserve``: ``lines`` alternates variants and quantities.

    ``verified`` are marks of a phone or payment method (:class:`VerifiedMarks`).
    """

    buyer: str
    admission: str | None
    hold: str
    key: str
    fingerprint: str
    lines: list[str | int]
    verified: list[str] = []


class ChangeOutcome(StrEnum):
    """Every answer to a change of quantities; those after RELEASED changed nothing."""

    CHANGED = "CHANGED"
    RELEASED = "RELEASED"
    NOTHING_HELD = "NOTHING_HELD"
    EXPIRED = "EXPIRED"
    ORDER_STARTED = "ORDER_STARTED"
    SOLD_OUT = "SOLD_OUT"
    BUYER_LIMIT = "BUYER_LIMIT"
    ORDER_LIMIT = "ORDER_LIMIT"
    UNKNOWN_VARIANT = "UNKNOWN_VARIANT"
    NOT_ADMITTED = "NOT_ADMITTED"
    SALE_CLOSED = "SALE_CLOSED"
    KEY_REUSED = "KEY_REUSED"


class Change(msgspec.Struct, array_like=True, frozen=True):
    """The answer to one change: the hold's lines now, and how many units are free again."""

    outcome: ChangeOutcome
    deadline_ms: int = 0
    lines: Lines = []
    units: int = 0
    detail: str = ""


class Changed(msgspec.Struct, array_like=True, frozen=True):
    """The reply of ``change``."""

    status: str
    outcomes: list[Change] = []


class ChangeRequest(msgspec.Struct, array_like=True, frozen=True):
    """One item of ``change``: ``lines`` alternates variants and quantities.

    A quantity of 0 or more is what the hold shall have; one below 0 gives so many units back.
    Without a ``key`` (``""``) no answer is kept.
    """

    buyer: str
    hold: str
    key: str
    fingerprint: str
    lines: list[str | int]


class StartOutcome(StrEnum):
    """Every answer to handing a hold over to its order."""

    STARTED = "STARTED"
    NO_HOLD = "NO_HOLD"
    EXPIRED = "EXPIRED"
    PERSON_LIMIT = "PERSON_LIMIT"


class Start(msgspec.Struct, array_like=True, frozen=True):
    """The answer to one start; the hold's content when it started."""

    outcome: StartOutcome
    deadline_ms: int = 0
    admission: str | bool = False
    lines: Lines = []
    verified: list[str] = []


class Started(msgspec.Struct, array_like=True, frozen=True):
    """The reply of ``start``."""

    status: str
    outcomes: list[Start] = []


class ReleaseOutcome(StrEnum):
    """Every answer to a release."""

    RELEASED = "RELEASED"
    NOTHING_HELD = "NOTHING_HELD"
    ORDER_STARTED = "ORDER_STARTED"


class Release(msgspec.Struct, array_like=True, frozen=True):
    """The answer to one release: how many units are free again."""

    outcome: ReleaseOutcome
    units: int = 0


class Released(msgspec.Struct, array_like=True, frozen=True):
    """The reply of ``release``."""

    status: str
    outcomes: list[Release] = []


class CommitOutcome(StrEnum):
    """Every answer to a commit."""

    COMMITTED = "COMMITTED"
    NOTHING_HELD = "NOTHING_HELD"


class Committed(msgspec.Struct, array_like=True, frozen=True):
    """The reply of ``commit``."""

    status: str
    outcomes: list[CommitOutcome] = []


class ExtendOutcome(StrEnum):
    """Every answer to an extension."""

    EXTENDED = "EXTENDED"
    NO_HOLD = "NO_HOLD"


class Extended(msgspec.Struct, array_like=True, frozen=True):
    """The reply of ``extend``."""

    status: str
    outcomes: list[ExtendOutcome] = []


class Expired(msgspec.Struct, array_like=True, frozen=True):
    """The reply of ``expire``: what was released, and the holds whose orders must decide."""

    status: str
    holds: int = 0
    units: int = 0
    undecided: list[tuple[str, str]] = []
    more: bool = False


class Loaded(msgspec.Struct, array_like=True, frozen=True):
    """The reply of ``load``: LOADED, UPDATED or CURRENT, and the store's version."""

    status: str
    version: int = 0


class Reduced(msgspec.Struct, array_like=True, frozen=True):
    """The reply of ``reduce``: REDUCED, TOO_FEW_FREE, UNKNOWN_VARIANT or KEY_REUSED."""

    status: str
    free: int = 0
    retired: list[int] = []


class GivenBack(msgspec.Struct, array_like=True, frozen=True):
    """Units that were sold are free again: RETURNED now, or RETURNED_BEFORE."""

    status: str
    units: int = 0


class VariantFigures(msgspec.Struct, array_like=True, frozen=True):
    """Live stock of one variant: ``free + buffer + held + sold = quantity``, always.

    ``free`` can be sold; ``buffer`` is free too, and stays unsold (H9).
    """

    quantity: int
    free: int
    held: int
    sold: int
    buffer: int = 0


class Pace(msgspec.Struct, array_like=True, frozen=True):
    """How the line moves. ``outflow_milli`` is -1 before it was measured, ``line_cap`` without one."""

    pace_milli: int = 0
    outflow_milli: int = -1
    outlook: str = ""
    line_cap: int = -1
    restoring_until_ms: int = 0
    restored: int = 0
    restored_inside: int = 0
    steps_up: int = 0
    steps_down: int = 0
    steps_kept: int = 0
    step_reason: str = ""
    lost_tail: int = 0


class Figures(msgspec.Struct, array_like=True, frozen=True):
    """The live figures of a sale; variants in the order asked."""

    status: str
    now_ms: int = 0
    mode: str = "scheduled"
    served: int = 0
    tail: int = 0
    waiting: int = 0
    called: int = 0
    active: int = 0
    missed: int = 0
    joined: int = 0
    left: int = 0
    done: int = 0
    rate_milli: int = 0
    measured_milli: int = 0
    holds: int = 0
    version: int = 0
    variants: list[VariantFigures] = []
    admitted: int = 0
    lobby: int = 0
    pace: Pace = Pace()


class VariantLoad(msgspec.Struct, array_like=True, frozen=True):
    """A variant as ``load`` takes it."""

    variant: str
    quantity: int
    last_serial: int
    next_serial: int = 1
    sold: int = 0
    returned: list[int] = []


class HoldLoad(msgspec.Struct, array_like=True, frozen=True):
    """A hold as ``load`` restores it: always in the checkout phase, since its order exists."""

    hold: str
    buyer: str
    admission: str | bool
    deadline_ms: int
    lines: Lines
    verified: list[str] = []
