"""Stripe's adapter: the :class:`~.gateway.Gateway` protocol through Stripe's own library.

The buyer pays on Stripe's page (a Checkout Session, which makes the PaymentIntent): no script of
Stripe's runs on ours, no card number comes near us, and the pages' content security policy stays as it
is. The Payment Element would need Stripe's script, a key in the page and exceptions to that policy.

A session is there from the start and its PaymentIntent only once the buyer begins to pay, so the
session's id is the intent's id. Calls that need the PaymentIntent look it up; ids of PaymentIntents
(``pi_…``) are taken everywhere too.

Amounts are Stripe's own units on the wire (:mod:`.units`). The API's version is pinned: an account's
default, or a newer library, changes nothing here until somebody changes :data:`API_VERSION`.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Self

import aiohttp
import msgspec
import stripe

from .gateway import GatewayRefused, GatewayUnavailable
from .model import (
    RANK,
    CaptureMode,
    GatewayCharge,
    GatewayEvent,
    GatewayRefund,
    Intent,
    IntentStatus,
    Page,
    PaymentRequest,
    WebhookRefusal,
)
from .stripe_documents import (
    Charge,
    Event,
    PaymentIntent,
    Refund,
    Session,
    charge_of,
    event_of,
    intent_of_payment,
    intent_of_session,
    refund_of,
)
from .units import stripe_amount

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stripe.params import RefundCreateParams
    from stripe.params.checkout import SessionCreateParams

API_VERSION = "2026-10-28.endive"
"""The version that requests name and that this module was written for; set it for the webhook
endpoint too, in Stripe's dashboard."""
CONNECT_TIMEOUT_S = 1.0
TOTAL_TIMEOUT_S = 5.0
POOL_SIZE = 128
TOLERANCE_S = 300
"""How old or how far ahead a webhook's signature may be: Stripe's own figure."""
SIGNATURE_HEADER = "stripe-signature"

_PAGE_MAX = 100
_SESSION = "cs_"
_CONFLICT, _TOO_MANY, _SERVER_ERROR = 409, 429, 500
_BAD_REQUEST, _UNPROCESSABLE = 400, 422


