"""A gateway whose answers the test decides, for what a real process cannot be made to do on cue.

It keeps the protocol's promises (one intent a key, refunds bounded by what came in) and has two
switches: fail before an effect, or after it, as a broken connection does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from fairdrop.ids import new_id
from fairdrop.payments import (
    CaptureMode,
    EventKind,
    GatewayCharge,
    GatewayEvent,
    GatewayRefund,
    GatewayRefused,
    GatewayUnavailable,
    Intent,
    IntentStatus,
    Page,
    PaymentRequest,
    WebhookRefusal,
)


@dataclass
class ScriptedGateway:
    """Intents in memory; events are handed to the test, which delivers them as it likes."""

    name: str = field(default_factory=lambda: f"scripted-{new_id()}")
    """One of its own, so that no reconciler of another test's parts asks it."""
    break_before: set[str] = field(default_factory=set)
    """Calls (``create``, ``refund``, ...) that fail without any effect."""
    break_after: set[str] = field(default_factory=set)
    """Calls that take effect, and whose answer never arrives."""
    refuse: dict[str, str] = field(default_factory=dict)
    """Calls that are refused, with the code."""
    calls: Counter[str] = field(default_factory=Counter)
    intents: dict[str, Intent] = field(default_factory=dict)
    by_key: dict[str, str] = field(default_factory=dict)
    keys_of_refunds: dict[str, GatewayRefund] = field(default_factory=dict)
    captures: dict[str, CaptureMode] = field(default_factory=dict)
    taken: list[GatewayCharge] = field(default_factory=list)

    # ------------------------------------------------------------ what the shop calls

    async def create(self, request: PaymentRequest) -> Intent:
        with _Call(self, "create"):
            if request.idempotency_key not in self.by_key:
                intent_id = f"pi_{new_id()}"
                self.by_key[request.idempotency_key] = intent_id
                self.captures[intent_id] = request.capture
                self.intents[intent_id] = Intent(
                    id=intent_id,
                    status=IntentStatus.REQUIRES_PAYMENT,
                    amount_minor=request.amount_minor,
                    currency=request.currency,
                    reference=request.reference,
                    client_secret="secret",
                    pay_url=f"https://gateway.example/pay/{intent_id}",
                    amount_received_minor=0,
                    amount_refunded_minor=0,
                    last_decline=None,
                    created_ms=0,
                )
            intent = self.intents[self.by_key[request.idempotency_key]]
            assert (intent.amount_minor, intent.currency) == (
                request.amount_minor,
                request.currency,
            ), "one key, two requests"
            return intent

    async def find(self, reference: str) -> Intent | None:
        with _Call(self, "find"):
            for intent in self.intents.values():
                if intent.reference == reference:
                    return intent
            return None

    async def fetch(self, intent_id: str) -> Intent:
        with _Call(self, "fetch"):
            if intent_id not in self.intents:
                raise GatewayRefused(404, "unknown_intent")
            return self.intents[intent_id]

    async def cancel(self, intent_id: str) -> Intent:
        with _Call(self, "cancel"):
            if self.intents[intent_id].status is IntentStatus.SUCCEEDED:
                raise GatewayRefused(409, "intent_succeeded")
            return self._change(intent_id, status=IntentStatus.CANCELED)

    async def capture(self, intent_id: str, amount_minor: int) -> Intent:
        with _Call(self, "capture"):
            intent = self.intents[intent_id]
            if (
                intent.status is IntentStatus.REQUIRES_CAPTURE
                and amount_minor == intent.amount_minor
            ):
                self.take_money(intent.reference)
            elif intent.amount_received_minor != amount_minor:
                raise GatewayRefused(409, "not_capturable")
            return self.intents[intent_id]

    async def refund(self, intent_id: str, amount_minor: int, refund_id: str) -> GatewayRefund:
        with _Call(self, "refund"):
            if refund_id not in self.keys_of_refunds:
                intent = self.intents[intent_id]
                back = intent.amount_refunded_minor + amount_minor
                if back > intent.amount_received_minor:
                    raise GatewayRefused(422, "over_refund")
                self._change(intent_id, amount_refunded_minor=back)
                self.keys_of_refunds[refund_id] = GatewayRefund(
                    id=f"re_{refund_id}",
                    status="succeeded",
                    intent=intent_id,
                    reference=refund_id,
                    amount_minor=amount_minor,
                    currency=intent.currency,
                    created_ms=0,
                )
            return self.keys_of_refunds[refund_id]

    async def charges(self, after: str | None = None, limit: int = 100) -> Page[GatewayCharge]:
        return Page(data=tuple(self.taken), next=None, last=None)

    async def refunds(self, after: str | None = None, limit: int = 100) -> Page[GatewayRefund]:
        return Page(data=tuple(self.keys_of_refunds.values()), next=None, last=None)

    def verify_webhook(
        self, headers: Mapping[str, str], body: bytes, now_s: int
    ) -> GatewayEvent | WebhookRefusal:
        raise NotImplementedError

    # ------------------------------------------------------------ what the buyer and the bank do

    def intent_of(self, order: str) -> Intent:
        """The one intent of an order."""
        found = [intent for intent in self.intents.values() if intent.reference == order]
        assert len(found) == 1, f"{len(found)} intents of one order"
        return found[0]

    def take_money(
        self, order: str, amount_minor: int | None = None, currency: str | None = None
    ) -> GatewayEvent:
        """The buyer pays; the event that tells of it. Taking it again takes nothing more."""
        intent = self.intent_of(order)
        assert intent.status is not IntentStatus.CANCELED, "a cancelled intent is never paid"
        amount = intent.amount_minor if amount_minor is None else amount_minor
        if intent.status is not IntentStatus.SUCCEEDED:
            intent = self._change(
                intent.id,
                status=IntentStatus.SUCCEEDED,
                amount_received_minor=amount,
                currency=currency or intent.currency,
            )
            self.taken.append(
                GatewayCharge(
                    id=f"ch_{intent.id}",
                    intent=intent.id,
                    reference=order,
                    amount_minor=amount,
                    currency=intent.currency,
                    created_ms=0,
                )
            )
        return event_of(intent, EventKind.SUCCEEDED, amount_minor=intent.amount_received_minor)

    def set_aside(self, order: str, amount_minor: int | None = None) -> GatewayEvent:
        """The buyer agrees, of a sale with manual capture; the event that tells of it."""
        intent = self.intent_of(order)
        assert self.captures[intent.id] is CaptureMode.MANUAL
        if intent.status is IntentStatus.REQUIRES_PAYMENT:
            intent = self._change(intent.id, status=IntentStatus.REQUIRES_CAPTURE)
        return event_of(intent, EventKind.AUTHORIZED, amount_minor=amount_minor)

    def decline(self, order: str, code: str = "card_declined") -> GatewayEvent:
        """The buyer's card is declined; the intent stays open."""
        return event_of(self.intent_of(order), EventKind.FAILED, decline_code=code)

    def refund_events(self, order: str) -> list[GatewayEvent]:
        """What tells of every refund of the order that was carried out."""
        return [
            event_of(
                self.intents[refund.intent],
                EventKind.REFUND_SUCCEEDED,
                amount_minor=refund.amount_minor,
                refund_id=refund.id,
                refund_reference=refund.reference,
            )
            for refund in self.keys_of_refunds.values()
            if self.intents[refund.intent].reference == order
        ]

    def _change(
        self,
        intent_id: str,
        *,
        status: IntentStatus | None = None,
        amount_received_minor: int | None = None,
        amount_refunded_minor: int | None = None,
        currency: str | None = None,
    ) -> Intent:
        old = self.intents[intent_id]
        self.intents[intent_id] = new = msgspec.structs.replace(
            old,
            status=status or old.status,
            currency=currency or old.currency,
            amount_received_minor=old.amount_received_minor
            if amount_received_minor is None
            else amount_received_minor,
            amount_refunded_minor=old.amount_refunded_minor
            if amount_refunded_minor is None
            else amount_refunded_minor,
        )
        return new


