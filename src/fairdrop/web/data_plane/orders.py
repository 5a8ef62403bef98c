"""Endpoints of orders: start checkout, look, pay, cancel (O1, O5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fairdrop.checkout import PayRefusal, StartRefusal
from fairdrop.clock import now_ms
from fairdrop.ids import SaleRef
from fairdrop.money import exponent
from fairdrop.payments import GatewayUnavailable
from fairdrop.web.wire import Problem, encode, headers_of, read_body, send_json

from .base import SALE, decode, required_visitor, sale_of, verified_marks
from .documents import OrderDocument, OrderLineDocument, OrderRequest, PaymentDocument

if TYPE_CHECKING:
    from fairdrop.app import Parts
    from fairdrop.checkout import Order
    from fairdrop.web.wire import Receive, Scope, Send

_REQUEST = msgspec.json.Decoder(OrderRequest)

_START_PROBLEMS = {
    StartRefusal.NO_RESERVATION: (404, "There is no such reservation of yours."),
    StartRefusal.RESERVATION_EXPIRED: (409, "The reservation's time is over. Reserve again."),
    StartRefusal.ALREADY_ORDERED: (409, "This admission has an order already."),
    StartRefusal.UNITS_LOST: (
        409,
        "These units turned out to be somebody else's. Nothing was charged; reserve again.",
    ),
    StartRefusal.PERSON_LIMIT: (
        409,
        "This phone or payment method has another reservation in this sale.",
    ),
}
_PAY_PROBLEMS = {
    PayRefusal.NO_ORDER: (404, "There is no such order of yours."),
    PayRefusal.NOT_PAYABLE: (409, "The order cannot be paid: it is over, or paid already."),
    PayRefusal.NOT_CANCELLABLE: (409, "The order cannot be cancelled any more."),
}


async def start(parts: Parts, scope: Scope, receive: Receive, send: Send) -> None:
    """POST /v1/sales/{sale}/orders."""
    headers = headers_of(scope)
    visitor = required_visitor(parts, headers)
    sale = await sale_of(parts, scope)
    wanted: OrderRequest = decode(_REQUEST, await read_body(receive, headers))
    answer = await parts.checkout.start(
        sale,
        wanted.reservation,
        visitor,
        email=wanted.email,
        name=wanted.name,
        verified=verified_marks(parts, sale, headers, wanted.verified),
    )
    if isinstance(answer, StartRefusal):
        status, detail = _START_PROBLEMS[answer]
        raise Problem(status, answer, detail)
    await send_json(send, order_body(answer), 201)


async def show(parts: Parts, scope: Scope, _receive: Receive, send: Send) -> None:
    """GET /v1/orders/{order}."""
    await send_json(send, order_body(await _order(parts, scope)))


async def pay(parts: Parts, scope: Scope, _receive: Receive, send: Send) -> None:
    """POST /v1/orders/{order}/pay."""
    visitor = required_visitor(parts, headers_of(scope))
    try:
        answer = await parts.checkout.pay(scope["path_params"]["order"], visitor)
    except GatewayUnavailable:
        order = await parts.checkout.order(scope["path_params"]["order"], visitor)
        if order is not None:
            await _note_sale(parts, scope, order)
        raise
    if isinstance(answer, PayRefusal):
        raise _pay_problem(answer)
    await _note_sale(parts, scope, answer)
    await send_json(send, order_body(answer))


async def _note_sale(parts: Parts, scope: Scope, order: Order) -> None:
    """Tell whoever watches the checkout which sale this was about (W10); mostly a look-up."""
    if await parts.catalog.sale(order.sale) is not None:
        scope[SALE] = order.sale


async def cancel(parts: Parts, scope: Scope, _receive: Receive, send: Send) -> None:
    """POST /v1/orders/{order}/cancel."""
    order = await _order(parts, scope)
    answer = await parts.checkout.cancel(SaleRef(order.sale, order.epoch), order.id, order.buyer)
    if isinstance(answer, PayRefusal):
        raise _pay_problem(answer)
    await send_json(send, order_body(answer))


async def _order(parts: Parts, scope: Scope) -> Order:
    visitor = required_visitor(parts, headers_of(scope))
    order = await parts.checkout.order(scope["path_params"]["order"], visitor)
    if order is None:
        raise _pay_problem(PayRefusal.NO_ORDER)
    return order


def _pay_problem(refusal: PayRefusal) -> Problem:
    status, detail = _PAY_PROBLEMS[refusal]
    return Problem(status, refusal, detail)


def order_body(order: Order) -> bytes:
    """The order document."""
    payment = order.payment
    return encode(
        OrderDocument(
            id=order.id,
            sale=order.sale,
            state=order.state,
            currency=order.currency,
            currency_exponent=exponent(order.currency),
            subtotal_minor=order.subtotal_minor,
            fee_minor=order.fee_minor,
            total_minor=order.total_minor,
            refunded_minor=order.refunded_minor,
            deadline_ms=int(order.deadline.timestamp() * 1_000),
            server_time_ms=now_ms(),
            lines=[
                OrderLineDocument(
                    variant=line.variant,
                    product=line.product,
                    name=line.name,
                    quantity=line.quantity,
                    serials=line.serials,
                    price_minor=line.price_minor,
                )
                for line in order.lines
            ],
            payment=PaymentDocument(
                url=payment.url,
                state=payment.state,
                declines=payment.declines,
                attempts_left=payment.attempts_left,
                last_decline=payment.last_decline,
            )
            if payment is not None
            else None,
            email=order.email,
            name=order.name,
        )
    )
