"""Payments, sweeps, cancels and settlers at the same moment: one of them wins, never two (H7, O3)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from uuid import UUID

import pytest

from fairdrop.app import Parts
from fairdrop.checkout import Order, OrderState, StartRefusal, service, settle
from fairdrop.checkout.model import InsertOutcome, NewOrder
from fairdrop.drivers.keys import sale_key
from fairdrop.embedded import BackgroundServices
from fairdrop.ids import new_id
from fairdrop.payments import EventKind
from tests.integration.checkout.scripted_gateway import ScriptedGateway, event_of
from tests.integration.checkout.shop import (
    Shop,
    checkout_database,
    new_shop,
    same_sale,
    shop_parts,
)


@pytest.fixture
def gateway() -> ScriptedGateway:
    return ScriptedGateway()


@pytest.fixture
async def processes(
    services: BackgroundServices, gateway: ScriptedGateway
) -> AsyncIterator[tuple[Parts, Parts]]:
    """The parts of two processes of one installation."""
    url = await checkout_database(services)
    async with (
        shop_parts(services.store_url, url, gateway) as one,
        shop_parts(services.store_url, url, gateway) as two,
    ):
        yield one, two


async def pending_orders(shop: Shop, count: int) -> list[Order]:
    """Many orders in payment, made side by side."""
    buyers = [await shop.admit() for _ in range(count)]

    async def one(buyer: str) -> Order:
        order = await shop.pay(await shop.order_of(buyer, await shop.reserve(buyer)))
        assert isinstance(order, Order)
        return order

    return list(await asyncio.gather(*(one(buyer) for buyer in buyers)))


async def check_nobody_won_twice(shop: Shop, orders: Sequence[Order]) -> Counter[OrderState]:
    """Units, books, refunds and the store agree with the state of every order."""
    ends: Counter[OrderState] = Counter()
    for order in orders:
        state = (await shop.now(order)).state
        ends[state] += 1
        kinds = {entry[0] for entry in await shop.entries(order)}
        units = [unit for unit, _ in await shop.units(order)]
        refunds = await shop.refunds(order)
        assert len(await shop.events(order)) == len(set(await shop.events(order)))
        if state is OrderState.CONFIRMED:
            assert (kinds, units, refunds) == ({"PAYMENT"}, ["SOLD"], []), order
        elif state is OrderState.REFUND_PENDING:
            assert (kinds, units, len(refunds)) == ({"UNEARNED"}, [], 1), order
        else:
            assert (kinds, units, refunds) == (set(), [], []), (state, order)
    serials = [serial for _, serial in await shop.units()]
    assert len(serials) == len(set(serials))
    for hold in await shop.holds():
        await shop.make_due_in_store(hold)
    await shop.sweep()
    free, held, sold = await shop.stock()
    assert (held, sold) == (0, ends[OrderState.CONFIRMED])
    assert free + sold == shop.sale.variants[0].quantity
    return ends


# ---------------------------------------------------------------- a payment and the sweep (H7)


async def test_a_payment_and_the_sweep_never_both_win(
    processes: tuple[Parts, Parts], gateway: ScriptedGateway
) -> None:
    shop = await new_shop(processes[0], gateway, 80, accept_late=False)
    other = same_sale(shop, processes[1])
    orders = await pending_orders(shop, 80)
    ends: Counter[OrderState] = Counter()
    for group in (orders[at : at + 8] for at in range(0, 80, 8)):

        async def pay(order: Order, wait: int) -> None:
            for _ in range(wait):
                await asyncio.sleep(0)
            await shop.deliver(gateway.take_money(order.id))
            await shop.parts.settlement.settle(1)

        async def run_out(order: Order) -> None:
            await shop.let_deadline_pass(order.id)
            await other.sweep_orders()

        first, *racing, last = group
        await pay(first, 0)  # each order of events at least once, and then both at the same time
        await run_out(last)
        await asyncio.gather(
            *(pay(order, 20 * at) for at, order in enumerate([*racing, last])),
            *(run_out(order) for order in reversed([first, *racing])),
        )
        await asyncio.gather(shop.settle(), other.settle(), shop.sweep(), other.sweep())
    ends = await check_nobody_won_twice(shop, orders)
    assert set(ends) == {OrderState.CONFIRMED, OrderState.REFUND_PENDING}, "both orders of events"


@pytest.mark.parametrize("locked", [True, False])
async def test_the_lock_on_the_order_s_row_is_what_keeps_the_sweep_out(
    locked: bool,
    processes: tuple[Parts, Parts],
    gateway: ScriptedGateway,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sweep comes exactly between the settler's look and its write. Without the lock (the
    control) it frees the units of an order that is confirmed."""
    shop = await new_shop(processes[0], gateway, 3)
    other = same_sale(shop, processes[1])
    order = await shop.pending()
    await shop.let_deadline_pass(order.id)
    await shop.deliver(gateway.take_money(order.id))
    if not locked:
        unlocked = settle.SQL["lock_orders"].replace("FOR UPDATE OF o", "")
        monkeypatch.setitem(settle.SQL._statements, "lock_orders", unlocked)
    decide = settle._decide
    swept = []

    async def sweep_in_between(*arguments: object) -> None:
        await decide(*arguments)  # type: ignore[arg-type]
        swept.append(await other.sweep_orders())

    monkeypatch.setattr(settle, "_decide", sweep_in_between)
    await shop.parts.settlement.settle()
    monkeypatch.undo()
    await shop.now(order, OrderState.CONFIRMED)
    if locked:
        assert await shop.units(order) == [("SOLD", 1)]
        await check_nobody_won_twice(shop, [order])
    else:
        assert await shop.units(order) == [], "sold, and free for the next one"


