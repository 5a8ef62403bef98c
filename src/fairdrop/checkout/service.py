"""A buyer's checkout: start, pay, cancel, look (O1, O5, H4, H7, H8).

The order of things in each step is the promise: a row is committed before anything outside is
told, and everything outside takes the order's id as its idempotency key. Whatever dies between two
lines, repeating the call or the sweep leads to the same end.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import asyncpg
import structlog
from msgspec.structs import replace

from fairdrop import faults
from fairdrop.batching import Batcher
from fairdrop.errors import StoreUnavailable
from fairdrop.ids import SaleRef, is_uuid
from fairdrop.inventory import ReleaseOutcome, StartOutcome
from fairdrop.payments import CaptureMode, GatewayUnavailable, PaymentRequest

from . import records
from .model import (
    Inserted,
    InsertOutcome,
    NewOrder,
    Order,
    OrderLine,
    PayRefusal,
    StartRefusal,
)
from .pricing import price_of
from .rules import OrderState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fairdrop.catalog import Sale
    from fairdrop.drivers.database import Database
    from fairdrop.inventory import Inventory, Start
    from fairdrop.payments import Gateway

_log = structlog.get_logger(__name__)

_ITEM_FAULTS = (
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.DeadlockDetectedError,
)
"""Errors that one item of a batch may cause: each item is then tried alone.

