"""Differences among orders, units, payments and refunds, and of the ledger from them."""

from __future__ import annotations

from uuid import UUID

from fairdrop.audit import Kind
from tests.integration.audit.busy_shop import BusyShop
from tests.integration.audit.planting import key, planted, variant

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


@planted(Kind.PAYMENT_MISSING, Kind.CHARGE_AMOUNT)
async def a_confirmed_order_was_paid_in_part(shop: BusyShop) -> None:
    await shop.tamper(
        "UPDATE payments SET received_minor = received_minor - 1 WHERE order_id = $1",
        key(shop.orders["another"]),
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


@planted(Kind.ORDER_REFUND_STATE)
async def an_order_forgot_that_part_of_it_was_refunded(shop: BusyShop) -> None:
    await shop.tamper(
        "UPDATE orders SET state = 'CONFIRMED' WHERE id = $1", key(shop.orders["partly"])
    )


@planted(Kind.ORDER_REFUND_STATE, Kind.ORDER_UNEXPLAINED)
async def an_order_says_refunded_and_part_of_the_money_stayed(shop: BusyShop) -> None:
    await shop.tamper(
        "UPDATE orders SET state = 'REFUNDED' WHERE id = $1", key(shop.orders["partly"])
    )


@planted(Kind.ORDER_REFUND_STATE, Kind.ORDER_UNEXPLAINED)
async def an_order_says_partly_refunded_and_all_went_back(shop: BusyShop) -> None:
    await shop.tamper(
        "UPDATE orders SET state = 'PARTIALLY_REFUNDED' WHERE id = $1",
        key(shop.orders["refunded"]),
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


@planted(Kind.REFUND_SHARE)
async def more_of_the_fees_went_back_than_was_paid(shop: BusyShop) -> None:
    order = key(shop.orders["partly"])
    await shop.tamper("UPDATE refunds SET fee_minor = amount_minor WHERE order_id = $1", order)
    await shop.tamper(
        "DELETE FROM ledger_entries WHERE order_id = $1 AND kind = 'REFUND_OWED'"
        " AND account = 'SALES'",
        order,
    )
    await shop.tamper(
        "UPDATE ledger_entries SET debit_minor = (SELECT amount_minor FROM refunds"
        " WHERE order_id = $1) WHERE order_id = $1 AND kind = 'REFUND_OWED' AND account = 'FEES'",
        order,
    )