def event_of(
    intent: Intent,
    kind: EventKind,
    *,
    id: str | None = None,  # noqa: A002 - the event's field
    amount_minor: int | None = None,
    currency: str | None = None,
    decline_code: str | None = None,
    refund_id: str | None = None,
    refund_reference: str | None = None,
) -> GatewayEvent:
    """A fresh event about an intent; two of them are two events that may say the same."""
    return GatewayEvent(
        id=id or f"evt_{new_id()}",
        kind=kind,
        created_ms=0,
        intent_id=intent.id,
        reference=intent.reference,
        amount_minor=intent.amount_minor if amount_minor is None else amount_minor,
        currency=currency or intent.currency,
        decline_code=decline_code,
        refund_id=refund_id,
        refund_reference=refund_reference,
    )


class _Call:
    """One call: counted, and broken or refused as the test has asked."""

    def __init__(self, gateway: ScriptedGateway, name: str) -> None:
        self._gateway, self._name = gateway, name

    def __enter__(self) -> None:
        self._gateway.calls[self._name] += 1
        if self._name in self._gateway.break_before:
            raise GatewayUnavailable(f"{self._name}: no connection")
        if self._name in self._gateway.refuse:
            raise GatewayRefused(422, self._gateway.refuse[self._name])

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> Literal[False]:
        if kind is None and self._name in self._gateway.break_after:
            raise GatewayUnavailable(f"{self._name}: the answer never came")
        return False