Deadlocks: two holds of one admission, in two batches that meet their admissions in opposite order.
"""


class Checkout:
    """Orders of buyers. Raises StoreUnavailable, DatabaseUnavailable, Overloaded."""

    def __init__(
        self,
        database: Database,
        inventory: Inventory,
        gateways: Mapping[str, Gateway],
        return_url: Callable[[str], str],
    ) -> None:
        """``return_url`` makes, from an order's id, the address that its buyer comes back to."""
        self._database = database
        self._inventory = inventory
        self._gateways = gateways
        self._return_url = return_url

        async def insert(orders: list[NewOrder]) -> list[Inserted]:
            return await records.insert_orders(database, orders)

        async def begin(items: list[tuple[str, str]]) -> list[Order | None]:
            return await records.begin_payments(database, items)

        async def opened(intents: list[tuple[str, str, str]]) -> list[bool]:
            return await records.payments_opened(database, intents)

        async def look(order_ids: list[str]) -> list[Order | None]:
            return await records.orders(database, order_ids)

        # One batch of a kind at a time: with two, each took half as many at the same cost.
        self._insert: Batcher[NewOrder, Inserted] = Batcher(
            "orders.insert", insert, max_batch=200, retry_singly=_ITEM_FAULTS
        )
        self._begin: Batcher[tuple[str, str], Order | None] = Batcher(
            "orders.pay", begin, max_batch=200, retry_singly=_ITEM_FAULTS
        )
        self._opened: Batcher[tuple[str, str, str], bool] = Batcher(
            "payments.opened", opened, max_batch=200, retry_singly=_ITEM_FAULTS
        )
        self._look: Batcher[str, Order | None] = Batcher("orders.look", look, max_batch=200)

    async def order(self, order_id: str, buyer: str) -> Order | None:
        """The buyer's order; None when there is none, or it is somebody else's."""
        order = await self._look.submit(order_id) if is_uuid(order_id) else None
        return order if order is not None and order.buyer == buyer else None

    async def start(  # noqa: PLR0913 - who, what, and what is known of them
        self,
        sale: Sale,
        hold: str,
        buyer: str,
        *,
        email: str | None = None,
        name: str | None = None,
        verified: Sequence[str] = (),
    ) -> Order | StartRefusal:
        """Turn a hold into an order (O1). Repeating it gives the same order.

        ``verified`` are marks of what checkout has verified of the buyer (H6).

        From the moment the row is committed it decides about the units, and the store follows.
        """
        if not is_uuid(hold):
            return StartRefusal.NO_RESERVATION
        started = await self._inventory.start(sale.ref, hold, buyer, verified)
        if started.outcome is not StartOutcome.STARTED:
            known = await self.order(hold, buyer)
            if known is not None and known.lines:
                return known
            if started.outcome is StartOutcome.EXPIRED:
                return StartRefusal.RESERVATION_EXPIRED
            if started.outcome is StartOutcome.PERSON_LIMIT:
                return StartRefusal.PERSON_LIMIT
            return StartRefusal.NO_RESERVATION
        new = _new_order(sale, hold, buyer, started, email, name)
        inserted = await self._insert.submit(new)
        if inserted.outcome is InsertOutcome.UNITS_TAKEN:
            # The store had forgotten that somebody has these units (H8). Nobody has paid: the buyer
            # reserves again, and what is not ours stays out of the pool.
            _log.warning("units_lost", order=hold, units=len(inserted.lost) // 2)
            await self._inventory.free(sale.ref, hold, inserted.lost)
            return StartRefusal.UNITS_LOST
        faults.passing(faults.Point.ORDER_WRITTEN)
        if inserted.created_at is not None:
            return _as_written(sale, new, inserted.created_at)
        order = await self.order(hold, buyer)
        if order is None:
            # Another order has this admission (W13): what this hold took goes back.
            await self._inventory.free(sale.ref, hold)
            return StartRefusal.ALREADY_ORDERED
        if not order.lines:
            # The sweep has declared the hold over while this start was on its way.
            return StartRefusal.RESERVATION_EXPIRED
        return order

    async def pay(self, order_id: str, buyer: str) -> Order | PayRefusal:
        """Have the gateway make the payment, once, and say where the buyer pays (O5).

        The deadline moves in the order's row (H4). The store is not told: its sweep asks the row about
        a hold before it gives anything back, and few orders are not paid by then.

        Raises GatewayUnavailable when the gateway does not answer: the order waits, and paying
        again repeats the same operation under the same key.
        """
        if not is_uuid(order_id):
            return PayRefusal.NO_ORDER
        begun = await self._begin.submit((order_id, buyer))
        if begun is not None:
            opened = await self._create_intent(begun)
            if opened is not None:
                return opened
        order = await self.order(order_id, buyer)
        if order is None:
            return PayRefusal.NO_ORDER
        if order.state is not OrderState.PAYMENT_PENDING or order.payment is None:
            return PayRefusal.NOT_PAYABLE
        if order.payment.url is None:
            opened = await self._create_intent(order)
            order = opened or await self.order(order_id, buyer)
        return order if order is not None else PayRefusal.NO_ORDER

    async def cancel(self, sale: SaleRef, order_id: str, buyer: str) -> Order | PayRefusal:
        """Give an unpaid order up; its units are free at once. Repeating it changes nothing."""
        if not is_uuid(order_id):
            return PayRefusal.NO_ORDER
        before = await records.cancel(self._database, order_id, buyer)
        order = await self.order(order_id, buyer)
        if order is None:
            return PayRefusal.NO_ORDER
        if before is None and order.state is not OrderState.CANCELLED:
            return PayRefusal.NOT_CANCELLABLE
        await self._free_quietly(sale, order_id)
        return order

    async def _create_intent(self, order: Order) -> Order | None:
        """The order as its buyer can pay it now; None when it has to be looked at anew."""
        gateway = self._gateways.get(order.gateway)
        if gateway is None:
            raise GatewayUnavailable(f"gateway {order.gateway} is not configured")
        intent = await gateway.create(
            PaymentRequest(
                reference=order.id,
                amount_minor=order.total_minor,
                currency=order.currency,
                idempotency_key=order.id,
                return_url=self._return_url(order.id),
                capture=CaptureMode(order.capture),
            )
        )
        faults.passing(faults.Point.INTENT_MADE)
        payable = await self._opened.submit((order.id, intent.id, intent.pay_url))
        if not payable or order.payment is None:
            return None
        payment = replace(order.payment, url=intent.pay_url, state="OPEN")
        return replace(order, payment=payment)

    async def _free_quietly(self, sale: SaleRef, order_id: str) -> None:
        try:
            released = await self._inventory.free(sale, order_id)
            if released.outcome is ReleaseOutcome.RELEASED:
                _log.debug("released", order=order_id, units=released.units)
        except StoreUnavailable:
            _log.warning("store_not_told", step="free", order=order_id)


def _new_order(  # noqa: PLR0913 - what an order is made of
    sale: Sale, hold: str, buyer: str, started: Start, email: str | None, name: str | None
) -> NewOrder:
    prices = {variant.id: variant.price_minor for variant in sale.variants}
    lines = [(variant, serials, prices[variant]) for variant, serials in started.lines]
    price = price_of(sale, sum(price * len(serials) for _, serials, price in lines))
    return NewOrder(
        id=hold,
        sale=sale.id,
        buyer=buyer,
        admission=started.admission if isinstance(started.admission, str) else None,
        currency=sale.currency,
        subtotal_minor=price.subtotal_minor,
        fee_minor=price.fee_minor,
        deadline=datetime.fromtimestamp(started.deadline_ms / 1_000, UTC),
        lines=lines,
        email=email,
        name=name,
        verified=started.verified,
    )


def _as_written(sale: Sale, new: NewOrder, created_at: datetime) -> Order:
    """The order that was just written, as it would be read: its lines in the order of the variants."""
    priced = {variant: (serials, price_minor) for variant, serials, price_minor in new.lines}
    return Order(
        id=new.id,
        sale=new.sale,
        buyer=new.buyer,
        state=OrderState.RESERVED,
        currency=new.currency,
        subtotal_minor=new.subtotal_minor,
        fee_minor=new.fee_minor,
        total_minor=new.subtotal_minor + new.fee_minor,
        refunded_minor=0,
        deadline=new.deadline,
        created_at=created_at,
        lines=[
            OrderLine(
                variant=variant.id,
                product=variant.product,
                name=variant.name,
                quantity=len(priced[variant.id][0]),
                serials=priced[variant.id][0],
                price_minor=priced[variant.id][1],
            )
            for variant in sale.variants
            if variant.id in priced
        ],
        email=new.email,
        name=new.name,
        gateway=sale.gateway,
        capture=sale.capture,
        epoch=sale.epoch,
    )
