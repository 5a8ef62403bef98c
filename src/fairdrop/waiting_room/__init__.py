"""The waiting room: one line a sale, its pace, and the proof of being admitted (SPEC W)."""

from .model import LeaveOutcome, Line, Mode, Place, Standing, State, Ticked
from .receipts import EntryReceipt, PositionReceipt, Receipt, Receipts
from .rules import poll_after_ms, wait_range_s
from .service import WaitingRoom
from .tokens import Admission, AdmissionTokens, Refusal, VisitorTokens, new_signing_key

__all__ = [
    "Admission",
    "AdmissionTokens",
    "EntryReceipt",
    "LeaveOutcome",
    "Line",
    "Mode",
    "Place",
    "PositionReceipt",
    "Receipt",
    "Receipts",
    "Refusal",
    "Standing",
    "State",
    "Ticked",
    "VisitorTokens",
    "WaitingRoom",
    "new_signing_key",
    "poll_after_ms",
    "wait_range_s",
]
