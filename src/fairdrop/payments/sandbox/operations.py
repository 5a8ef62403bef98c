"""What the gateway can do to its books: one plain function an operation.

Each runs inside a transaction of :class:`~.record.Record` and returns a value that names the
outcome; none raises for anything a caller may do. Money moves in two places only,
:func:`_charge` and :func:`create_refund`, and both write the row, the intent and the webhook to
be sent in the one transaction.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import msgspec

from fairdrop.ids import uuid7
from fairdrop.payments.model import CaptureMode, EventKind, IntentStatus

from .cards import Card
from .documents import ChargeDocument, EventData, EventDocument, RefundDocument
from .mischief import NO_MISCHIEF, Dice, Mischief, MischiefDefaults
from .record import Delivery
from .rules import (
    CANCELLATIONS,
    Attempt,
    AttemptKind,
    Cancellation,
    Capture,
    decide_attempt,
    decide_capture,
    may_refund,
    plan_deliveries,
)

if TYPE_CHECKING:
    from .documents import CaptureIntent, CreateIntent, CreateRefund
    from .record import Transaction

_encode = msgspec.json.Encoder().encode
_decode_mischief = msgspec.json.Decoder(Mischief).decode
_decode_defaults = msgspec.json.Decoder(MischiefDefaults).decode


class Refusal(enum.Enum):
    """Why an operation was not done; nothing changed."""

    UNKNOWN_INTENT = "unknown_intent"
    IDEMPOTENCY_KEY_REUSED = "idempotency_key_reused"
    REFERENCE_REUSED = "reference_reused"
    OVER_REFUND = "over_refund"
    NOT_CAPTURABLE = "not_capturable"


class IntentRow(msgspec.Struct, frozen=True):
    """An intent as the books have it, in the order of the statements' columns."""

    id: str
    status: IntentStatus
    amount_minor: int
    currency: str
    reference: str
    return_url: str | None
    amount_received_minor: int
    amount_refunded_minor: int
    last_decline: str | None
    created_ms: int
    capture: CaptureMode


class Made(msgspec.Struct, frozen=True):
    """A document, and whether this call made it (or an earlier one with the same key did)."""

    document: Any
    is_new: bool


def _intent(row: tuple[Any, ...]) -> IntentRow:
    columns = (row[0], IntentStatus(row[1]), *row[2:10], CaptureMode(row[10]))
    return IntentRow(*columns)


def _new_id(prefix: str, now_ms: int) -> str:
    return f"{prefix}_{uuid7(now_ms).hex}"


def create_intent(
    tx: Transaction, request: CreateIntent, key: str, fingerprint: bytes
) -> Made | Refusal:
    """The intent of this idempotency key: a new one, or the one that the key made before."""
    intent_id = _new_id("pi", tx.now_ms)
    cursor = tx.execute(
        "insert_intent",
        (
            intent_id,
            request.amount_minor,
            request.currency,
            request.reference,
            request.return_url,
            key,
            fingerprint,
            tx.now_ms,
            request.capture,
        ),
    )
    if cursor.rowcount == 1:
        new = IntentRow(
            intent_id,
            IntentStatus.REQUIRES_PAYMENT,
            request.amount_minor,
            request.currency,
            request.reference,
            request.return_url,
            0,
            0,
            None,
            tx.now_ms,
            CaptureMode(request.capture),
        )
        return Made(new, is_new=True)
    row = tx.row("intent_by_key", key)
    if row is None or row[11] != fingerprint:
        return Refusal.IDEMPOTENCY_KEY_REUSED
    return Made(_intent(row), is_new=False)


def read_intent(tx: Transaction, intent_id: str) -> IntentRow | None:
    """The intent, None if there is none."""
    row = tx.row("intent_by_id", intent_id)
    return None if row is None else _intent(row)


def find_intents(tx: Transaction, reference: str) -> list[IntentRow]:
    """All intents of a reference (at most 100), newest first."""
    return [_intent(row) for row in tx.execute("intents_by_reference", (reference,))]


def pay(
    tx: Transaction, intent_id: str, card: Card, mischief: Mischief | None, dice: Dice
) -> Attempt | None:
    """Try to take the money, unless it was taken or is being taken already. None: no such intent.

    ``dice`` decide the mischief of an attempt that brings none of its own.
    """
    intent = read_intent(tx, intent_id)
    if intent is None:
        return None
    if intent.status is not IntentStatus.REQUIRES_PAYMENT:
        return decide_attempt(intent.status, card, NO_MISCHIEF)
    chosen = dice.roll() if mischief is None else mischief
    attempt = decide_attempt(intent.status, card, chosen, intent.capture)
    if attempt.kind is AttemptKind.PROCESSING:
        settle_at_ms = tx.now_ms + attempt.processing_ms
        tx.execute(
            "mark_processing",
            {
                "id": intent.id,
                "settle_at_ms": settle_at_ms,
                "settle_decline": attempt.decline_code,
                "settle_mischief": _encode(chosen),
            },
        )
        tx.settlements.append((intent.id, settle_at_ms))
    else:
        _conclude(tx, intent, attempt.decline_code, chosen)
    return attempt


