"""The protocol every payment gateway adapter fulfils, and how it fails.

Rules of the protocol:

- **One key per logical operation.** The caller passes it (``PaymentRequest.idempotency_key``,
  ``refund_id``) and passes the same one when it tries again. A repeat gives the first operation's
  result and moves no money a second time.
- **No retries inside.** A call that raises :class:`GatewayUnavailable` may have taken effect; the
  caller decides when to call again with the same key, or asks with :meth:`Gateway.find`.
- **Webhooks are a hint, the record is the truth.** Events can be lost; ``fetch``, ``charges`` and
  ``refunds`` answer from the gateway's own books.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fairdrop.errors import FairdropError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .model import (
        GatewayCharge,
        GatewayEvent,
        GatewayRefund,
        Intent,
        Page,
        PaymentRequest,
        WebhookRefusal,
    )


class GatewayUnavailable(FairdropError):
    """No usable answer: no connection, time limit, 429 or 5xx. Whether it took effect is unknown."""


class GatewayRefused(FairdropError):
    """The gateway said no (4xx) and nothing changed; ``code`` says why."""

    def __init__(self, status: int, code: str, detail: str = "") -> None:
        """Keep the HTTP status, the gateway's machine-readable code and its sentence."""
        super().__init__(f"{code} ({status}): {detail}" if detail else f"{code} ({status})")
        self.status = status
        self.code = code
        self.detail = detail


class Gateway(Protocol):
    """A payment gateway. All methods but :meth:`verify_webhook` are one network call.

    They raise GatewayUnavailable or GatewayRefused, and nothing else for what a gateway does.
    """

    @property
    def name(self) -> str:
        """Short name, as in the webhook's path: ``sandbox``."""

    async def create(self, request: PaymentRequest) -> Intent:
        """Create the intent of this idempotency key, or give the one it created before.

        Refused with ``idempotency_key_reused`` when the key came with another request before.
        """

    async def find(self, reference: str) -> Intent | None:
        """The intent of this reference that matters most, None if the gateway knows none.

        A succeeded one comes first, then an authorised one, one under way, an open one, a cancelled
        one; among equals the newest.
        """

    async def fetch(self, intent_id: str) -> Intent:
        """The intent as it stands now. Refused with ``unknown_intent`` if there is none."""

    async def cancel(self, intent_id: str) -> Intent:
        """Make sure that the intent is never charged; repeating it is harmless.

        What the bank has set aside is free again (a void).

        Refused with ``intent_succeeded`` when the money was taken already, and with
        ``intent_processing`` while a bank decides: ask again later.
        """

    async def capture(self, intent_id: str, amount_minor: int) -> Intent:
        """Take ``amount_minor``, all that was authorised (``CaptureMode.MANUAL``); one key an intent.

        An intent that has received exactly this amount is returned as it is, so that a step that is
        repeated, or finds automatic capture, has nothing left to do. Refused with ``not_capturable``
        otherwise.
        """

    async def refund(self, intent_id: str, amount_minor: int, refund_id: str) -> GatewayRefund:
        """Give back part or all of what was received.

        ``refund_id`` is ours: it is the idempotency key and the ``reference`` in the gateway's
        record, so a repeat is the same refund. Refused with ``over_refund`` when all refunds
        together would exceed what was received.
        """

    async def charges(self, after: str | None = None, limit: int = 100) -> Page[GatewayCharge]:
        """The gateway's own record of money taken, page by page from a cursor on.

        The sandbox lists the oldest first, Stripe the newest: whoever follows ``next`` to the end has
        seen all that was there at the beginning.
        """

    async def refunds(self, after: str | None = None, limit: int = 100) -> Page[GatewayRefund]:
        """The gateway's own record of money given back, page by page as :meth:`charges`."""

    def verify_webhook(
        self, headers: Mapping[str, str], body: bytes, now_s: int
    ) -> GatewayEvent | WebhookRefusal:
        """The event that an authentic webhook carries, or why it is refused. Pure: no I/O.

        ``body`` is the raw request body, byte for byte; header names in any case; ``now_s`` is
        the time in seconds since the Unix epoch.
        """
