"""A gateway that is down or slow is noticed once, not by everybody who pays (O4).

Before each gateway stand, in one process: a bound on calls under way, a time limit that includes the
wait for it, and a circuit breaker. After some failures in a row the circuit is open and calls are
refused at once; after a while one call is let through, and its outcome decides. Nothing that does not
pay is touched: reservations and settlement never call a gateway.

The breaker is purgatory's: made for asyncio, typed, small, without a thread or a timer of its own.
(pybreaker is for threads and Tornado; aiobreaker has had no release since 2021.)
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from purgatory import AsyncCircuitBreakerFactory
from purgatory.domain.model import HALF_OPENED, OPENED, OpenedState

from .gateway import Gateway, GatewayRefused, GatewayUnavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from purgatory.service._async.circuitbreaker import AsyncCircuitBreaker

    from .model import (
        GatewayCharge,
        GatewayEvent,
        GatewayRefund,
        Intent,
        Page,
        PaymentRequest,
        WebhookRefusal,
    )

Answer = TypeVar("Answer")

CONCURRENCY = 64
TIME_LIMIT_S = 6.0
FAILURES = 5
OPEN_S = 5.0


class GuardedGateway:
    """The :class:`~.gateway.Gateway` given, behind a bound, a time limit and a circuit breaker."""

    def __init__(
        self,
        gateway: Gateway,
        *,
        concurrency: int = CONCURRENCY,
        time_limit_s: float = TIME_LIMIT_S,
        failures: int = FAILURES,
        open_s: float = OPEN_S,
    ) -> None:
        """``failures`` in a row open the circuit for ``open_s`` seconds."""
        self._gateway = gateway
        self._slots = asyncio.Semaphore(concurrency)
        self._time_limit_s = time_limit_s
        self._factory = AsyncCircuitBreakerFactory(
            default_threshold=failures,
            default_ttl=open_s,
            # A refusal is an answer; a caller who goes away says nothing about the gateway.
            exclude=[GatewayRefused, asyncio.CancelledError],
        )
        self._breaker: AsyncCircuitBreaker | None = None
        self._trying = False
        self.refused = 0
        """Calls that were not made, because the circuit was open."""

    @property
    def name(self) -> str:
        """See :attr:`.gateway.Gateway.name`."""
        return self._gateway.name

    @property
    def circuit(self) -> str:
        """``closed`` (all is well), ``opened`` or ``half-opened``."""
        return "closed" if self._breaker is None else str(self._breaker.context.state)

    async def create(self, request: PaymentRequest) -> Intent:
        """See :meth:`.gateway.Gateway.create`."""
        return await self._call(lambda: self._gateway.create(request))

    async def find(self, reference: str) -> Intent | None:
        """See :meth:`.gateway.Gateway.find`."""
        return await self._call(lambda: self._gateway.find(reference))

    async def fetch(self, intent_id: str) -> Intent:
        """See :meth:`.gateway.Gateway.fetch`."""
        return await self._call(lambda: self._gateway.fetch(intent_id))

    async def cancel(self, intent_id: str) -> Intent:
        """See :meth:`.gateway.Gateway.cancel`."""
        return await self._call(lambda: self._gateway.cancel(intent_id))

    async def capture(self, intent_id: str, amount_minor: int) -> Intent:
        """See :meth:`.gateway.Gateway.capture`."""
        return await self._call(lambda: self._gateway.capture(intent_id, amount_minor))

    async def refund(self, intent_id: str, amount_minor: int, refund_id: str) -> GatewayRefund:
        """See :meth:`.gateway.Gateway.refund`."""
        return await self._call(lambda: self._gateway.refund(intent_id, amount_minor, refund_id))

    async def charges(self, after: str | None = None, limit: int = 100) -> Page[GatewayCharge]:
        """See :meth:`.gateway.Gateway.charges`."""
        return await self._call(lambda: self._gateway.charges(after, limit))

    async def refunds(self, after: str | None = None, limit: int = 100) -> Page[GatewayRefund]:
        """See :meth:`.gateway.Gateway.refunds`."""
        return await self._call(lambda: self._gateway.refunds(after, limit))

    def verify_webhook(
        self, headers: Mapping[str, str], body: bytes, now_s: int
    ) -> GatewayEvent | WebhookRefusal:
        """See :meth:`.gateway.Gateway.verify_webhook`: no call, so nothing to guard."""
        return self._gateway.verify_webhook(headers, body, now_s)

    async def _call(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        breaker = self._breaker
        if breaker is None:
            breaker = self._breaker = await self._factory.get_breaker(self.name)
        trial = breaker.context.state in (OPENED, HALF_OPENED)
        if trial and self._trying:
            self.refused += 1
            raise GatewayUnavailable(f"{self.name}: the circuit is open, and a call tries it")
        if not trial:
            return await self._through(breaker, call)
        self._trying = True
        task = asyncio.ensure_future(self._through(breaker, call))
        task.add_done_callback(self._tried)
        # Shielded: a caller who goes away in the middle would close the circuit without an answer.
        return await asyncio.shield(task)

    def _tried(self, task: asyncio.Future[Any]) -> None:
        self._trying = False
        if not task.cancelled():
            task.exception()  # looked at, also when nobody waits for it any more

    async def _through(
        self, breaker: AsyncCircuitBreaker, call: Callable[[], Awaitable[Answer]]
    ) -> Answer:
        try:
            async with breaker, asyncio.timeout(self._time_limit_s), self._slots:
                return await call()
        except OpenedState as error:
            self.refused += 1
            raise GatewayUnavailable(f"{self.name}: the circuit is open") from error
        except TimeoutError as error:
            raise GatewayUnavailable(f"{self.name}: no answer in time") from error
