"""Many buyers, few units, all at once: never a unit too many (H1), and a proof that this can fail."""

from __future__ import annotations

from fairdrop.drivers.store import Store
from fairdrop.ids import new_id
from fairdrop.inventory import Inventory, Reservation, ReserveOutcome
from tests.concurrency.crowd import all_at_once, connections
from tests.driven_sale import DrivenSale
from tests.integration.inventory.accounting import assert_every_unit_is_in_one_place

BUYERS = 40
UNITS = 25


async def test_parallel_buyers_get_exactly_the_units_there_are(
    sale: DrivenSale, store_url: str
) -> None:
    """The last units are partly fresh and partly returned; requests are for one, two or three."""
    await sale.load({"seat": UNITS}, order_limit=UNITS, buyer_limit=UNITS)
    sale.now_ms = 0  # the store's own time, as in production
    people = [f"v{n}" for n in range(BUYERS)]
    await sale.admit("first", *people)
    await sale.reserve("first", ["seat", 10], hold="first")
    await sale.release("first", "first")

    async def buy(store: Store, number: int) -> Reservation:
        request = sale.request(people[number], ["seat", 1 + number % 3])
        return await Inventory(store).reserve(sale.ref, request)

    async with connections(store_url, BUYERS) as stores:
        answers = await all_at_once(stores, buy)
    serials = [serial for answer in answers for _, line in answer.lines for serial in line]
    assert sorted(serials) == list(range(1, UNITS + 1))
    assert {answer.outcome for answer in answers} == {
        ReserveOutcome.RESERVED,
        ReserveOutcome.SOLD_OUT,
    }
    figures = await sale.stock("seat")
    assert (figures.free, figures.held) == (0, UNITS)
    await assert_every_unit_is_in_one_place(sale, sold={})


async def test_parallel_buyers_and_releases_lose_no_unit(sale: DrivenSale, store_url: str) -> None:
    await sale.load({"seat": 5})
    sale.now_ms = 0
    people = [f"v{n}" for n in range(BUYERS)]
    await sale.admit(*people)

    async def buy_and_give_back(store: Store, number: int) -> int:
        inventory = Inventory(store)
        got = 0
        for _ in range(5):
            hold = new_id()
            request = sale.request(people[number], ["seat", 1], hold=hold)
            if (await inventory.reserve(sale.ref, request)).outcome is ReserveOutcome.RESERVED:
                got += 1
                assert (await inventory.release(sale.ref, hold, people[number])).units == 1
        return got

    async with connections(store_url, BUYERS) as stores:
        got = await all_at_once(stores, buy_and_give_back)
    assert sum(got) >= 5
    assert (await sale.stock("seat")).free == 5
    await assert_every_unit_is_in_one_place(sale, sold={})


async def test_check_and_take_in_two_steps_oversells(sale: DrivenSale, store_url: str) -> None:
    """The negative control: the same crowd, and a reserve that first looks and then takes.

    If this ever sold the right number, the crowd above would prove nothing.
    """
    await sale.load({"seat": UNITS})
    stock, free, held = sale.key("stk"), sale.key("stk", ":free"), sale.key("stk", ":taken")
    await sale.scripts.store.redis.set(free, UNITS)

    async def look_then_take(store: Store, number: int) -> bool:
        units = 1 + number % 3
        if int(await store.redis.get(free) or 0) < units:
            return False
        await store.redis.decrby(free, units)
        await store.redis.incrby(held, units)
        return True

    async with connections(store_url, BUYERS) as stores:
        await all_at_once(stores, look_then_take)
    assert int(await sale.scripts.store.redis.get(held) or 0) > UNITS
    await sale.scripts.store.redis.delete(free, held, stock)