async def test_a_payment_and_a_cancel_never_both_win(
    processes: tuple[Parts, Parts], gateway: ScriptedGateway
) -> None:
    shop = await new_shop(processes[0], gateway, 40)
    other = same_sale(shop, processes[1])
    orders = await pending_orders(shop, 40)

    async def cancel(order: Order, wait: int) -> None:
        for _ in range(wait):
            await asyncio.sleep(0)
        await other.cancel(order)

    async def pay(order: Order) -> None:
        await shop.deliver(gateway.take_money(order.id))
        await shop.parts.settlement.settle(1)

    for group in (orders[at : at + 8] for at in range(0, 40, 8)):
        await asyncio.gather(
            *(pay(order) for order in group),
            *(cancel(order, 15 * at) for at, order in enumerate(group)),
        )
    await shop.settle()
    ends = await check_nobody_won_twice(shop, orders)
    assert set(ends) == {OrderState.CONFIRMED, OrderState.REFUND_PENDING}


# ---------------------------------------------------------------- two settlers


async def test_settlers_side_by_side_count_every_payment_once(
    processes: tuple[Parts, Parts], gateway: ScriptedGateway
) -> None:
    """Case 26: every order's money is told three times, by events of their own, to four settlers."""
    shop = await new_shop(processes[0], gateway, 60)
    other = same_sale(shop, processes[1])
    orders = await pending_orders(shop, 60)
    events = [gateway.take_money(order.id) for _ in range(3) for order in orders]
    await asyncio.gather(*(shop.deliver(event) for event in events))

    async def settle_in_small_batches(one: Shop, limit: int) -> None:
        while await one.parts.settlement.settle(limit):
            pass

    await asyncio.gather(
        *(settle_in_small_batches(one, limit) for one in (shop, other) for limit in (3, 7))
    )
    ends = await check_nobody_won_twice(shop, orders)
    assert ends == {OrderState.CONFIRMED: 60}
    entries = await shop.entries()
    assert len(entries) == 180
    assert sum(entry[3] for entry in entries if entry[1] == "GATEWAY_CLEARING") == 60 * 4_950


async def test_settlers_side_by_side_take_late_units_once(
    processes: tuple[Parts, Parts], gateway: ScriptedGateway
) -> None:
    """Two events of each late payment, few units, two processes: no unit is taken and lost."""
    shop = await new_shop(processes[0], gateway, 12)
    other = same_sale(shop, processes[1])
    orders = await pending_orders(shop, 12)
    for order in orders:
        await shop.let_deadline_pass(order.id)
    await shop.sweep_orders()
    others = await pending_orders(shop, 5)
    for order in orders:
        await shop.deliver(gateway.take_money(order.id), gateway.take_money(order.id))

    async def settle_in_small_batches(one: Shop, limit: int) -> None:
        for _ in range(20):
            await one.parts.settlement.settle(limit)

    await asyncio.gather(
        *(settle_in_small_batches(one, limit) for one in (shop, other) for limit in (2, 3))
    )
    await shop.make_inbox_due()  # what a settler had leased for its second step
    await shop.settle()
    for order in others:
        await shop.cancel(order)
    ends = await check_nobody_won_twice(shop, [*orders, *others])
    assert ends == {
        OrderState.CONFIRMED: 7,
        OrderState.REFUND_PENDING: 5,
        OrderState.CANCELLED: 5,
    }


async def test_drain_settles_everything_that_is_due(
    processes: tuple[Parts, Parts], gateway: ScriptedGateway
) -> None:
    shop = await new_shop(processes[0], gateway, 30)
    orders = await pending_orders(shop, 30)
    await shop.settle()
    await asyncio.gather(*(shop.deliver(gateway.take_money(order.id)) for order in orders))
    settled = await asyncio.gather(*(one.settlement.drain(4) for one in processes))
    assert sum(settled) >= 30
    assert await processes[0].settlement.drain(4) == 0
    ends = await check_nobody_won_twice(shop, orders)
    assert ends == {OrderState.CONFIRMED: 30}


