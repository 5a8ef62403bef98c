"""The merchant's side: server to server, with the secret key."""

from __future__ import annotations

import hashlib
import hmac
from functools import partial, wraps
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from fairdrop import money

from . import operations
from .client_secrets import client_secret
from .documents import (
    MAX_PAGE,
    CaptureIntent,
    CreateIntent,
    CreateRefund,
    IntentDocument,
    IntentList,
    RecordPage,
)
from .exchange import Answer, json_answer, problem, read_body, read_idempotency_key
from .mischief import Dice, MischiefDefaults
from .operations import Refusal
from .rules import Cancellation

if TYPE_CHECKING:
    from collections.abc import Callable

    from .documents import ChargeDocument, RefundDocument
    from .exchange import Call, Handler
    from .gateway_state import GatewayState
    from .operations import IntentRow
    from .record import Transaction

_create_intent = msgspec.json.Decoder(CreateIntent)
_capture_intent = msgspec.json.Decoder(CaptureIntent)
_create_refund = msgspec.json.Decoder(CreateRefund)
_defaults = msgspec.json.Decoder(MischiefDefaults)
_encode = msgspec.json.Encoder().encode

_REFUSALS = {
    Refusal.UNKNOWN_INTENT: (404, "There is no such intent."),
    Refusal.IDEMPOTENCY_KEY_REUSED: (422, "This Idempotency-Key came with another request before."),
    Refusal.REFERENCE_REUSED: (422, "This refund reference was used for another amount before."),
    Refusal.NOT_CAPTURABLE: (409, "Nothing of this amount is set aside."),
    Refusal.OVER_REFUND: (422, "All refunds together would exceed what was received."),
}
_CANCELLATION_REFUSALS = {
    Cancellation.REFUSED_SUCCEEDED: "The money was taken; refund it instead.",
    Cancellation.REFUSED_PROCESSING: "The bank has yet to decide; ask again later.",
}
_MAX_CURSOR_DIGITS = 18
_DEFAULT_PAGE = 100


def refused(refusal: Refusal) -> Answer:
    """The problem document of a refusal."""
    status, detail = _REFUSALS[refusal]
    return problem(status, refusal.value, detail)


def is_return_url(url: str) -> bool:
    """Whether a browser may be sent there: an absolute http(s) address without credentials."""
    if not url.isprintable() or " " in url or "\\" in url:
        return False
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port  # raises ValueError if it is none
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(host) and "@" not in parts.netloc


