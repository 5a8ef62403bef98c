"""A simulated buyer's checkout: the order, the payment page, and waiting for the outcome."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from types import MappingProxyType

import msgspec

from .client import Answer
from .plan import BuyerPlan, Ending
from .result import Result
from .visitor import (
    Order,
    Reservation,
    Shop,
    Visitor,
    attempt_of,
    expect,
    order_of,
)

LATE_BY_MS = 1_500
"""How long after the deadline a late payer's bank says yes."""
_LOOKS_AFTER_S = (0.3, 0.5, 0.8, 1.2, 2.0)
_UNPAID_ENDS = MappingProxyType(
    {
        "EXPIRED": Result.EXPIRED,
        "PAYMENT_FAILED": Result.DECLINED,
        "CANCELLED": Result.CANCELLED,
    }
)
_ENDS = MappingProxyType({"CONFIRMED": Result.CONFIRMED, "REFUNDED": Result.REFUNDED})
_MONEY_MOVES = frozenset({"succeeded", "processing", "requires_capture"})
"""What the gateway says of a payment that was agreed to: set aside, it is taken or let go soon."""
_RESERVATION_OVER = frozenset({"reservation_expired", "no_reservation", "units_lost"})


async def pay_order(
    plan: BuyerPlan, visitor: Visitor, shop: Shop, reserved: Reservation
) -> Result | None:
    """From the reservation to the end of the order.

    None when the reservation was over before checkout had begun: the buyer may reserve again.
    """
    order = await _start(plan, visitor, shop, reserved)
    if order is None or plan.ending is Ending.FORGETS_ORDER:
        return None if order is None else Result.WALKED_AWAY
    if plan.ending is Ending.CANCELS and not plan.hesitates:
        return await _cancel(visitor, order)
    page = await _open_payment(plan, visitor, shop, order)
    if page is None:
        return await _await_end(visitor, order.id, None)
    if plan.ending is Ending.FORGETS_PAYMENT:
        return Result.WALKED_AWAY
    if plan.ending is Ending.CANCELS:
        return await _cancel(visitor, order)
    await _pay(plan, visitor, order.id, page)
    return await _await_end(visitor, order.id, page)


async def _start(
    plan: BuyerPlan, visitor: Visitor, shop: Shop, reserved: Reservation
) -> Order | None:
    clicks = 2 if plan.double_clicks else 1
    email = f"buyer-{plan.number}@example.org"
    answers = await asyncio.gather(
        *(visitor.start_checkout(reserved.id, email) for _ in range(clicks))
    )
    if any(answer.code in _RESERVATION_OVER for answer in answers):
        return None
    orders = [
        order_of(expect(answer, "checkout", HTTPStatus.OK, HTTPStatus.CREATED).body)
        for answer in answers
    ]
    if len({order.id for order in orders}) > 1:
        shop.complain("checkout: two clicks, two orders")
    if orders[0].total_minor != reserved.total_minor:
        shop.complain("checkout: another price than the reservation's")
    return orders[0]


async def _open_payment(plan: BuyerPlan, visitor: Visitor, shop: Shop, order: Order) -> str | None:
    """The gateway's page for this order; None when it cannot be paid any more."""
    clicks = 2 if plan.double_clicks else 1
    answers = await asyncio.gather(*(visitor.pay(order.id) for _ in range(clicks)))
    if any(answer.code == "order_not_payable" for answer in answers):
        return None
    pages = {_page_of(expect(answer, "pay")) for answer in answers}
    if len(pages) > 1:
        shop.complain("pay: two clicks, two payments")
    return pages.pop()


def _page_of(answer: Answer) -> str | None:
    order = order_of(answer.body)
    return None if order.payment is None else order.payment.url


async def _pay(plan: BuyerPlan, visitor: Visitor, order_id: str, page: str) -> None:
    """Try the cards one after the other, until one is not declined."""
    mischief = plan.mischief
    if plan.ending is Ending.PAYS_LATE:
        order = await visitor.order(order_id)
        left_ms = max(0, order.deadline_ms - order.server_time_ms)
        if plan.hesitates:
            await asyncio.sleep((left_ms + 100) / 1_000)
        else:
            mischief = msgspec.structs.replace(mischief, delay_ms=left_ms + LATE_BY_MS)
    for card in plan.cards:
        clicks = 2 if plan.double_clicks else 1
        answers = await asyncio.gather(
            *(visitor.pay_at_gateway(page, card, mischief) for _ in range(clicks))
        )
        # 409: the shop has withdrawn the payment, because the order is over.
        if any(answer.status == HTTPStatus.CONFLICT for answer in answers):
            return
        if any(attempt_of(expect(a, "gateway_pay").body).status in _MONEY_MOVES for a in answers):
            return


async def _cancel(visitor: Visitor, order: Order) -> Result:
    answer = await visitor.cancel(order.id)
    if answer.code == "order_not_cancellable":
        return await _await_end(visitor, order.id, None)
    expect(answer, "cancel")
    return Result.CANCELLED


async def _await_end(visitor: Visitor, order_id: str, page: str | None) -> Result:
    """Look at the order until it has ended; whoever has paid waits for the goods or the money."""
    looks = 0
    while True:
        await asyncio.sleep(_LOOKS_AFTER_S[min(looks, len(_LOOKS_AFTER_S) - 1)])
        looks += 1
        order = await visitor.order(order_id)
        if end := _ENDS.get(order.state):
            return end
        end = _UNPAID_ENDS.get(order.state)
        if end is None:
            continue
        if page is None or (await visitor.ask_gateway(page)).status not in _MONEY_MOVES:
            return end
