"""Reconciliation with gateways: ask about payments that nobody told us of, pay refunds out (O8, O13).

What a gateway answers goes the same way as what it tells: into the inbox, and through settlement.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from fairdrop import faults
from fairdrop.drivers.database import Queries
from fairdrop.errors import FairdropError
from fairdrop.payments import (
    EventKind,
    GatewayEvent,
    GatewayRefused,
    GatewayUnavailable,
    IntentStatus,
)

from . import records
from .rules import LIVE, OrderState

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Mapping

    import asyncpg

    from fairdrop.drivers.database import Database
    from fairdrop.payments import Gateway, Intent

    from .inbox import Inbox

_log = structlog.get_logger(__name__)
SQL = Queries("fairdrop.checkout", "sweep")
BATCH = 50
_TOLD = {
    IntentStatus.REQUIRES_CAPTURE: EventKind.AUTHORIZED,
    IntentStatus.SUCCEEDED: EventKind.SUCCEEDED,
    IntentStatus.CANCELED: EventKind.CANCELED,
}
"""What is told of an intent that was looked at, as its webhook would have told it."""
_OPEN = (IntentStatus.REQUIRES_PAYMENT, IntentStatus.REQUIRES_CAPTURE)
GIVE_UP_AFTER = 6
"""Looks for an intent that the gateway does not know, before a dead order's payment is closed."""


class Reconciler:
    """Asks gateways. Any number of processes may do so side by side."""

    def __init__(
        self,
        database: Database,
        gateways: Mapping[str, Gateway],
        inbox: Inbox,
        *,
        check_after_ms: int = 5_000,
    ) -> None:
        """``check_after_ms`` is the first interval between two questions about one payment."""
        self._database = database
        self._gateways = gateways
        self._inbox = inbox
        self._check_after_ms = check_after_ms

    async def check_payments(self) -> int:
        """Ask about payments that are due for it; returns how many."""
        async with self._database.connection() as connection:
            rows = await connection.fetch(
                SQL["payments_due"], BATCH, self._check_after_ms, list(self._gateways)
            )
        await _all(self._check_payment(row) for row in rows)
        return len(rows)

    async def pay_refunds(self) -> int:
        """Have refunds that are due carried out; returns how many were tried.

        The refund's id is the key at the gateway, so trying again never pays twice.
        """
        async with self._database.connection() as connection:
            rows = await connection.fetch(SQL["refunds_due"], BATCH, list(self._gateways))
        await _all(self._pay_refund(row) for row in rows)
        return len(rows)

    async def _check_payment(self, row: asyncpg.Record) -> None:
        gateway = self._gateways[row["gateway"]]
        try:
            intent = await self._look(gateway, row)
        except GatewayUnavailable as error:
            _log.warning("gateway_unavailable", gateway=gateway.name, error=str(error))
            return
        except GatewayRefused as error:
            _log.warning("gateway_refused", gateway=gateway.name, code=error.code)
            return
        alive = OrderState(row["order_state"]) in LIVE
        if intent is None:
            if not alive and row["tries"] >= GIVE_UP_AFTER:
                await self._close(row)
        elif intent.status is IntentStatus.CANCELED and not alive:
            await self._close(row)
        elif intent.status in _TOLD:
            await self._tell(row["gateway"], intent, _TOLD[intent.status])

    async def _look(self, gateway: Gateway, row: asyncpg.Record) -> Intent | None:
        """The payment's intent as it stands, after what the order's state asks for (O4).

        That is: taking money that is set aside for secured units, letting go of what is for nothing.
        """
        if row["intent_id"] is None:
            intent = await gateway.find(str(row["order_id"]))
            if intent is None:
                return None
            # Somebody died between making the intent and writing it down.
            await records.payments_opened(
                self._database, [(str(row["order_id"]), intent.id, intent.pay_url)]
            )
        elif row["state"] == "AUTHORISED" and OrderState(row["order_state"]) in LIVE:
            return await self._capture(gateway, row)
        else:
            intent = await gateway.fetch(row["intent_id"])
        if intent.status in _OPEN and OrderState(row["order_state"]) not in LIVE:
            return await self._withdraw(gateway, intent)
        return intent

    @staticmethod
    async def _capture(gateway: Gateway, row: asyncpg.Record) -> Intent:
        """Take the money; a repeat takes nothing more (case 22). What it was, if it is gone."""
        try:
            intent = await gateway.capture(row["intent_id"], row["amount_minor"])
        except GatewayRefused as error:
            _log.warning("capture_refused", order=str(row["order_id"]), code=error.code)
            return await gateway.fetch(row["intent_id"])
        faults.passing(faults.Point.CAPTURED)
        return intent

    @staticmethod
    async def _withdraw(gateway: Gateway, intent: Intent) -> Intent:
        """Make sure that a dead order's intent is never paid, or learn that it was."""
        try:
            return await gateway.cancel(intent.id)
        except GatewayRefused:
            return await gateway.fetch(intent.id)

    async def _close(self, row: asyncpg.Record) -> None:
        async with self._database.connection() as connection:
            await connection.execute(SQL["close_payments"], [row["order_id"]])

    async def _tell(self, gateway: str, intent: Intent, kind: EventKind) -> None:
        paid = kind is EventKind.SUCCEEDED
        await self._inbox.store(
            gateway,
            GatewayEvent(
                id=f"asked:{intent.id}:{kind.name}",
                kind=kind,
                created_ms=intent.created_ms,
                intent_id=intent.id,
                reference=intent.reference,
                amount_minor=intent.amount_received_minor if paid else intent.amount_minor,
                currency=intent.currency,
            ),
        )

    async def _pay_refund(self, row: asyncpg.Record) -> None:
        gateway = self._gateways[row["gateway"]]
        try:
            refund = await gateway.refund(row["intent_id"], row["amount_minor"], str(row["id"]))
        except (GatewayUnavailable, GatewayRefused) as error:
            _log.warning("refund_not_paid", refund=str(row["id"]), error=str(error))
            async with self._database.connection() as connection:
                await connection.execute(SQL["refund_failed"], row["id"], str(error))
            return
        faults.passing(faults.Point.REFUND_MADE)
        if refund.status == "succeeded":
            await self._inbox.store(
                row["gateway"],
                GatewayEvent(
                    id=f"asked:{refund.id}",
                    kind=EventKind.REFUND_SUCCEEDED,
                    created_ms=refund.created_ms,
                    intent_id=row["intent_id"],
                    reference=str(row["order_id"]),
                    amount_minor=refund.amount_minor,
                    currency=refund.currency,
                    refund_id=refund.id,
                    refund_reference=str(row["id"]),
                ),
            )


async def _all(calls: Iterable[Awaitable[None]]) -> None:
    """Make the calls side by side; what goes wrong with one of them stops no other one.

    Each was put off before it was made, so it comes again. Raises the first error of a part that
    all of them need.
    """
    away: FairdropError | None = None
    for result in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(result, FairdropError):
            away = away or result
        elif isinstance(result, Exception):
            _log.error("reconciling_failed", exc_info=result)
    if away is not None:
        raise away
