"""The sandbox gateway's adapter: the :class:`~.gateway.Gateway` protocol over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar
from urllib.parse import quote

import msgspec

from . import signatures
from .calls import Calls, NoAnswer
from .gateway import GatewayRefused, GatewayUnavailable
from .model import (
    RANK,
    EventKind,
    GatewayCharge,
    GatewayEvent,
    GatewayRefund,
    Intent,
    Page,
    PaymentRequest,
    WebhookRefusal,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

CONNECT_TIMEOUT_S = 1.0
TOTAL_TIMEOUT_S = 5.0

_TOO_MANY_REQUESTS = 429
_CLIENT_ERROR = 400
_SERVER_ERROR = 500

Document = TypeVar("Document")


class _IntentList(msgspec.Struct):
    data: list[Intent]


class _Problem(msgspec.Struct):
    code: str = "unknown"
    detail: str = ""


class _EventData(msgspec.Struct):
    intent: str
    reference: str
    amount_minor: int
    currency: str
    charge: str | None = None
    refund: str | None = None
    refund_reference: str | None = None
    decline_code: str | None = None


class _Event(msgspec.Struct):
    id: str
    type: str
    created_ms: int
    data: _EventData


_intent = msgspec.json.Decoder(Intent)
_intent_list = msgspec.json.Decoder(_IntentList)
_refund = msgspec.json.Decoder(GatewayRefund)
_charge_page = msgspec.json.Decoder(Page[GatewayCharge])
_refund_page = msgspec.json.Decoder(Page[GatewayRefund])
_problem = msgspec.json.Decoder(_Problem)
_event = msgspec.json.Decoder(_Event)
_encode = msgspec.json.Encoder().encode

_VERDICTS = {
    signatures.Verdict.MALFORMED: WebhookRefusal.SIGNATURE_MALFORMED,
    signatures.Verdict.WRONG: WebhookRefusal.SIGNATURE_WRONG,
    signatures.Verdict.STALE: WebhookRefusal.TIMESTAMP_STALE,
}
_KINDS = {kind.value: kind for kind in EventKind}


class SandboxGateway:
    """Talks to one sandbox gateway over connections that stay open.

    Use it as an async context manager, or call :meth:`close`. Each call is one request with a
    limit of 1 s to connect and 5 s in all, and is never repeated here: see :mod:`.gateway`.
    """

    name: Literal["sandbox"] = "sandbox"

    def __init__(
        self,
        base_url: str,
        secret_key: str,
        webhook_secret: str,
        *,
        total_timeout_s: float = TOTAL_TIMEOUT_S,
    ) -> None:
        """Remember where it is and the two secrets; connects at the first call."""
        self._webhook_secret = webhook_secret.encode()
        self._calls = Calls(
            base_url.rstrip("/"),
            {"authorization": f"Bearer {secret_key}", "content-type": "application/json"},
            connect_timeout_s=CONNECT_TIMEOUT_S,
            timeout_s=total_timeout_s,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close what connections rest. A later call opens a new one."""
        self._calls.close()

    async def create(self, request: PaymentRequest) -> Intent:
        """See :meth:`.gateway.Gateway.create`."""
        body = {
            "amount_minor": request.amount_minor,
            "currency": request.currency,
            "reference": request.reference,
            "return_url": request.return_url,
            "capture": request.capture.value,
        }
        return await self._post("/v1/intents", _intent, body, request.idempotency_key)

    async def find(self, reference: str) -> Intent | None:
        """See :meth:`.gateway.Gateway.find`."""
        found = await self._get(f"/v1/intents?reference={quote(reference, safe='')}", _intent_list)
        # The list is newest first, and min() keeps the first of equals.
        return min(found.data, key=lambda intent: RANK[intent.status], default=None)

    async def fetch(self, intent_id: str) -> Intent:
        """See :meth:`.gateway.Gateway.fetch`."""
        return await self._get(f"/v1/intents/{quote(intent_id, safe='')}", _intent)

    async def cancel(self, intent_id: str) -> Intent:
        """See :meth:`.gateway.Gateway.cancel`."""
        path = f"/v1/intents/{quote(intent_id, safe='')}/cancel"
        return await self._post(path, _intent, None, f"cancel-{intent_id}")

    async def capture(self, intent_id: str, amount_minor: int) -> Intent:
        """See :meth:`.gateway.Gateway.capture`. The sandbox captures in full."""
        path = f"/v1/intents/{quote(intent_id, safe='')}/capture"
        body = {"amount_minor": amount_minor}
        return await self._post(path, _intent, body, f"capture-{intent_id}")

    async def refund(self, intent_id: str, amount_minor: int, refund_id: str) -> GatewayRefund:
        """See :meth:`.gateway.Gateway.refund`."""
        path = f"/v1/intents/{quote(intent_id, safe='')}/refunds"
        body = {"amount_minor": amount_minor, "reference": refund_id}
        return await self._post(path, _refund, body, refund_id)

    async def charges(self, after: str | None = None, limit: int = 100) -> Page[GatewayCharge]:
        """See :meth:`.gateway.Gateway.charges`. ``limit`` is 1 to 1,000."""
        return await self._get(_page_path("/v1/charges", after, limit), _charge_page)

    async def refunds(self, after: str | None = None, limit: int = 100) -> Page[GatewayRefund]:
        """See :meth:`.gateway.Gateway.refunds`. ``limit`` is 1 to 1,000."""
        return await self._get(_page_path("/v1/refunds", after, limit), _refund_page)

    def verify_webhook(
        self, headers: Mapping[str, str], body: bytes, now_s: int
    ) -> GatewayEvent | WebhookRefusal:
        """See :meth:`.gateway.Gateway.verify_webhook`."""
        header = _header(headers, signatures.HEADER)
        if header is None:
            return WebhookRefusal.SIGNATURE_MISSING
        verdict = signatures.verify(self._webhook_secret, header, body, now_s)
        if verdict is not signatures.Verdict.VALID:
            return _VERDICTS[verdict]
        try:
            event = _event.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return WebhookRefusal.BODY_MALFORMED
        kind = _KINDS.get(event.type)
        if kind is None:
            return WebhookRefusal.KIND_UNKNOWN
        return GatewayEvent(
            id=event.id,
            kind=kind,
            created_ms=event.created_ms,
            intent_id=event.data.intent,
            reference=event.data.reference,
            amount_minor=event.data.amount_minor,
            currency=event.data.currency,
            charge_id=event.data.charge,
            refund_id=event.data.refund,
            refund_reference=event.data.refund_reference,
            decline_code=event.data.decline_code,
        )

    async def _get(self, path: str, decoder: msgspec.json.Decoder[Document]) -> Document:
        return await self._call("GET", path, decoder, None, {})

    async def _post(
        self,
        path: str,
        decoder: msgspec.json.Decoder[Document],
        body: dict[str, Any] | None,
        idempotency_key: str,
    ) -> Document:
        content = b"" if body is None else _encode(body)
        return await self._call(
            "POST", path, decoder, content, {"idempotency-key": idempotency_key}
        )

    async def _call(
        self,
        method: str,
        path: str,
        decoder: msgspec.json.Decoder[Document],
        content: bytes | None,
        headers: dict[str, str],
    ) -> Document:
        try:
            status, answer = await self._calls.call(method, path, content, headers)
        except NoAnswer as error:
            raise GatewayUnavailable(f"{method} {path}: {error}") from error
        if status >= _SERVER_ERROR or status == _TOO_MANY_REQUESTS:
            raise GatewayUnavailable(f"{method} {path}: answered {status}")
        if status >= _CLIENT_ERROR:
            raise _refused(status, answer)
        try:
            return decoder.decode(answer)
        except msgspec.DecodeError as error:
            # It may have taken effect, so it is not a refusal: asking again is safe.
            raise GatewayUnavailable(f"{method} {path}: not the answer expected") from error


def _refused(status: int, answer: bytes) -> GatewayRefused:
    try:
        told = _problem.decode(answer)
    except msgspec.DecodeError:
        told = _Problem()
    return GatewayRefused(status, told.code, told.detail)


def _page_path(path: str, after: str | None, limit: int) -> str:
    cursor = f"&after={quote(after, safe='')}" if after is not None else ""
    return f"{path}?limit={limit}{cursor}"


def _header(headers: Mapping[str, str], name: str) -> str | None:
    lower = name.lower()
    exact = headers.get(lower)  # as servers of ASGI give them
    if exact is not None:
        return exact
    return next((value for key, value in headers.items() if key.lower() == lower), None)
