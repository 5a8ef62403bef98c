"""A shop with an order in every state, and ways to break what no code of ours would break."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fairdrop.checkout import Granted, Order, OrderState, Wanted
from fairdrop.drivers.keys import sale_key
from tests.integration.checkout.shop import Shop

Tamper = Callable[..., Awaitable[None]]


async def _nothing(*_: object) -> None:
    raise AssertionError("no database to tamper with")


@dataclass
class BusyShop(Shop):
    """Orders by the word for what became of them."""

    tamper: Tamper = _nothing
    orders: dict[str, Order] = field(default_factory=dict)

    async def live_through_everything(self) -> None:
        """Each state of an order, reached the way that orders reach it."""
        note = self.orders
        note["confirmed"] = await self.paid(2, 1)
        note["another"] = await self.paid(1)
        note["partly"] = await self.refunded(await self.paid(2), 1_234)
        note["refunded"] = await self.refunded(await self.paid(0, 2), None)
        note["refunding"] = await self.paid(1)
        note["reserved"] = await self.order(1, 1)
        note["pending"] = await self.pending(2)
        note["expired"] = await self.order(1)
        await self.expire(note["expired"])
        note["cancelled"] = await self.order(1)
        await self.cancel(note["cancelled"])
        note["failed"] = await self.pending(1)
        for _ in range(3):
            await self.deliver(self.gateway.decline(note["failed"].id))
        await self.settle()
        note["late"] = await self.late()
        await self.grant(note["refunding"], 500)
        await self.reserve(await self.admit(), 3)
        buyer = await self.admit()
        given_back = await self.reserve(buyer, 2)
        await self.parts.inventory.release(self.sale.ref, given_back, buyer)
        for word, state in {
            "partly": OrderState.PARTIALLY_REFUNDED,
            "refunded": OrderState.REFUNDED,
            "refunding": OrderState.REFUND_PENDING,
            "failed": OrderState.PAYMENT_FAILED,
            "late": OrderState.REFUNDED,
        }.items():
            note[word] = await self.now(note[word], state)

    async def grant(self, order: Order, amount_minor: int | None) -> str:
        wanted = Wanted(amount_minor=amount_minor, reason="x")
        granted = await self.parts.refunds.grant(order.id, wanted, key="k", actor="test")
        assert isinstance(granted, Granted), granted
        return granted.refund.id

    async def refunded(self, order: Order, amount_minor: int | None) -> Order:
        """After the gateway has paid the refund out and told of it."""
        await self.grant(order, amount_minor)
        await self.pay_refunds_now()
        await self.settle()
        return await self.now(order)

    async def late(self) -> Order:
        """Paid after the buyer had cancelled: the money went back."""
        order = await self.pending(1)
        paid = self.gateway.take_money(order.id)
        await self.cancel(order)
        await self.deliver(paid)
        await self.settle()
        await self.pay_refunds_now()
        await self.settle()
        return order

    def key(self, name: str) -> str:
        return sale_key(self.sale.id, self.sale.epoch, name)

    @property
    def redis(self) -> Any:
        return self.parts.store.redis

    async def hold_of(self, order: Order) -> list[Any]:
        """[buyer, admission, deadline, phase, lines] of an order's hold."""
        packed = await self.redis.hget(self.key("holds"), order.id)
        found: list[Any] = msgspec.msgpack.decode(packed)
        return found

    async def a_reservation(self) -> tuple[str, list[Any]]:
        """The one hold that has no order yet."""
        holds = await self.redis.hgetall(self.key("holds"))
        found = [(name.decode(), msgspec.msgpack.decode(packed)) for name, packed in holds.items()]
        (reservation,) = [(name, hold) for name, hold in found if hold[3] == 0]
        return reservation

    async def write_hold(self, hold_id: str, hold: list[Any]) -> None:
        await self.redis.hset(self.key("holds"), hold_id, msgspec.msgpack.encode(hold))