class MerchantApi:
    """Handlers of the routes that need the secret key."""

    def __init__(self, state: GatewayState) -> None:
        """Serve this gateway."""
        self._state = state

    def guarded(self, handler: Handler) -> Handler:
        """The handler, for holders of the secret key only (compared in constant time)."""
        expected = b"Bearer " + self._state.secret_key

        @wraps(handler)
        async def guard(call: Call) -> Answer:
            offered = call.header(b"authorization").encode("latin-1")
            if not hmac.compare_digest(expected, offered):
                answer = problem(401, "unauthorized", "Send the secret key as a bearer token.")
                headers = (*answer.headers, (b"www-authenticate", b"Bearer"))
                return msgspec.structs.replace(answer, headers=headers)
            return await handler(call)

        return guard

    async def create_intent(self, call: Call) -> Answer:
        """POST /v1/intents."""
        key = read_idempotency_key(call)
        if isinstance(key, Answer):
            return key
        body = read_body(_create_intent, call)
        if isinstance(body, Answer):
            return body
        if not money.is_currency(body.currency):
            return problem(422, "invalid_currency", "A currency is three capital letters.")
        if body.return_url is not None and not is_return_url(body.return_url):
            return problem(
                422, "invalid_return_url", "A return_url is an absolute http(s) address."
            )
        # Of the decoded request, so that the order of fields and spaces do not count.
        fingerprint = hashlib.sha256(_encode(body)).digest()
        made = await self._state.record.run(
            partial(operations.create_intent, request=body, key=key, fingerprint=fingerprint)
        )
        if isinstance(made, Refusal):
            return refused(made)
        return json_answer(self._document(made.document), 201 if made.is_new else 200)

    async def get_intent(self, call: Call) -> Answer:
        """GET /v1/intents/{id}."""
        intent = await self._state.record.run(
            partial(operations.read_intent, intent_id=call.path["intent"])
        )
        if intent is None:
            return refused(Refusal.UNKNOWN_INTENT)
        return json_answer(self._document(intent))

    async def find_intents(self, call: Call) -> Answer:
        """GET /v1/intents?reference=."""
        reference = call.query().get("reference")
        if not reference:
            return problem(400, "reference_required", "Say which reference to look for.")
        intents = await self._state.record.run(
            partial(operations.find_intents, reference=reference)
        )
        return json_answer(IntentList([self._document(intent) for intent in intents]))

    async def cancel_intent(self, call: Call) -> Answer:
        """POST /v1/intents/{id}/cancel. Idempotent by nature: it needs no key and ignores one."""
        result = await self._state.record.run(
            partial(operations.cancel, intent_id=call.path["intent"], dice=self._state.dice)
        )
        if result is None:
            return refused(Refusal.UNKNOWN_INTENT)
        decision, intent = result
        detail = _CANCELLATION_REFUSALS.get(decision)
        if detail is not None:
            return problem(409, decision.value, detail)
        return json_answer(self._document(intent))

    async def capture_intent(self, call: Call) -> Answer:
        """POST /v1/intents/{id}/capture. Idempotent by nature: it needs no key and ignores one."""
        body = read_body(_capture_intent, call)
        if isinstance(body, Answer):
            return body
        captured = await self._state.record.run(
            partial(
                operations.capture,
                intent_id=call.path["intent"],
                request=body,
                dice=self._state.dice,
            )
        )
        if isinstance(captured, Refusal):
            return refused(captured)
        return json_answer(self._document(captured))

    async def create_refund(self, call: Call) -> Answer:
        """POST /v1/intents/{id}/refunds."""
        key = read_idempotency_key(call)
        if isinstance(key, Answer):
            return key
        body = read_body(_create_refund, call)
        if isinstance(body, Answer):
            return body
        made = await self._state.record.run(
            partial(
                operations.create_refund,
                intent_id=call.path["intent"],
                request=body,
                key=key,
                dice=self._state.dice,
            )
        )
        if isinstance(made, Refusal):
            return refused(made)
        return json_answer(made.document, 201 if made.is_new else 200)

    async def list_charges(self, call: Call) -> Answer:
        """GET /v1/charges?after=&limit=."""
        return await self._page(call, operations.read_charges)

    async def list_refunds(self, call: Call) -> Answer:
        """GET /v1/refunds?after=&limit=."""
        return await self._page(call, operations.read_refunds)

    async def _page(
        self,
        call: Call,
        read: Callable[[Transaction, int, int], list[tuple[int, ChargeDocument]]]
        | Callable[[Transaction, int, int], list[tuple[int, RefundDocument]]],
    ) -> Answer:
        query = call.query()
        after = query.get("after") or "0"
        limit = query.get("limit") or str(_DEFAULT_PAGE)
        if not (after.isascii() and after.isdigit() and len(after) <= _MAX_CURSOR_DIGITS):
            return problem(400, "invalid_cursor", "A cursor is what an earlier page called next.")
        if not (limit.isascii() and limit.isdigit() and 1 <= int(limit[:9]) <= MAX_PAGE):
            return problem(400, "invalid_limit", f"A limit is a number from 1 to {MAX_PAGE}.")
        start, size = int(after), int(limit)
        # One more than asked for tells whether there is a next page.
        rows = await self._state.record.run(lambda tx: read(tx, start, size + 1))
        shown = rows[:size]
        last = str(shown[-1][0]) if shown else (after if start else None)
        page = RecordPage(
            data=[document for _, document in shown],  # type: ignore[arg-type] # all of one kind
            next=last if len(rows) > size else None,
            last=last,
        )
        return json_answer(page)

    async def get_mischief(self, _call: Call) -> Answer:
        """GET /v1/mischief."""
        return json_answer(self._state.dice.defaults)

    async def put_mischief(self, call: Call) -> Answer:
        """PUT /v1/mischief: replaces all of it, and starts the seed's sequence anew."""
        body = read_body(_defaults, call)
        if isinstance(body, Answer):
            return body
        await self._state.record.run(partial(operations.write_mischief, defaults=body))
        self._state.dice = Dice(body)
        return json_answer(body)

    async def get_deliveries(self, _call: Call) -> Answer:
        """GET /v1/deliveries: figures of the webhooks."""
        return json_answer(await self._state.sender.figures())

    def _document(self, intent: IntentRow) -> IntentDocument:
        secret = client_secret(self._state.secret_key, intent.id)
        return IntentDocument(
            id=intent.id,
            status=intent.status.value,
            amount_minor=intent.amount_minor,
            currency=intent.currency,
            reference=intent.reference,
            client_secret=secret,
            pay_url=f"{self._state.public_url}/pay/{intent.id}#{secret}",
            amount_received_minor=intent.amount_received_minor,
            amount_refunded_minor=intent.amount_refunded_minor,
            last_decline=intent.last_decline,
            created_ms=intent.created_ms,
        )