class StripeGateway:
    """Talks to one Stripe account. Each call of the protocol is one request or two, never repeated.

    Use it as an async context manager, or call :meth:`close`.
    """

    name: Literal["stripe"] = "stripe"

    def __init__(
        self,
        secret_key: str,
        webhook_secret: str,
        *,
        api_url: str | None = None,
        total_timeout_s: float = TOTAL_TIMEOUT_S,
    ) -> None:
        """Remember the two secrets; ``api_url`` is another server of Stripe's API, for tests."""
        self._secret_key = secret_key
        self._webhook_secret = webhook_secret
        self._api_url = api_url
        self._timeout = aiohttp.ClientTimeout(total=total_timeout_s, sock_connect=CONNECT_TIMEOUT_S)
        self._session: aiohttp.ClientSession | None = None
        self._client: stripe.StripeClient | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections. A later call opens new ones."""
        session, self._session, self._client = self._session, None, None
        if session is not None:
            await session.close()

    async def create(self, request: PaymentRequest) -> Intent:
        """See :meth:`.gateway.Gateway.create`. The page's address needs a ``return_url``."""
        try:
            amount = stripe_amount(request.amount_minor, request.currency)
        except ValueError as error:
            raise GatewayRefused(_UNPROCESSABLE, "amount_not_chargeable", str(error)) from error
        if request.return_url is None:
            raise GatewayRefused(_UNPROCESSABLE, "return_url_required")
        metadata = {"reference": request.reference}
        manual = request.capture is CaptureMode.MANUAL
        wanted: SessionCreateParams = {
            "mode": "payment",
            "client_reference_id": request.reference,
            "metadata": metadata,
            "success_url": request.return_url,
            "cancel_url": request.return_url,
            # Cards and what wallets make of them: means that pay within the order's deadline.
            "allowed_payment_method_types": ["card"],
            # What is shown is what is charged: in the sale's currency, whatever the buyer's is.
            "adaptive_pricing": {"enabled": False},
            "line_items": [
                {
                    "quantity": 1,
                    "price_data": {
                        "currency": request.currency.lower(),
                        "unit_amount": amount,
                        "product_data": {"name": f"Order {request.reference}"},
                    },
                }
            ],
            "payment_intent_data": {
                "capture_method": "manual" if manual else "automatic",
                "metadata": metadata,
            },
        }
        with _told_apart():
            made = await self._stripe.v1.checkout.sessions.create_async(
                wanted, {"idempotency_key": request.idempotency_key}
            )
        return intent_of_session(_as(Session, made))

    async def find(self, reference: str) -> Intent | None:
        """See :meth:`.gateway.Gateway.find`.

        Stripe's search knows of payments that were begun, up to a minute late. A session that nobody
        has opened is not found, and cannot be paid either: its address was never given out, and it
        ends by itself after a day.
        """
        if not reference.replace("-", "").isalnum():
            return None  # never one of ours, and nothing to build a query with
        with _told_apart():
            found = await self._stripe.v1.payment_intents.search_async(
                {
                    "query": f"metadata['reference']:'{reference}'",
                    "expand": ["data.latest_charge"],
                    "limit": _PAGE_MAX,
                }
            )
        intents = [intent_of_payment(_as(PaymentIntent, one)) for one in found.data]
        return min(intents, key=lambda one: (RANK[one.status], -one.created_ms), default=None)

    async def fetch(self, intent_id: str) -> Intent:
        """See :meth:`.gateway.Gateway.fetch`."""
        if intent_id.startswith(_SESSION):
            return intent_of_session(await self._checkout(intent_id))
        return intent_of_payment(await self._payment(intent_id))

    async def cancel(self, intent_id: str) -> Intent:
        """See :meth:`.gateway.Gateway.cancel`. An open page is closed; what is set aside is freed."""
        stripe_client = self._stripe.v1
        try:
            with _told_apart():
                if intent_id.startswith(_SESSION):
                    closed = await stripe_client.checkout.sessions.expire_async(
                        intent_id, {"expand": ["payment_intent.latest_charge"]}
                    )
                    return intent_of_session(_as(Session, closed))
                freed = await stripe_client.payment_intents.cancel_async(
                    intent_id, {"expand": ["latest_charge"]}
                )
                return intent_of_payment(_as(PaymentIntent, freed))
        except GatewayRefused as refused:
            return await self._not_cancelled(intent_id, refused)

    async def _not_cancelled(self, intent_id: str, refused: GatewayRefused) -> Intent:
        """A session that is complete cannot be closed, and a payment that is over cannot be freed."""
        if refused.code == "unknown_intent":
            raise refused
        intent = await self.fetch(intent_id)
        if intent.status is IntentStatus.CANCELED:
            return intent
        if intent.status is IntentStatus.SUCCEEDED:
            raise GatewayRefused(_CONFLICT, "intent_succeeded") from refused
        if intent.status is IntentStatus.PROCESSING:
            raise GatewayRefused(_CONFLICT, "intent_processing") from refused
        payment = await self._payment_of(intent_id)
        if payment is None or payment.id == intent_id:
            raise refused
        freed = await self.cancel(payment.id)
        return msgspec.structs.replace(freed, id=intent_id)

    async def capture(self, intent_id: str, amount_minor: int) -> Intent:
        """See :meth:`.gateway.Gateway.capture`."""
        payment = await self._payment_of(intent_id)
        if payment is None:
            raise GatewayRefused(_CONFLICT, "not_capturable")
        intent = intent_of_payment(payment)
        if intent.status is IntentStatus.REQUIRES_CAPTURE and intent.amount_minor == amount_minor:
            with _told_apart():
                taken = await self._stripe.v1.payment_intents.capture_async(
                    payment.id,
                    {
                        "amount_to_capture": stripe_amount(amount_minor, intent.currency),
                        "expand": ["latest_charge"],
                    },
                    {"idempotency_key": f"capture-{payment.id}"},
                )
            intent = intent_of_payment(_as(PaymentIntent, taken))
        if intent.amount_received_minor != amount_minor:
            raise GatewayRefused(_CONFLICT, "not_capturable")
        return msgspec.structs.replace(intent, id=intent_id)

    async def refund(self, intent_id: str, amount_minor: int, refund_id: str) -> GatewayRefund:
        """See :meth:`.gateway.Gateway.refund`."""
        payment = await self._payment_of(intent_id)
        if payment is None:
            raise GatewayRefused(_UNPROCESSABLE, "over_refund")
        intent = intent_of_payment(payment)
        try:
            amount = stripe_amount(amount_minor, intent.currency)
        except ValueError as error:
            raise GatewayRefused(_UNPROCESSABLE, "amount_not_chargeable", str(error)) from error
        wanted: RefundCreateParams = {
            "payment_intent": payment.id,
            "amount": amount,
            "metadata": {"reference": refund_id, "order": intent.reference},
        }
        try:
            with _told_apart():
                made = await self._stripe.v1.refunds.create_async(
                    wanted, {"idempotency_key": refund_id}
                )
        except GatewayRefused as refused:
            left = intent.amount_received_minor - intent.amount_refunded_minor
            if refused.code != "idempotency_key_reused" and amount_minor > left:
                raise GatewayRefused(_UNPROCESSABLE, "over_refund", refused.detail) from refused
            raise
        return refund_of(_as(Refund, made))

    async def charges(self, after: str | None = None, limit: int = 100) -> Page[GatewayCharge]:
        """See :meth:`.gateway.Gateway.charges`. Newest first, at most 100 a page."""
        with _told_apart():
            page = await self._stripe.v1.charges.list_async(_page(after, limit))
        listed = [_as(Charge, one) for one in page.data]
        ours = [charge_of(one) for one in listed]
        last = listed[-1].id if listed else after
        return Page(
            data=tuple(one for one in ours if one is not None),
            next=last if page.has_more else None,
            last=last,
        )

    async def refunds(self, after: str | None = None, limit: int = 100) -> Page[GatewayRefund]:
        """See :meth:`.gateway.Gateway.refunds`. Newest first, at most 100 a page."""
        with _told_apart():
            page = await self._stripe.v1.refunds.list_async(_page(after, limit))
        listed = [_as(Refund, one) for one in page.data]
        last = listed[-1].id if listed else after
        return Page(
            data=tuple(
                refund_of(one)
                for one in listed
                if one.metadata.reference and one.status not in ("failed", "canceled")
            ),
            next=last if page.has_more else None,
            last=last,
        )

    def verify_webhook(
        self, headers: Mapping[str, str], body: bytes, now_s: int
    ) -> GatewayEvent | WebhookRefusal:
        """See :meth:`.gateway.Gateway.verify_webhook`. The library checks the signature."""
        header = next(
            (value for name, value in headers.items() if name.lower() == SIGNATURE_HEADER), None
        )
        if header is None:
            return WebhookRefusal.SIGNATURE_MISSING
        signed_s = _signed_at(header)
        if signed_s is None:
            return WebhookRefusal.SIGNATURE_MALFORMED
        try:
            text = body.decode()
            stripe.WebhookSignature.verify_header(text, header, self._webhook_secret)
        except (stripe.SignatureVerificationError, UnicodeError):
            return WebhookRefusal.SIGNATURE_WRONG
        # The library looks at the machine's clock, and only backwards: the time is judged here.
        if abs(now_s - signed_s) > TOLERANCE_S:
            return WebhookRefusal.TIMESTAMP_STALE
        try:
            event = event_of(msgspec.json.decode(body, type=Event))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return WebhookRefusal.BODY_MALFORMED
        return WebhookRefusal.KIND_UNKNOWN if event is None else event

    async def _checkout(self, session_id: str) -> Session:
        with _told_apart():
            found = await self._stripe.v1.checkout.sessions.retrieve_async(
                session_id, {"expand": ["payment_intent.latest_charge"]}
            )
        session: Session = _as(Session, found)
        return session

    async def _payment(self, payment_id: str) -> PaymentIntent:
        with _told_apart():
            found = await self._stripe.v1.payment_intents.retrieve_async(
                payment_id, {"expand": ["latest_charge"]}
            )
        payment: PaymentIntent = _as(PaymentIntent, found)
        return payment

    async def _payment_of(self, intent_id: str) -> PaymentIntent | None:
        """The PaymentIntent, with its latest charge; None while its session has none."""
        if not intent_id.startswith(_SESSION):
            return await self._payment(intent_id)
        payment = (await self._checkout(intent_id)).payment_intent
        return await self._payment(payment) if isinstance(payment, str) else payment

    @property
    def _stripe(self) -> stripe.StripeClient:
        if self._client is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=POOL_SIZE), cookie_jar=aiohttp.DummyCookieJar()
            )
            self._client = stripe.StripeClient(
                self._secret_key,
                stripe_version=API_VERSION,
                base_addresses={"api": self._api_url} if self._api_url else None,
                max_network_retries=0,  # whoever calls decides when to ask again, with the same key
                http_client=stripe.AIOHTTPClient(timeout=self._timeout, session=self._session),
            )
        return self._client