def settle(tx: Transaction, intent_id: str) -> None:
    """End an attempt whose bank has taken its time; nothing to do if it has ended."""
    row = tx.row("processing_intent", intent_id)
    intent = read_intent(tx, intent_id)
    if row is None or intent is None:
        return
    settle_at_ms, decline_code, mischief = row
    if settle_at_ms > tx.now_ms:  # our timer ran ahead of the clock
        tx.settlements.append((intent_id, settle_at_ms))
        return
    _conclude(tx, intent, decline_code, _decode_mischief(mischief))


def processing(tx: Transaction) -> list[tuple[str, int]]:
    """All attempts that have yet to end, as (intent id, when)."""
    return tx.execute("processing_intents").fetchall()


def _conclude(
    tx: Transaction, intent: IntentRow, decline_code: str | None, mischief: Mischief
) -> None:
    if decline_code is None:
        if intent.capture is CaptureMode.MANUAL:
            tx.execute("mark_authorized", (intent.id,))
            _tell(tx, EventKind.AUTHORIZED, _event_data(intent, intent.amount_minor), mischief)
        else:
            _charge(tx, intent, mischief)
        return
    tx.execute("mark_declined", {"id": intent.id, "decline_code": decline_code})
    data = _event_data(intent, intent.amount_minor, decline_code=decline_code)
    _tell(tx, EventKind.FAILED, data, mischief)


def _charge(tx: Transaction, intent: IntentRow, mischief: Mischief) -> None:
    charge_id = _new_id("ch", tx.now_ms)
    tx.execute(
        "insert_charge",
        (
            charge_id,
            intent.id,
            intent.reference,
            intent.amount_minor,
            intent.currency,
            tx.now_ms,
        ),
    )
    tx.execute("mark_succeeded", (intent.id,))
    data = _event_data(intent, intent.amount_minor, charge=charge_id)
    _tell(tx, EventKind.SUCCEEDED, data, mischief)


def capture(
    tx: Transaction, intent_id: str, request: CaptureIntent, dice: Dice
) -> IntentRow | Refusal:
    """Take the money that was set aside; taking it again takes nothing more."""
    intent = read_intent(tx, intent_id)
    if intent is None:
        return Refusal.UNKNOWN_INTENT
    decision = decide_capture(intent.status, intent.amount_minor, request.amount_minor)
    if decision is Capture.REFUSED:
        return Refusal.NOT_CAPTURABLE
    if decision is Capture.CAPTURES:
        _charge(tx, intent, dice.roll())
        intent = read_intent(tx, intent_id) or intent
    return intent


def cancel(tx: Transaction, intent_id: str, dice: Dice) -> tuple[Cancellation, IntentRow] | None:
    """Close an open intent for good; what was set aside is free again.

    The row is as it stands afterwards; None: no such intent.
    """
    intent = read_intent(tx, intent_id)
    if intent is None:
        return None
    decision = CANCELLATIONS[intent.status]
    if decision is Cancellation.CANCELS:
        tx.execute("mark_canceled", (intent.id,))
        _tell(tx, EventKind.CANCELED, _event_data(intent, intent.amount_minor), dice.roll())
        intent = msgspec.structs.replace(intent, status=IntentStatus.CANCELED)
    return decision, intent


def create_refund(
    tx: Transaction, intent_id: str, request: CreateRefund, key: str, dice: Dice
) -> Made | Refusal:
    """Give money back, once for each idempotency key and each refund reference of the intent."""
    asked = (intent_id, request.reference, request.amount_minor)
    earlier = tx.row("refund_by_key", key)
    if earlier is not None:
        same = (earlier[2], earlier[3], earlier[4]) == asked
        return Made(_refund(earlier), is_new=False) if same else Refusal.IDEMPOTENCY_KEY_REUSED
    intent = read_intent(tx, intent_id)
    if intent is None:
        return Refusal.UNKNOWN_INTENT
    earlier = tx.row("refund_by_reference", intent_id, request.reference)
    if earlier is not None:
        same = earlier[4] == request.amount_minor
        return Made(_refund(earlier), is_new=False) if same else Refusal.REFERENCE_REUSED
    if not may_refund(
        intent.amount_received_minor, intent.amount_refunded_minor, request.amount_minor
    ):
        return Refusal.OVER_REFUND
    refund = RefundDocument(
        id=_new_id("re", tx.now_ms),
        intent=intent.id,
        reference=request.reference,
        amount_minor=request.amount_minor,
        currency=intent.currency,
        created_ms=tx.now_ms,
    )
    row = {**msgspec.structs.asdict(refund), "idempotency_key": key}
    del row["status"]
    tx.execute("insert_refund", row)
    tx.execute("add_refunded", {"id": intent.id, "amount_minor": refund.amount_minor})
    data = _event_data(
        intent, refund.amount_minor, refund=refund.id, refund_reference=refund.reference
    )
    _tell(tx, EventKind.REFUND_SUCCEEDED, data, dice.roll())
    return Made(refund, is_new=True)


