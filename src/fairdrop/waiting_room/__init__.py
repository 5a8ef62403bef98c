"""The waiting room: one line a sale, its pace, and the proof of being admitted (SPEC W)."""

from .buyers import ApiKeys
from .completions import Completions
from .completions import Conflict as CompletionConflict
from .completions import Outcome as CompletionOutcome
from .model import (
    REVOKED_CHARS,
    Called,
    Filled,
    FrontOutcome,
    LeaveOutcome,
    Line,
    Mode,
    Place,
    Presented,
    RestoreOutcome,
    Standing,
    State,
    Ticked,
)
from .outlook import Forecast, Outlook, prospects, read_outlook
from .pacing import Reason, Step
from .receipts import EntryReceipt, PositionReceipt, Receipt, Receipts
from .rules import poll_after_ms, wait_range_s
from .service import CALLED_PAGE, FILL_LIMIT, STATUS_LIMIT, WaitingRoom
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
from .tickets import TICKET_TTL_MS, StreamTickets
from .tokens import AdmissionTokens, Refusal, Visitor, VisitorTokens

__all__ = [
    "CALLED_PAGE",
    "FILL_LIMIT",
    "REVOKED_CHARS",
    "STATUS_LIMIT",
    "TICKET_TTL_MS",
    "Admission",
    "AdmissionTokens",
    "Algorithm",
    "ApiKeys",
    "Called",
    "CompletionConflict",
    "CompletionOutcome",
    "Completions",
    "EntryReceipt",
    "Filled",
    "Forecast",
    "FrontOutcome",
    "KeyRing",
    "LeaveOutcome",
    "Line",
    "Mode",
    "Outlook",
    "Place",
    "PositionReceipt",
    "Presented",
    "Reason",
    "Receipt",
    "Receipts",
    "Refusal",
    "RestoreOutcome",
    "Standing",
    "State",
    "Step",
    "StreamTickets",
    "Ticked",
    "Visitor",
    "VisitorTokens",
    "WaitingRoom",
    "kid_of",
    "new_signing_key",
    "poll_after_ms",
    "prospects",
    "read_keys",
    "read_outlook",
    "signing_at",
    "split_keys",
    "wait_range_s",
]
