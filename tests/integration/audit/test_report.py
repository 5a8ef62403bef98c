"""The figures of a sale come from the store, the database and the gateways' records (O11)."""

from __future__ import annotations

from dataclasses import asdict
from uuid import UUID

import pytest

from fairdrop.audit import Kind, Report, audit, figures, service
from fairdrop.checkout import OrderState
from fairdrop.checkout.model import late_hold
from fairdrop.clock import now_ms
from fairdrop.errors import StoreUnavailable
from fairdrop.ids import new_id
from tests.integration.audit.busy_shop import BusyShop
from tests.integration.audit.plants_gateway import a_charge
from tests.integration.checkout.shop import new_shop


async def report(shop: BusyShop) -> Report:
    return await figures(shop.parts, shop.sale.id)


async def test_the_figures_of_a_sale_to_which_everything_has_happened(shop: BusyShop) -> None:
    found = await report(shop)
    # Paid: 2x45+80, 45, 2x45, 2x80, 45, each with a fee of 10 %; back: 12.34, 176.00, 5.00.
    sales, fees, back = 17_000 + 4_500 + 9_000 + 16_000 + 4_500, 5_100, 1_234 + 17_600 + 500
    assert asdict(found) == {
        "units_total": 50,
        "units_sold": 9,
        "units_held": 7,
        "units_free": 34,
        "oversold": 0,
        "orders_open": 2,
        "orders_confirmed": 2,
        "orders_expired": 1,
        "orders_failed": 1,
        "orders_cancelled": 1,
        "orders_refunded": 2,
        "orders_partially_refunded": 1,
        "refunds_pending": 1,
        "paid_without_order": 0,
        "duplicate_charges": 0,
        "ledger_debits_minor": found.ledger_credits_minor,
        "ledger_credits_minor": sales + fees + 4_950 + back + 1_234 + 17_600 + 4_950,
        "ledger_variance_minor": 0,
        "revenue_minor": sales - (1_122 + 16_000 + 455),
        "fees_minor": fees - (112 + 1_600 + 45),
        "currency": "EUR",
        "joined": 13,
        "admitted": 13,
    }


async def test_a_sale_is_found_by_its_slug_and_one_that_is_not_there_is_told(
    shop: BusyShop,
) -> None:
    assert await figures(shop.parts, shop.sale.slug) == await report(shop)
    with pytest.raises(LookupError):
        await figures(shop.parts, "none")


async def test_another_sale_does_not_show_in_the_figures(shop: BusyShop) -> None:
    before = await report(shop)
    other = await new_shop(shop.parts, shop.gateway, 5)
    order = await other.paid(2)
    shop.gateway.taken.append(a_charge(shop, order.id, order.total_minor))
    assert await report(shop) == before
    assert (await figures(shop.parts, other.sale.id)).duplicate_charges == 1


async def test_differences_of_another_sale_can_be_left_out(shop: BusyShop) -> None:
    other = await new_shop(shop.parts, shop.gateway, 5)
    await shop.redis.hincrby(shop.key("stk"), f"{shop.sale.variants[0].id}:h", 1)
    assert await audit(shop.parts, other.sale.id, pause_s=0) == []
    assert len(await audit(shop.parts, shop.sale.id, pause_s=0)) == 2


async def test_a_hold_that_never_became_an_order_is_no_expired_order(shop: BusyShop) -> None:
    buyer = await shop.admit()
    hold = await shop.reserve(buyer)
    await shop.parts.inventory.start(shop.sale.ref, hold, buyer)
    await shop.make_due_in_store(hold)
    await shop.sweep()
    assert (await shop.fetch("SELECT state FROM orders WHERE id = $1", UUID(hold)))[0][
        0
    ] == "EXPIRED"
    assert (await report(shop)).orders_expired == 1
    assert await audit(shop.parts, pause_s=0) == []


# ------------------------------------------------------------------ oversold


async def test_a_serial_that_two_confirmed_orders_have_is_oversold(shop: BusyShop) -> None:
    serials = shop.orders["confirmed"].lines[0].serials[:1]
    await shop.tamper(
        "UPDATE order_lines SET serials = $2 WHERE order_id = $1",
        UUID(shop.orders["another"].id),
        serials,
    )
    assert (await report(shop)).oversold == 1


@pytest.mark.parametrize("serial", [31, 1_000])
async def test_a_serial_that_was_never_made_is_oversold(shop: BusyShop, serial: int) -> None:
    await shop.tamper(
        "UPDATE units SET serial = $2 WHERE order_id = $1", UUID(shop.orders["another"].id), serial
    )
    assert (await report(shop)).oversold == 1


async def test_a_serial_that_was_taken_out_of_sale_is_oversold(shop: BusyShop) -> None:
    await shop.tamper(
        "UPDATE variants SET retired = $2 WHERE id = $1",
        UUID(shop.sale.variants[0].id),
        shop.orders["another"].lines[0].serials,
    )
    assert (await report(shop)).oversold == 1


async def test_more_units_sold_than_there_are_is_oversold(shop: BusyShop) -> None:
    sold = sum(
        line.quantity
        for word in ("confirmed", "another", "partly", "refunding")
        for line in shop.orders[word].lines
        if line.variant == shop.sale.variants[0].id
    )
    await shop.tamper(
        "UPDATE variants SET quantity = $2 WHERE id = $1", UUID(shop.sale.variants[0].id), sold - 2
    )
    assert (await report(shop)).oversold == 2


# ------------------------------------------------------------------ money


