"""The buyer's side: paying one intent from a browser, with the intent's client secret."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from fairdrop.payments.model import IntentStatus

from . import operations, payment_page
from .cards import CARDS
from .client_secrets import is_client_secret
from .documents import AskStatus, PayAnswer, PayIntent
from .exchange import Answer, json_answer, problem, read_body
from .rules import AttemptKind

if TYPE_CHECKING:
    from .exchange import Call
    from .gateway_state import GatewayState
    from .rules import Attempt

_pay_intent = msgspec.json.Decoder(PayIntent)
_ask_status = msgspec.json.Decoder(AskStatus)

_STATUS_AFTER = {
    AttemptKind.AUTHORIZED: IntentStatus.REQUIRES_CAPTURE,
    AttemptKind.ALREADY_AUTHORIZED: IntentStatus.REQUIRES_CAPTURE,
    AttemptKind.CHARGED: IntentStatus.SUCCEEDED,
    AttemptKind.ALREADY_SUCCEEDED: IntentStatus.SUCCEEDED,
    AttemptKind.PROCESSING: IntentStatus.PROCESSING,
    AttemptKind.ALREADY_PROCESSING: IntentStatus.PROCESSING,
    AttemptKind.DECLINED: IntentStatus.REQUIRES_PAYMENT,
}


class BuyerApi:
    """Handlers of the routes that a buyer's browser calls."""

    def __init__(self, state: GatewayState) -> None:
        """Serve this gateway."""
        self._state = state

    async def pay(self, call: Call) -> Answer:
        """POST /v1/intents/{id}/pay. However often and from however many tabs: one charge."""
        body = read_body(_pay_intent, call)
        if isinstance(body, Answer):
            return body
        intent_id = call.path["intent"]
        if not is_client_secret(self._state.secret_key, intent_id, body.client_secret):
            return _wrong_secret()
        card = CARDS.get(body.card.replace(" ", ""))
        if card is None:
            return problem(422, "unknown_card", "The sandbox takes its own test cards only.")
        attempt = await self._state.record.run(
            partial(
                operations.pay,
                intent_id=intent_id,
                card=card,
                mischief=body.mischief,
                dice=self._state.dice,
            )
        )
        return _pay_answer(attempt)

    async def status(self, call: Call) -> Answer:
        """POST /v1/intents/{id}/status: where the intent stands (POST: secrets stay out of URLs)."""
        body = read_body(_ask_status, call)
        if isinstance(body, Answer):
            return body
        intent_id = call.path["intent"]
        if not is_client_secret(self._state.secret_key, intent_id, body.client_secret):
            return _wrong_secret()
        intent = await self._state.record.run(partial(operations.read_intent, intent_id=intent_id))
        if intent is None:
            return problem(404, "unknown_intent", "There is no such intent.")
        is_open = intent.status is IntentStatus.REQUIRES_PAYMENT
        decline_code = intent.last_decline if is_open else None
        return json_answer(PayAnswer(status=intent.status.value, decline_code=decline_code))

    async def page(self, call: Call) -> Answer:
        """GET /pay/{id}."""
        intent = await self._state.record.run(
            partial(operations.read_intent, intent_id=call.path["intent"])
        )
        return payment_page.render_missing() if intent is None else payment_page.render(intent)

    async def asset(self, call: Call) -> Answer:
        """GET /pay/assets/{name}."""
        answer = payment_page.ASSETS.get(call.path["name"])
        return answer or problem(404, "not_found", "There is nothing at this address.")


def _wrong_secret() -> Answer:
    return problem(403, "wrong_client_secret", "The client secret is not this intent's.")


def _pay_answer(attempt: Attempt | None) -> Answer:
    if attempt is None:
        return problem(404, "unknown_intent", "There is no such intent.")
    status = _STATUS_AFTER.get(attempt.kind)
    if status is None:
        return problem(409, attempt.kind.value, "The shop has cancelled this payment.")
    # What a bank will say later is not told now.
    decline_code = attempt.decline_code if attempt.kind is AttemptKind.DECLINED else None
    return json_answer(PayAnswer(status=status.value, decline_code=decline_code))
