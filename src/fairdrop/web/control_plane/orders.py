"""Operations on orders: look, page through, refund (O9)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Header, Path, Query, Response

from fairdrop.checkout import OrderDesk, OrderState, RefundRefusal, Wanted
from fairdrop.ids import is_uuid
from fairdrop.web.wire import Problem

from .bodies import RefundBody
from .documents import (
    OrderHistoryDocument,
    OrderPage,
    RefundDocument,
    history_document,
    order_document,
    refund_document,
)
from .problems import BAD_BODY, CONFLICT, NOT_FOUND
from .sales import ACTOR, SaleName

if TYPE_CHECKING:
    from fairdrop.app import Parts

OrderId = Annotated[str, Path(max_length=64, description="The order's id.")]
_KEY = re.compile(r"[A-Za-z0-9_-]{1,64}")
_REFUSALS = {
    RefundRefusal.NO_ORDER: (404, "There is no order of this id."),
    RefundRefusal.NOT_REFUNDABLE: (409, "Only a confirmed order can be refunded."),
    RefundRefusal.UNDER_WAY: (
        409,
        "A refund of this order is on its way; ask again when the gateway has paid it.",
    ),
    RefundRefusal.TOO_MUCH: (422, "That is more than came in and has not gone back yet."),
    RefundRefusal.NOT_PAYABLE: (422, "The gateway cannot pay this amount to the minor unit."),
    RefundRefusal.NOT_THEIR_UNIT: (
        422,
        "A unit is not of this order, or its money went back already.",
    ),
    RefundRefusal.KEY_REUSED: (422, "This Idempotency-Key came with another request before."),
}


def router(parts: Parts) -> APIRouter:
    """The routes of orders."""
    desk, refunds = OrderDesk(parts.database), parts.refunds
    routes = APIRouter(tags=["orders"])

    @routes.get("/sales/{sale}/orders", responses=NOT_FOUND)
    async def list_orders(
        sale: SaleName,
        state: Annotated[OrderState | None, Query(description="Only those in this state.")] = None,
        limit: Annotated[int, Query(ge=1, le=500, description="Orders of a page.")] = 100,
        after: Annotated[
            str | None, Query(max_length=64, description="`next` of the page before.")
        ] = None,
    ) -> OrderPage:
        """A page of a sale's orders, oldest first."""
        if after is not None and not is_uuid(after):
            raise Problem(422, "invalid_request", "query.after: It is the `next` of a page.")
        named = await parts.catalog.sale(sale)
        if named is None:
            raise Problem(404, "no_such_sale", "There is no sale of this id or slug.")
        found = await desk.page(named.id, state=state, after=after, limit=limit)
        return OrderPage(
            orders=[order_document(each) for each in found],
            next=found[-1].id if len(found) == limit else None,
        )

    @routes.get("/orders/{order}", responses=NOT_FOUND)
    async def show_order(order: OrderId) -> OrderHistoryDocument:
        """One order with its transitions, payment, refunds and ledger entries."""
        history = await desk.history(order)
        if history is None:
            raise _refused(RefundRefusal.NO_ORDER)
        return history_document(history)

    @routes.post(
        "/orders/{order}/refund",
        status_code=201,
        responses={200: {"description": "The refund of this key, granted before."}}
        | BAD_BODY
        | NOT_FOUND
        | CONFLICT,
    )
    async def refund_order(
        order: OrderId,
        body: RefundBody,
        response: Response,
        key: Annotated[
            str | None,
            Header(
                alias="Idempotency-Key",
                description="Required: 1 to 64 letters, digits, - or _. The same request again with"
                " the same key gives the same refund, with status 200.",
            ),
        ] = None,
    ) -> RefundDocument:
        """Give part or all of a confirmed order's money back.

        All that is left, an amount, or single units at their price. Of the booking fee its share goes
        back too, unless it is kept. It is booked at once; the gateway pays it out within seconds.
        Never more goes back than came in, refunds on their way included. Units stay with the order
        unless they are put on sale again.
        """
        if key is None or _KEY.fullmatch(key) is None:
            raise Problem(
                400,
                "idempotency_key_required",
                "Send an Idempotency-Key of 1 to 64 letters, digits, - or _, and the same one when"
                " you repeat the request.",
            )
        wanted = Wanted(
            amount_minor=body.amount_minor,
            units=[(unit.variant, unit.serial) for unit in body.units or ()],
            to_pool=body.to_pool,
            keep_fee=body.keep_fee,
            reason=body.reason,
        )
        answer = await refunds.grant(order, wanted, key=key, actor=ACTOR)
        if isinstance(answer, RefundRefusal):
            raise _refused(answer)
        if answer.replayed:
            response.status_code = 200
        return refund_document(answer.refund)

    return routes


def _refused(refusal: RefundRefusal) -> Problem:
    status, detail = _REFUSALS[refusal]
    return Problem(status, refusal, detail)