async def test_charges_that_became_nothing_and_second_charges_are_counted_at_the_gateway(
    shop: BusyShop,
) -> None:
    taken = shop.gateway.taken
    taken.append(a_charge(shop, new_id(), 1))
    taken.append(a_charge(shop, "not even an order's id", 1))
    taken.append(a_charge(shop, shop.orders["failed"].id, 4_950))
    taken.append(a_charge(shop, shop.orders["confirmed"].id, 1))
    taken.append(a_charge(shop, shop.orders["confirmed"].id, 1))
    found = await report(shop)
    assert (found.paid_without_order, found.duplicate_charges) == (3, 2)


async def test_books_that_do_not_balance_show_by_how_much(shop: BusyShop) -> None:
    await shop.tamper(
        "UPDATE ledger_entries SET debit_minor = debit_minor + 7"
        " WHERE order_id = $1 AND kind = 'PAYMENT' AND account = 'GATEWAY_CLEARING'",
        UUID(shop.orders["another"].id),
    )
    found = await report(shop)
    assert found.ledger_variance_minor == 7
    assert found.ledger_debits_minor - found.ledger_credits_minor == 7


async def test_one_currency_does_not_make_up_for_another(shop: BusyShop) -> None:
    await shop.tamper(
        "UPDATE ledger_entries SET currency = 'USD'"
        " WHERE order_id = $1 AND kind = 'PAYMENT' AND account = 'GATEWAY_CLEARING'",
        UUID(shop.orders["another"].id),
    )
    assert (await report(shop)).ledger_variance_minor == 2 * 4_950


# ------------------------------------------------------------------ what is on its way


async def test_money_that_may_be_on_its_way_is_no_difference_but_is_counted(
    shop: BusyShop,
) -> None:
    pending = shop.orders["pending"]
    charge = a_charge(shop, pending.id, pending.total_minor, created_ms=now_ms())
    shop.gateway.taken.append(charge)
    assert await audit(shop.parts, pause_s=0) == []
    late = await audit(shop.parts, in_flight_ms=0, pause_s=0)
    assert [difference.kind for difference in late] == [Kind.PAID_WITHOUT_ORDER]
    assert (await report(shop)).paid_without_order == 1


async def test_what_is_well_at_a_second_look_is_no_difference(
    shop: BusyShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    counter = f"{shop.sale.variants[0].id}:h"
    await shop.redis.hincrby(shop.key("stk"), counter, 1)
    compare, looks = service._compare, 0

    async def healing(*arguments: object) -> object:
        nonlocal looks
        found = await compare(*arguments)  # type: ignore[arg-type]
        looks += 1
        await shop.redis.hincrby(shop.key("stk"), counter, -1)
        return found

    monkeypatch.setattr(service, "_compare", healing)
    assert await audit(shop.parts, pause_s=0) == []
    assert looks == 2


async def test_an_audit_while_people_buy_finds_nothing(shop: BusyShop) -> None:
    import asyncio

    async def buy() -> None:
        for _ in range(4):
            await shop.paid(1)

    async with asyncio.timeout(60):
        buying = asyncio.gather(buy(), buy())
        rounds = 0
        while not buying.done() or rounds < 2:
            rounds += 1
            found = await audit(shop.parts, pause_s=0.05)
            assert found == [], [difference.words for difference in found]
        await buying


async def test_a_hold_that_the_store_was_not_told_about_may_wait_for_its_sweep(
    shop: BusyShop,
) -> None:
    order = shop.orders["pending"]
    hold = await shop.redis.hget(shop.key("holds"), order.id)
    stock = await shop.redis.hgetall(shop.key("stk"))
    await shop.deliver(shop.gateway.take_money(order.id))
    await shop.settle()
    # As if the process had died before it told the store.
    await shop.redis.hset(shop.key("holds"), order.id, hold)
    await shop.redis.hset(shop.key("stk"), mapping=stock)
    assert await audit(shop.parts, pause_s=0) == []
    overdue = await audit(shop.parts, grace_ms=-10_000_000, pause_s=0)
    assert Kind.HOLD_OVERDUE in {difference.kind for difference in overdue}
    await shop.make_due_in_store(order.id)
    await shop.sweep()
    assert (await report(shop)).units_sold == 11
    assert await audit(shop.parts, pause_s=0) == []


async def test_money_that_came_late_and_bought_units_anew_is_no_difference(
    shop: BusyShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even while the store has yet to hear of any of it, and has holds of the order."""
    order = await shop.pending(2)
    event = shop.gateway.take_money(order.id)

    async def away(*_: object) -> None:
        raise StoreUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr(shop.parts.inventory, "free", away)
        patch.setattr(shop.parts.inventory, "commit", away)
        await shop.let_deadline_pass(order.id, store=False)
        await shop.sweep_orders()
        await shop.deliver(event)
        await shop.settle()
    await shop.now(order, OrderState.CONFIRMED)
    holds = {order.id, late_hold(order.id)} & set(await shop.holds())
    assert holds
    assert await audit(shop.parts, pause_s=0) == []
    for hold in holds:
        await shop.make_due_in_store(hold)
    await shop.sweep()
    assert not {order.id, late_hold(order.id)} & set(await shop.holds())
    assert await audit(shop.parts, pause_s=0) == []


async def test_a_store_that_was_rebuilt_from_the_database_agrees_with_it(shop: BusyShop) -> None:
    before = await report(shop)
    await shop.redis.delete(shop.key("cfg"))
    await shop.parts.loader.keep_loaded(shop.sale)
    assert await audit(shop.parts, pause_s=0) == []
    after = await figures(shop.parts, shop.sale.id)
    # Only the reservation that had no order yet is gone (H8).
    assert (after.units_held, after.units_sold) == (before.units_held - 3, before.units_sold)
    assert after.units_free == before.units_free + 3
