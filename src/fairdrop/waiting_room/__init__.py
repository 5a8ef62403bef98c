"""The waiting room: one line a sale, its pace, and the proof of being admitted (SPEC W)."""

from .buyers import ApiKeys
from .completions import Completions
from .completions import Conflict as CompletionConflict
from .completions import Outcome as CompletionOutcome
from .model import REVOKED_CHARS, Filled, LeaveOutcome, Line, Mode, Place, Standing, State, Ticked
from .receipts import EntryReceipt, PositionReceipt, Receipt, Receipts
from .rules import poll_after_ms, wait_range_s
from .service import FILL_LIMIT, WaitingRoom
from .signing_keys import (
    Admission,
    Algorithm,
    KeyRing,
    kid_of,
    new_signing_key,
    read_keys,
    signing_at,
    split_keys,
)
from .tokens import AdmissionTokens, Refusal, VisitorTokens

__all__ = [
    "FILL_LIMIT",
    "REVOKED_CHARS",
    "Admission",
    "AdmissionTokens",
    "Algorithm",
    "ApiKeys",
    "CompletionConflict",
    "CompletionOutcome",
    "Completions",
    "EntryReceipt",
    "Filled",
    "KeyRing",
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
    "kid_of",
    "new_signing_key",
    "poll_after_ms",
    "read_keys",
    "signing_at",
    "split_keys",
    "wait_range_s",
]