def _as(kind: type[Any], found: stripe.StripeObject) -> Any:
    """The document as we read it. It may have taken effect: what is unreadable is no refusal."""
    try:
        return msgspec.convert(found.to_dict(for_json=True), kind)
    except msgspec.ValidationError as error:
        raise GatewayUnavailable(f"Stripe: not the answer expected: {error}") from error


def _page(after: str | None, limit: int) -> Any:
    wanted: dict[str, Any] = {"limit": min(limit, _PAGE_MAX)}
    if after is not None:
        wanted["starting_after"] = after
    return wanted


def _signed_at(header: str) -> int | None:
    times = [part[2:] for part in header.split(",") if part.startswith("t=")]
    digits = times[0] if len(times) == 1 else ""
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 12 else None  # noqa: PLR2004 - seconds of the next 30,000 years


@contextmanager
def _told_apart() -> Iterator[None]:
    """Stripe's errors as the protocol has them: refused, or not known to have taken effect."""
    try:
        yield
    except (
        stripe.APIConnectionError,
        stripe.RateLimitError,
        aiohttp.ClientError,
        OSError,
    ) as error:
        raise GatewayUnavailable(f"Stripe: {type(error).__name__}") from error
    except stripe.IdempotencyError as error:
        if error.http_status == _CONFLICT:  # the first request is still under way
            raise GatewayUnavailable("Stripe: the same request is under way") from error
        raise GatewayRefused(
            _UNPROCESSABLE, "idempotency_key_reused", error.user_message or ""
        ) from error
    except stripe.StripeError as error:
        status = error.http_status or _SERVER_ERROR
        if status >= _SERVER_ERROR or status in (_TOO_MANY, _CONFLICT):
            raise GatewayUnavailable(f"Stripe: answered {status}") from error
        code = error.code or type(error).__name__
        unknown = status == 404 or code == "resource_missing"  # noqa: PLR2004 - not found
        raise GatewayRefused(
            status, "unknown_intent" if unknown else code, error.user_message or ""
        ) from error
