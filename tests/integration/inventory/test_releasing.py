"""What is given back is what was held, once (H5, H8; case 15)."""

from __future__ import annotations

import asyncio

from fairdrop.drivers.store import Store
from fairdrop.inventory import CommitOutcome, Inventory, ReleaseOutcome, VariantFigures
from tests.driven_sale import DrivenSale
from tests.integration.inventory.accounting import assert_every_unit_is_in_one_place


async def test_five_deliveries_of_a_release_raise_the_stock_once(
    sale: DrivenSale, store_url: str
) -> None:
    await sale.load({"seat": 5})
    await sale.admit("a")
    await sale.reserve("a", ["seat", 3], hold="h")
    stores = [Store(store_url, timeout_s=30) for _ in range(5)]
    answers = await asyncio.gather(
        *(Inventory(store).release(sale.ref, "h", "a") for store in stores)
    )
    for store in stores:
        await store.close()
    assert sorted((answer.outcome, answer.units) for answer in answers) == [
        *[(ReleaseOutcome.NOTHING_HELD, 0)] * 4,
        (ReleaseOutcome.RELEASED, 3),
    ]
    assert await sale.stock("seat") == VariantFigures(5, 5, 0, 0)
    await assert_every_unit_is_in_one_place(sale, sold={})


async def test_a_release_gives_back_all_variants_and_the_buyers_limit(sale: DrivenSale) -> None:
    await sale.load({"seat": 5, "box": 5}, buyer_limit=3)
    await sale.admit("a")
    await sale.reserve("a", ["seat", 2, "box", 1], hold="one")
    assert (await sale.release("one", "a")).units == 3
    assert [figures.free for figures in (await sale.figures()).variants] == [5, 5]
    assert (await sale.reserve("a", ["seat", 3])).outcome == "RESERVED"


async def test_units_go_back_at_once_to_whoever_asks_next(sale: DrivenSale) -> None:
    await sale.load({"seat": 1})
    await sale.admit("a", "b")
    await sale.reserve("a", ["seat", 1], hold="h")
    assert (await sale.reserve("b", ["seat", 1])).outcome == "SOLD_OUT"
    await sale.release("h", "a")
    assert (await sale.reserve("b", ["seat", 1])).lines == [("seat", [1])]


async def test_a_buyer_cannot_release_what_is_being_paid(sale: DrivenSale) -> None:
    await sale.load({"seat": 5})
    await sale.admit("a")
    await sale.reserve("a", ["seat", 1], hold="h")
    await sale.start("h", "a")
    assert (await sale.release("h", "a")).outcome is ReleaseOutcome.ORDER_STARTED
    assert (await sale.stock("seat")).held == 1
    assert (await sale.free("h")).outcome is ReleaseOutcome.RELEASED
    assert (await sale.free("h")).outcome is ReleaseOutcome.NOTHING_HELD
    assert await sale.stock("seat") == VariantFigures(5, 5, 0, 0)


async def test_what_is_sold_stays_sold_whatever_is_released_afterwards(sale: DrivenSale) -> None:
    await sale.load({"seat": 5})
    await sale.admit("a")
    await sale.reserve("a", ["seat", 2], hold="h")
    await sale.start("h", "a")
    assert await sale.commit("h") is CommitOutcome.COMMITTED
    assert await sale.commit("h") is CommitOutcome.NOTHING_HELD
    assert (await sale.free("h")).outcome is ReleaseOutcome.NOTHING_HELD
    assert (await sale.expire()).holds == 0
    assert await sale.stock("seat") == VariantFigures(5, 3, 0, 2)
    await assert_every_unit_is_in_one_place(sale, sold={"seat": [1, 2]})


async def test_a_unit_that_is_another_orders_does_not_come_back_into_the_pool(
    sale: DrivenSale,
) -> None:
    """The store had forgotten that serial 2 was taken; the database knew (H8)."""
    await sale.load({"seat": 4, "box": 1})
    await sale.admit("a", "b")
    await sale.reserve("a", ["seat", 3, "box", 1], hold="h")
    await sale.start("h", "a")
    freed = await sale.free("h", lost=["seat", 2])
    assert (freed.outcome, freed.units) == (ReleaseOutcome.RELEASED, 3)
    assert await sale.stock("seat") == VariantFigures(4, 3, 0, 1)
    assert await sale.stock("box") == VariantFigures(1, 1, 0, 0)
    await assert_every_unit_is_in_one_place(sale, sold={"seat": [2]})
    answer = await sale.reserve("b", ["seat", 3])
    assert sorted(answer.lines[0][1]) == [1, 3, 4]


async def test_a_replacement_is_held_under_the_limit_of_its_buyer(sale: DrivenSale) -> None:
    """After a conflict other units are taken: the buyer's limit counts them once."""
    await sale.load({"seat": 5}, buyer_limit=2)
    await sale.admit("a")
    await sale.reserve("a", ["seat", 2], hold="h")
    await sale.start("h", "a")
    await sale.free("h", lost=["seat", 1])
    assert (await sale.take_late("a", "h", ["seat", 2])).outcome == "RESERVED"
    owned = await sale.scripts.store.redis.hget(sale.key("buyer"), "a")
    assert owned == b"2"
    await assert_every_unit_is_in_one_place(sale, sold={"seat": [1]})