async def test_declines_in_many_batches_at_once_are_each_counted(
    processes: tuple[Parts, Parts], gateway: ScriptedGateway
) -> None:
    shop = await new_shop(processes[0], gateway, 3, payment_attempts=20)
    order = await shop.pending()
    intent = gateway.intent_of(order.id)
    events = [event_of(intent, EventKind.FAILED, decline_code="no") for _ in range(12)]
    await shop.deliver(*events)
    await asyncio.gather(*(one.settlement.settle(1) for one in processes * 6))
    await shop.settle()
    waiting = await shop.now(order, OrderState.PAYMENT_PENDING)
    assert waiting.payment is not None
    assert waiting.payment.declines == 12


# ---------------------------------------------------------------- one admission, one order (W13)


async def test_two_holds_of_each_admission_in_two_processes_make_one_order_each(
    processes: tuple[Parts, Parts], gateway: ScriptedGateway
) -> None:
    """Batches meet the admissions in opposite order: a deadlock costs a retry, never an error."""
    shop = await new_shop(processes[0], gateway, 120, buyer_limit=9)
    other = same_sale(shop, processes[1])
    buyers = [await shop.admit() for _ in range(30)]
    first = {buyer: await shop.reserve(buyer) for buyer in buyers}
    key = sale_key(shop.sale.id, shop.sale.epoch, "admhold")
    await shop.parts.store.redis.delete(key)  # the store forgets which holds admissions have
    second = {buyer: await shop.reserve(buyer) for buyer in reversed(buyers)}
    answers = await asyncio.gather(
        *(shop.start(buyer, first[buyer]) for buyer in buyers),
        *(other.start(buyer, second[buyer]) for buyer in buyers),
    )
    for one, two in zip(answers[:30], answers[30:], strict=True):
        assert sorted(isinstance(answer, Order) for answer in (one, two)) == [False, True]
        assert StartRefusal.ALREADY_ORDERED in (one, two)
    rows = await shop.fetch(
        "SELECT admission, count(*) FROM orders WHERE sale_id = $1 GROUP BY admission",
        UUID(shop.sale.id),
    )
    assert len(rows) == 30
    assert {row["count"] for row in rows} == {1}
    assert await shop.stock() == (90, 30, 0)
    assert len(await shop.units()) == 30


async def test_batches_that_meet_admissions_in_opposite_order_cost_a_retry_and_no_error(
    processes: tuple[Parts, Parts], gateway: ScriptedGateway
) -> None:
    """A deadlock, made certain: both batches have written their first order and stand before their
    second one, which a third transaction holds up, when that one goes away."""
    shop = await new_shop(processes[0], gateway, 20, buyer_limit=9)
    buyers = [await shop.admit() for _ in range(3)]
    ids = sorted(new_id() for _ in range(6))  # rows are written in the order of their ids
    first, second = ids[:3], ids[3:]
    for buyer, hold in zip(buyers, first, strict=True):
        await shop.try_reserve(buyer, 1, hold=hold)
    key = sale_key(shop.sale.id, shop.sale.epoch, "admhold")
    await shop.parts.store.redis.delete(key)
    for buyer, hold in zip(buyers[::-1], second, strict=True):
        await shop.try_reserve(buyer, 1, hold=hold)

    async def orders(holds: list[str], names: list[str]) -> list[NewOrder]:
        started = [
            await shop.parts.inventory.start(shop.sale.ref, hold, buyer)
            for hold, buyer in zip(holds, names, strict=True)
        ]
        return [
            service._new_order(shop.sale, hold, buyer, one, None, None)
            for hold, buyer, one in zip(holds, names, started, strict=True)
        ]

    batches = await orders(first, buyers), await orders(second, buyers[::-1])
    async with shop.parts.database.connection() as connection:
        in_the_way = connection.transaction()
        await in_the_way.start()
        await connection.execute(
            "INSERT INTO orders (id, sale_id, buyer, admission, state, currency, subtotal_minor,"
            " fee_minor, total_minor, deadline)"
            " VALUES (uuidv7(), $1, 'x', $2, 'RESERVED', 'EUR', 0, 0, 0, now())",
            UUID(shop.sale.id),
            shop.admissions[buyers[1]],
        )
        inserts = asyncio.gather(
            *(
                parts.checkout._insert.submit(order)
                for parts, batch in zip(processes, batches, strict=True)
                for order in batch
            )
        )
        async with asyncio.timeout(30):
            while await connection.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted") < 2:
                await asyncio.sleep(0.01)
        await in_the_way.rollback()
    outcomes = [inserted.outcome for inserted in await inserts]
    assert outcomes.count(InsertOutcome.WRITTEN) == 3
    assert outcomes.count(InsertOutcome.EXISTS) == 3
    assert len(await shop.units()) == 3
