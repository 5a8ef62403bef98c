"""Differences of a gateway's record from ours."""

from __future__ import annotations

import msgspec

from fairdrop.audit import Kind
from fairdrop.ids import new_id
from fairdrop.payments import GatewayCharge, GatewayRefund
from tests.integration.audit.busy_shop import BusyShop
from tests.integration.audit.planting import planted


def a_charge(shop: BusyShop, reference: str, amount_minor: int, **more: object) -> GatewayCharge:
    charge = GatewayCharge(
        id=f"ch_{new_id()}",
        intent=f"pi_{new_id()}",
        reference=reference,
        amount_minor=amount_minor,
        currency="EUR",
        created_ms=0,
    )
    return msgspec.structs.replace(charge, **more)


@planted(Kind.PAID_WITHOUT_ORDER)
async def somebody_paid_for_an_order_that_is_not_there(shop: BusyShop) -> None:
    shop.gateway.taken.append(a_charge(shop, new_id(), 100))


@planted(Kind.PAID_WITHOUT_ORDER)
async def somebody_paid_for_an_order_that_expired(shop: BusyShop) -> None:
    shop.gateway.taken.append(a_charge(shop, shop.orders["expired"].id, 4_950))


@planted(Kind.PAID_WITHOUT_ORDER)
async def somebody_paid_long_ago_and_nobody_noticed(shop: BusyShop) -> None:
    shop.gateway.taken.append(a_charge(shop, shop.orders["pending"].id, 9_900))


@planted(Kind.DUPLICATE_CHARGE)
async def somebody_paid_twice(shop: BusyShop) -> None:
    order = shop.orders["confirmed"]
    shop.gateway.taken.append(a_charge(shop, order.id, order.total_minor))


@planted(Kind.CHARGE_AMOUNT)
async def somebody_paid_another_amount(shop: BusyShop) -> None:
    taken = shop.gateway.taken
    taken[0] = msgspec.structs.replace(taken[0], amount_minor=taken[0].amount_minor - 1)


@planted(Kind.CHARGE_AMOUNT)
async def somebody_paid_in_another_currency(shop: BusyShop) -> None:
    shop.gateway.taken[0] = msgspec.structs.replace(shop.gateway.taken[0], currency="USD")


@planted(Kind.CHARGE_AMOUNT)
async def somebody_whose_money_went_back_had_paid_less(shop: BusyShop) -> None:
    taken, late = shop.gateway.taken, shop.orders["late"].id
    at = next(at for at, charge in enumerate(taken) if charge.reference == late)
    taken[at] = msgspec.structs.replace(taken[at], amount_minor=taken[at].amount_minor - 1)


@planted(Kind.ORDER_WITHOUT_CHARGE)
async def an_order_was_confirmed_that_nobody_paid(shop: BusyShop) -> None:
    del shop.gateway.taken[0]


@planted(Kind.REFUND_UNKNOWN)
async def the_gateway_paid_a_refund_that_nobody_granted(shop: BusyShop) -> None:
    reference = new_id()
    shop.gateway.keys_of_refunds[reference] = a_refund(reference, 10)


@planted(Kind.REFUND_AMOUNT)
async def the_gateway_paid_back_another_amount(shop: BusyShop) -> None:
    refunds = shop.gateway.keys_of_refunds
    reference = next(iter(refunds))
    refunds[reference] = a_refund(reference, refunds[reference].amount_minor + 1)


@planted(Kind.REFUND_NOT_SETTLED)
async def the_gateway_paid_a_refund_and_nobody_noticed(shop: BusyShop) -> None:
    rows = await shop.fetch("SELECT id, amount_minor FROM refunds WHERE state = 'PENDING'")
    reference = str(rows[0]["id"])
    shop.gateway.keys_of_refunds[reference] = a_refund(reference, rows[0]["amount_minor"])


@planted(Kind.REFUND_NOT_AT_GATEWAY)
async def the_gateway_never_paid_a_refund(shop: BusyShop) -> None:
    refunds = shop.gateway.keys_of_refunds
    del refunds[next(iter(refunds))]


@planted(Kind.GATEWAY_NOT_CONFIGURED)
async def a_gateway_that_took_money_cannot_be_asked(shop: BusyShop) -> None:
    del shop.parts.gateways[shop.gateway.name]


def a_refund(reference: str, amount_minor: int) -> GatewayRefund:
    return GatewayRefund(
        id=f"re_{reference}",
        status="succeeded",
        intent="pi",
        reference=reference,
        amount_minor=amount_minor,
        currency="EUR",
        created_ms=0,
    )
