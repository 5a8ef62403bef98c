"""Differences of the store: from itself, and from the database."""

from __future__ import annotations

from uuid import UUID

from fairdrop.audit import Kind
from tests.integration.audit.busy_shop import BusyShop
from tests.integration.audit.planting import key, planted, variant


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
    name, hold = await shop.a_reservation()
    await shop.write_hold(name, [*hold[:2], 1_000, *hold[3:]])


@planted(Kind.HOLD_OVERDUE)
async def a_hold_outlived_its_order(shop: BusyShop) -> None:
    """The reservation that somebody has becomes that of an order which has expired."""
    name, hold = await shop.a_reservation()
    await shop.redis.hdel(shop.key("holds"), name)
    await shop.write_hold(shop.orders["expired"].id, [hold[0], hold[1], 1_000, 1, hold[4]])


@planted(Kind.HOLD_OVERDUE)
async def the_store_was_never_told_of_a_sale(shop: BusyShop) -> None:
    order = shop.orders["another"]
    line = order.lines[0]
    hold = [order.buyer, False, 1_000, 1, [[line.variant, line.serials]]]
    await shop.write_hold(order.id, hold)
    await shop.redis.hincrby(shop.key("stk"), f"{line.variant}:h", 1)
    await shop.redis.hincrby(shop.key("stk"), f"{line.variant}:s", -1)


@planted(Kind.SERIAL_TWICE, Kind.SERIAL_LOST)
async def a_reservation_has_a_unit_that_was_sold_to_somebody_else(shop: BusyShop) -> None:
    name, hold = await shop.a_reservation()
    hold[4][0][1][0] = shop.orders["confirmed"].lines[0].serials[0]
    await shop.write_hold(name, hold)


@planted(Kind.SERIAL_TWICE)
async def a_unit_out_of_sale_is_on_sale(shop: BusyShop) -> None:
    serial = await shop.redis.lindex(f"{shop.key('ret')}:{variant(shop)}", 0)
    await shop.tamper(
        "UPDATE variants SET retired = ARRAY[$2::integer] WHERE id = $1",
        UUID(variant(shop)),
        int(serial),
    )


@planted(Kind.FREE_UNIT_TAKEN)
async def a_unit_out_of_sale_was_sold(shop: BusyShop) -> None:
    serial = shop.orders["confirmed"].lines[0].serials[0]
    await shop.tamper(
        "UPDATE variants SET retired = ARRAY[$2::integer] WHERE id = $1",
        UUID(variant(shop)),
        serial,
    )


@planted(Kind.SERIAL_UNKNOWN, Kind.SERIAL_LOST)
async def a_unit_was_sold_that_was_never_made(shop: BusyShop) -> None:
    order = key(shop.orders["another"])
    await shop.tamper("UPDATE units SET serial = 99 WHERE order_id = $1", order)
    await shop.tamper("UPDATE order_lines SET serials = '{99}' WHERE order_id = $1", order)
