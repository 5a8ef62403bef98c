"""The draw that anyone can check: held when a lobby shuts, published, verified (SPEC W3, W4)."""

from .beacon import Beacons
from .model import DrawRecord, DrawState, EnterOutcome, Step
from .proofs import EntryProofs
from .publication import ENTRIES_FILE, ORDER_FILE, PARAMETERS_FILE, parameters
from .service import Draws
from .verify import Fault, Finding, PublicFiles, Verdict, verify

__all__ = [
    "ENTRIES_FILE",
    "ORDER_FILE",
    "PARAMETERS_FILE",
    "Beacons",
    "DrawRecord",
    "DrawState",
    "Draws",
    "EnterOutcome",
    "EntryProofs",
    "Fault",
    "Finding",
    "PublicFiles",
    "Step",
    "Verdict",
    "parameters",
    "verify",
]