def _refund(row: tuple[Any, ...]) -> RefundDocument:
    _, refund_id, intent, reference, amount_minor, currency, created_ms = row
    return RefundDocument(
        id=refund_id,
        intent=intent,
        reference=reference,
        amount_minor=amount_minor,
        currency=currency,
        created_ms=created_ms,
    )


def _numbered_charge(row: tuple[Any, ...]) -> tuple[int, ChargeDocument]:
    seq, charge_id, intent, reference, amount_minor, currency, created_ms = row
    return seq, ChargeDocument(
        id=charge_id,
        intent=intent,
        reference=reference,
        amount_minor=amount_minor,
        currency=currency,
        created_ms=created_ms,
    )


def read_charges(tx: Transaction, after: int, limit: int) -> list[tuple[int, ChargeDocument]]:
    """Up to ``limit`` charges with a number above ``after``, in commit order."""
    return [_numbered_charge(row) for row in tx.execute("charges_after", (after, limit))]


def read_refunds(tx: Transaction, after: int, limit: int) -> list[tuple[int, RefundDocument]]:
    """Up to ``limit`` refunds with a number above ``after``, in commit order."""
    return [(row[0], _refund(row)) for row in tx.execute("refunds_after", (after, limit))]


def _event_data(intent: IntentRow, amount_minor: int, **more: str) -> EventData:
    return EventData(
        intent=intent.id,
        reference=intent.reference,
        amount_minor=amount_minor,
        currency=intent.currency,
        **more,
    )


def _tell(tx: Transaction, kind: EventKind, data: EventData, mischief: Mischief) -> None:
    """Write the event's deliveries. A dropped one leaves no trace: that is what dropping means."""
    event_id = _new_id("evt", tx.now_ms)
    body = _encode(EventDocument(id=event_id, type=kind.value, created_ms=tx.now_ms, data=data))
    copies = plan_deliveries(mischief, tx.now_ms)
    tx.dropped += not copies
    tx.copies += max(0, len(copies) - 1)
    first_seq = None
    for due_ms, held in copies:
        cursor = tx.execute(
            "insert_delivery",
            (event_id, data.intent, body, tx.now_ms, due_ms, held),
        )
        seq = cursor.lastrowid
        if seq is None:
            raise AssertionError("an inserted row has a number")
        first_seq = first_seq or seq
        tx.deliveries.append(Delivery(seq, event_id, body, tx.now_ms, due_ms))
    if first_seq is not None:
        tx.execute("stand_behind", (first_seq, data.intent, event_id))


def accept_deliveries(tx: Transaction, seqs: list[int]) -> None:
    """Strike accepted deliveries off, and let go what stood behind them."""
    if seqs:
        numbers = str(seqs)
        tx.execute("delete_deliveries", (numbers,))
        tx.released += tx.execute("release_behind", (tx.now_ms, numbers)).rowcount


def postpone_deliveries(tx: Transaction, postponed: list[tuple[int, int, int]]) -> None:
    """Put deliveries off that were not accepted: (seq, attempts so far, next due)."""
    for seq, attempts, due_ms in postponed:
        tx.execute("postpone_delivery", {"seq": seq, "attempts": attempts, "due_ms": due_ms})


def due_deliveries(tx: Transaction, limit: int) -> tuple[list[Delivery], int | None]:
    """What may be sent now, and when the first of the others may be."""
    due = [Delivery(*row) for row in tx.execute("due_deliveries", (tx.now_ms, limit))]
    later = tx.row("next_due", tx.now_ms)
    return due, later[0] if later else None


def count_deliveries(tx: Transaction) -> int:
    """How many webhooks have not been accepted."""
    row = tx.row("count_deliveries")
    return int(row[0]) if row else 0


def read_mischief(tx: Transaction) -> MischiefDefaults:
    """The gateway-wide mischief as last set, none if it never was."""
    row = tx.row("read_mischief")
    return MischiefDefaults() if row is None else _decode_defaults(row[0])


def write_mischief(tx: Transaction, defaults: MischiefDefaults) -> None:
    """Set the gateway-wide mischief."""
    tx.execute("write_mischief", (_encode(defaults),))
