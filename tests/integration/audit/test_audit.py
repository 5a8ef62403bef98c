"""The audit finds each difference that is planted, and nothing where there is none (O11)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import UUID

import msgspec
import pytest

from fairdrop.audit import Difference, Kind, audit
from fairdrop.checkout import Order
from fairdrop.ids import new_id
from fairdrop.payments import GatewayCharge, GatewayRefund
from tests.integration.audit.busy_shop import BusyShop

Plant = Callable[[BusyShop], Awaitable[None]]


async def differences(shop: BusyShop) -> list[Difference]:
    return await audit(shop.parts, pause_s=0)


async def test_a_shop_to_which_everything_has_happened_is_clean(shop: BusyShop) -> None:
    assert await differences(shop) == []


PLANTS: list[tuple[set[Kind], Plant]] = []


def planted(*kinds: Kind) -> Callable[[Plant], Plant]:
    """What the audit has to say, exactly, after this was done to a clean shop."""

    def note(plant: Plant) -> Plant:
        PLANTS.append((set(kinds), plant))
        return plant

    return note


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "plant" in metafunc.fixturenames:
        names = [plant.__name__ for _, plant in PLANTS]
        metafunc.parametrize(("kinds", "plant"), PLANTS, ids=names)


async def test_what_is_broken_is_found_and_named(
    shop: BusyShop, kinds: set[Kind], plant: Plant
) -> None:
    await plant(shop)
    found = await differences(shop)
    assert {difference.kind for difference in found} == kinds, "\n".join(
        difference.words for difference in found
    )
    for difference in found:
        assert difference.subject
        assert difference.expected != difference.found
        assert difference.kind in difference.words


def test_every_kind_of_difference_is_planted_once() -> None:
    assert set().union(*(kinds for kinds, _ in PLANTS)) == set(Kind)


def key(order: Order) -> UUID:
    return UUID(order.id)


def variant(shop: BusyShop, index: int = 0) -> str:
    return shop.sale.variants[index].id


# ------------------------------------------------------------------ the store


@planted(Kind.SALE_NOT_LOADED)
async def the_store_lost_the_sale(shop: BusyShop) -> None:
    await shop.redis.delete(shop.key("cfg"))


@planted(Kind.STOCK_SUM, Kind.STOCK_QUANTITY)
async def the_store_counts_a_unit_too_many(shop: BusyShop) -> None:
    await shop.redis.hincrby(shop.key("stk"), f"{variant(shop)}:q", 1)


@planted(Kind.STOCK_QUANTITY, Kind.SERIAL_UNKNOWN)
async def the_store_made_a_unit_that_the_catalogue_has_not(shop: BusyShop) -> None:
    for counter in ("q", "l"):
        await shop.redis.hincrby(shop.key("stk"), f"{variant(shop)}:{counter}", 1)


@planted(Kind.STOCK_SUM, Kind.STOCK_HELD)
async def the_store_counts_a_hold_that_it_has_not(shop: BusyShop) -> None:
    await shop.redis.hincrby(shop.key("stk"), f"{variant(shop)}:h", 1)


@planted(Kind.STOCK_SUM, Kind.STOCK_SOLD)
async def the_store_counts_a_sale_that_was_none(shop: BusyShop) -> None:
    await shop.redis.hincrby(shop.key("stk"), f"{variant(shop)}:s", 1)


@planted(Kind.SERIAL_TWICE, Kind.STOCK_SUM)
async def a_serial_came_back_twice(shop: BusyShop) -> None:
    returned = f"{shop.key('ret')}:{variant(shop)}"
    serial = await shop.redis.lindex(returned, 0)
    assert serial is not None
    await shop.redis.rpush(returned, serial)


@planted(Kind.SERIAL_LOST, Kind.STOCK_SUM)
async def a_serial_that_came_back_was_lost(shop: BusyShop) -> None:
    assert await shop.redis.lpop(f"{shop.key('ret')}:{variant(shop)}")


@planted(Kind.FREE_UNIT_TAKEN, Kind.STOCK_SUM)
async def a_sold_unit_is_on_sale_again(shop: BusyShop) -> None:
    serial = shop.orders["confirmed"].lines[0].serials[0]
    await shop.redis.rpush(f"{shop.key('ret')}:{variant(shop)}", serial)


@planted(Kind.HOLD_MISSING, Kind.STOCK_HELD)
async def the_store_forgot_the_hold_of_an_order(shop: BusyShop) -> None:
    await shop.redis.hdel(shop.key("holds"), shop.orders["reserved"].id)


@planted(Kind.HOLD_DIFFERS, Kind.STOCK_HELD, Kind.SERIAL_TWICE)
async def a_hold_has_a_unit_that_its_order_has_not(shop: BusyShop) -> None:
    order = shop.orders["pending"]
    hold = await shop.hold_of(order)
    hold[4][0][1].append(30)
    await shop.write_hold(order.id, hold)


@planted(Kind.HOLD_OVERDUE)
async def a_reservation_was_never_released(shop: BusyShop) -> None:
    for name, packed in (await shop.redis.hgetall(shop.key("holds"))).items():
        hold = msgspec.msgpack.decode(packed)
        if hold[3] == 0:
            hold[2] = 1_000
            await shop.write_hold(name.decode(), hold)


# ------------------------------------------------------------------ orders


@planted(Kind.ORDER_UNEXPLAINED)
async def an_order_changed_its_state_in_silence(shop: BusyShop) -> None:
    await shop.tamper(
        "DELETE FROM order_transitions WHERE order_id = $1 AND to_state = 'CANCELLED'",
        key(shop.orders["cancelled"]),
    )


@planted(Kind.ORDER_WITHOUT_LINES, Kind.UNIT_UNEXPECTED)
async def an_order_lost_its_lines(shop: BusyShop) -> None:
    await shop.tamper("DELETE FROM order_lines WHERE order_id = $1", key(shop.orders["another"]))


@planted(Kind.ORDER_SUBTOTAL)
async def a_line_has_another_price(shop: BusyShop) -> None:
    await shop.tamper(
        "UPDATE order_lines SET price_minor = price_minor + 1 WHERE order_id = $1",
        key(shop.orders["another"]),
    )


@planted(Kind.PAYMENT_MISSING)
async def a_confirmed_order_has_an_open_payment(shop: BusyShop) -> None:
    await shop.tamper(
        "UPDATE payments SET state = 'OPEN' WHERE order_id = $1", key(shop.orders["another"])
    )


@planted(
    Kind.PAYMENT_UNUSED,
    Kind.REFUND_UNKNOWN,
    Kind.PAID_WITHOUT_ORDER,
    Kind.ENTRY_UNEXPECTED,
    Kind.ORDER_REFUNDED_SUM,
    Kind.ORDER_REFUND_STATE,
)
async def money_of_a_cancelled_order_was_kept(shop: BusyShop) -> None:
    await shop.tamper("DELETE FROM refunds WHERE order_id = $1", key(shop.orders["late"]))


@planted(
    Kind.REFUND_EXCEEDS_PAYMENT,
    Kind.REFUND_NOT_AT_GATEWAY,
    Kind.ORDER_REFUNDED_SUM,
    Kind.ENTRY_MISSING,
)
async def more_went_back_than_came_in(shop: BusyShop) -> None:
    await shop.tamper(
        "INSERT INTO refunds SELECT gen_random_uuid(), order_id, gateway, intent_id, 1, currency,"
        " reason, state FROM refunds WHERE order_id = $1",
        key(shop.orders["refunded"]),
    )


@planted(Kind.ORDER_REFUNDED_SUM)
async def an_order_says_another_sum_than_its_refunds(shop: BusyShop) -> None:
    await shop.tamper(
        "UPDATE orders SET refunded_minor = refunded_minor + 1 WHERE id = $1",
        key(shop.orders["partly"]),
    )


@planted(Kind.ORDER_REFUND_STATE)
async def a_refund_is_on_its_way_and_the_order_does_not_say_so(shop: BusyShop) -> None:
    await shop.tamper(
        "UPDATE orders SET state = 'CONFIRMED' WHERE id = $1", key(shop.orders["refunding"])
    )


@planted(Kind.UNIT_MISSING, Kind.STOCK_SOLD, Kind.SERIAL_LOST)
async def a_unit_row_of_a_confirmed_order_is_gone(shop: BusyShop) -> None:
    order = shop.orders["confirmed"]
    await shop.tamper(
        "DELETE FROM units WHERE order_id = $1 AND serial = $2",
        key(order),
        order.lines[0].serials[0],
    )


@planted(Kind.UNIT_STATE, Kind.STOCK_SOLD)
async def a_unit_of_a_confirmed_order_is_only_held(shop: BusyShop) -> None:
    order = shop.orders["another"]
    await shop.tamper("UPDATE units SET state = 'HELD' WHERE order_id = $1", key(order))


@planted(Kind.UNIT_UNEXPECTED, Kind.FREE_UNIT_TAKEN)
async def an_order_that_is_over_has_a_unit(shop: BusyShop) -> None:
    await shop.tamper(
        "INSERT INTO units VALUES ($1, 30, $2, 'HELD')",
        UUID(variant(shop)),
        key(shop.orders["expired"]),
    )


@planted(Kind.SOLD_TWICE, Kind.UNIT_MISSING, Kind.UNIT_UNEXPECTED)
async def two_orders_say_that_they_have_one_unit(shop: BusyShop) -> None:
    one, other = shop.orders["confirmed"], shop.orders["another"]
    await shop.tamper(
        "UPDATE order_lines SET serials = $2 WHERE order_id = $1",
        key(other),
        one.lines[0].serials[:1],
    )


# ------------------------------------------------------------------ the ledger


@planted(Kind.POSTING_UNBALANCED, Kind.ENTRY_AMOUNT, Kind.REVENUE)
async def a_posting_does_not_balance(shop: BusyShop) -> None:
    await shop.tamper(
        "UPDATE ledger_entries SET credit_minor = credit_minor + 1"
        " WHERE order_id = $1 AND kind = 'PAYMENT' AND account = 'SALES'",
        key(shop.orders["confirmed"]),
    )


@planted(Kind.ENTRY_MISSING, Kind.REVENUE)
async def a_confirmed_order_was_never_booked(shop: BusyShop) -> None:
    await shop.tamper("DELETE FROM ledger_entries WHERE order_id = $1", key(shop.orders["another"]))


@planted(Kind.ENTRY_UNEXPECTED)
async def something_was_booked_that_nothing_stands_for(shop: BusyShop) -> None:
    await shop.tamper(
        "INSERT INTO ledger_entries SELECT gen_random_uuid(), 'UNEARNED', account, order_id, sale_id,"
        " currency, debit_minor, credit_minor FROM ledger_entries"
        " WHERE order_id = $1 AND kind = 'UNEARNED' AND account = 'GATEWAY_CLEARING' UNION ALL"
        " SELECT gen_random_uuid(), 'UNEARNED', account, order_id, sale_id, currency, debit_minor,"
        " credit_minor FROM ledger_entries WHERE false",
        key(shop.orders["late"]),
    )
    # Its other side, so that it balances.
    await shop.tamper(
        "INSERT INTO ledger_entries SELECT reference, kind, 'DISPUTES', order_id, sale_id, currency,"
        " credit_minor, debit_minor FROM ledger_entries WHERE reference NOT IN"
        " (SELECT id FROM refunds) AND kind = 'UNEARNED'"
    )


@planted(Kind.REVENUE, Kind.ENTRY_AMOUNT)
async def fees_were_booked_as_sales(shop: BusyShop) -> None:
    await shop.tamper(
        "UPDATE ledger_entries SET credit_minor = credit_minor"
        " + CASE account WHEN 'SALES' THEN 10 ELSE -10 END"
        " WHERE order_id = $1 AND kind = 'PAYMENT' AND account IN ('SALES', 'FEES')",
        key(shop.orders["confirmed"]),
    )


@planted(Kind.REFUND_SHARE)
async def a_refund_took_nothing_from_the_fees(shop: BusyShop) -> None:
    await shop.tamper(
        "UPDATE ledger_entries SET debit_minor = debit_minor"
        " + CASE account WHEN 'SALES' THEN 1 ELSE -1 END"
        " WHERE order_id = $1 AND kind = 'REFUND_OWED' AND account IN ('SALES', 'FEES')",
        key(shop.orders["partly"]),
    )


# ------------------------------------------------------------------ the gateway


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
