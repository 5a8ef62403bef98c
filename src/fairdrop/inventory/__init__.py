"""The inventory: concrete units, held for a buyer until a deadline, never sold twice (SPEC H)."""

from .model import (
    CommitOutcome,
    Expired,
    ExtendOutcome,
    Figures,
    HoldLoad,
    Lines,
    Loaded,
    Reduced,
    Release,
    ReleaseOutcome,
    Reservation,
    ReserveOutcome,
    ReserveRequest,
    Start,
    StartOutcome,
    VariantFigures,
    VariantLoad,
)
from .service import Inventory, fingerprint

__all__ = [
    "CommitOutcome",
    "Expired",
    "ExtendOutcome",
    "Figures",
    "HoldLoad",
    "Inventory",
    "Lines",
    "Loaded",
    "Reduced",
    "Release",
    "ReleaseOutcome",
    "Reservation",
    "ReserveOutcome",
    "ReserveRequest",
    "Start",
    "StartOutcome",
    "VariantFigures",
    "VariantLoad",
    "fingerprint",
]
