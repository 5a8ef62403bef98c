"""The draw that anyone can check: held when a lobby shuts, published, verified (SPEC W3, W4)."""

from .beacon import Beacons
from .model import DrawRecord, DrawState, EnterOutcome, Inclusion, Step
from .proofs import EntryProofs
from .publication import ENTRIES_FILE, ORDER_FILE, PARAMETERS_FILE, parameters
from .service import Draws
from .verify import Fault, Finding, PublicFiles, Verdict, claimed_entry, verify, verify_entry

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
    "Inclusion",
    "PublicFiles",
    "Step",
    "Verdict",
    "claimed_entry",
    "parameters",
    "verify",
    "verify_entry",
]
