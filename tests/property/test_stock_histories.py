"""Whatever dies or is paused in between: free + held + sold = total, and no unit is in two places."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairdrop.drivers.store import Store
from fairdrop.inventory import VariantFigures
from tests.integration.inventory.accounting import assert_every_unit_is_in_one_place
from tests.property.searching import histories, on_the_store, pick
from tests.property.shop import BUYERS, VARIANTS, Job, Shop

Step = tuple[str, Any]
buyers, variants = st.sampled_from(BUYERS), st.sampled_from(VARIANTS)
lines = st.dictionaries(variants, st.integers(1, 2), min_size=1)
some = st.integers(0, 9)  # one of those there are

steps = st.one_of(
    st.tuples(st.just("buy"), st.tuples(buyers, st.sampled_from("xyz"), lines)),
    st.tuples(st.just("buy"), st.tuples(buyers, st.sampled_from("xyz"), lines)),
    st.tuples(st.just("order"), st.tuples(buyers, st.sampled_from("xyz"), lines)),
    st.tuples(st.just("settle"), some),
    st.tuples(st.just("settle late"), st.tuples(some, st.integers(0, 4))),
    st.tuples(st.sampled_from(["begin_payment", "cancel", "release"]), some),
    st.tuples(st.sampled_from(["sweep", "expire_orders"]), st.none()),
    st.tuples(st.just("go on"), some),
    st.tuples(st.just("go on"), some),
    st.tuples(st.just("finish"), some),
    st.tuples(st.just("die"), some),
    st.tuples(st.just("pass"), st.sampled_from([1, 4_000, 10_000])),
    st.tuples(st.just("admit"), buyers),
    st.tuples(
        st.just("change"),
        st.tuples(some, st.dictionaries(variants, st.integers(0, 3), min_size=1)),
    ),
    st.tuples(st.just("restock"), st.tuples(variants, st.integers(1, 2))),
    st.tuples(st.just("reduce"), st.tuples(variants, st.integers(1, 2))),
)


class ShopHistory:
    """Interleaves the jobs of a shop, and looks at everything after every step."""

    def __init__(self, store: Store) -> None:
        self.shop = Shop(store)
        self.jobs: list[Job] = []

    async def step(self, kind: str, what: Any) -> None:
        shop = self.shop
        match kind:
            case "pass":
                shop.sale.pass_ms(what)
            case "admit":
                await shop.admit(what)
            case "restock" | "reduce":
                await getattr(shop, kind)(*what)
            case "go on" | "finish" | "die":
                for job in pick(self.jobs, what):
                    await self.resume(kind, job)
            case "order":
                await self.finish(shop.buy(*what))
            case "settle late":
                number, parts = what
                for order in pick(list(shop.orders.rows), number):
                    await self.settle_late(order, parts)
            case _:
                for job in self.new_jobs(kind, what):
                    await self.begin(job)

    async def settle_late(self, order: str, parts: int) -> None:
        """What single steps rarely come to: the sweep has ended an order, its worker is paused before
        it tells the store, and the money comes; so many parts of settling it are done."""
        sale = self.shop.sale
        sale.pass_ms(max(0, self.shop.orders.rows[order].deadline_ms - sale.now_ms))
        await self.begin(self.shop.expire_orders())
        settling = self.shop.settle(order)
        await self.begin(settling)
        for _ in range(parts):
            if settling in self.jobs:
                await self.advance(settling)

    def new_jobs(self, kind: str, what: Any) -> list[Job]:
        """The job that a step begins, if there is anything to do it to."""
        shop = self.shop
        if kind == "buy":
            return [shop.buy(*what)]
        if kind == "release":
            holds = shop.model.holds
            return [shop.release(hold, holds[hold].buyer) for hold in pick(list(holds), what)]
        if kind == "change":
            number, wanted = what
            holds = shop.model.holds
            ours = [name for name, held in holds.items() if held.admission is not None]
            return [shop.change(h, holds[h].buyer, wanted) for h in pick(ours, number)]
        if kind in {"settle", "begin_payment", "cancel"}:
            return [getattr(shop, kind)(order) for order in pick(list(shop.orders.rows), what)]
        return [getattr(shop, kind)()]

    async def resume(self, kind: str, job: Job) -> None:
        if kind == "die":
            self.jobs.remove(job)
            return
        await self.advance(job)
        while kind == "finish" and job in self.jobs:
            await self.advance(job)

    async def finish(self, job: Job) -> None:
        await self.begin(job)
        while job in self.jobs:
            await self.advance(job)

    async def begin(self, job: Job) -> None:
        self.jobs.append(job)
        await self.advance(job)

    async def advance(self, job: Job) -> None:
        try:
            await anext(job)
        except StopAsyncIteration:
            self.jobs.remove(job)

    async def compare(self) -> None:
        shop = self.shop
        owned = await assert_every_unit_is_in_one_place(
            shop.sale, sold=shop.model.sold, retired=shop.model.retired
        )
        figures = await shop.sale.figures()
        assert figures.variants == [VariantFigures(*shop.model.figures(v)) for v in VARIANTS]
        assert owned == {buyer: units for buyer, units in shop.model.owned.items() if units}
        for variant, serial in shop.orders.units:
            assert serial not in shop.model.free[variant], "a unit of an order is in the pool"

    async def come_to_rest(self) -> None:
        """All workers died; new ones sweep, and time passes."""
        self.jobs.clear()
        for _ in range(4):
            self.shop.sale.pass_ms(60_000)
            for job in (self.shop.expire_orders(), self.shop.sweep()):
                await self.finish(job)


@on_the_store
@given(seats=st.integers(0, 4), boxes=st.integers(0, 2), history=histories(steps))
async def test_no_unit_is_lost_or_sold_twice_whoever_stops_anywhere(
    store: Store, seats: int, boxes: int, history: list[Step]
) -> None:
    events = ShopHistory(store)
    shop = events.shop
    await shop.open(seats, boxes)
    for kind, what in history:
        await events.step(kind, what)
        await events.compare()
    # In the end the store says what the rows say, and nothing is held for ever.
    await events.come_to_rest()
    await events.compare()
    assert await shop.sale.holds() == {}
    for variant in VARIANTS:
        assert shop.model.sold[variant] == shop.orders.sold(variant)


async def test_with_one_hold_for_an_order_and_its_late_money_a_paused_worker_frees_sold_units(
    store: Store,
) -> None:
    """The negative control of "each attempt has a hold of its own"."""
    shop = Shop(store)
    await shop.open(1, 0)
    events = ShopHistory(store)
    events.shop = shop
    await events.step("buy", ("ann", "x", {"seat": 1}))
    await events.step("finish", 0)
    (order,) = shop.orders.rows
    shop.sale.pass_ms(60_000)
    await events.step("expire_orders", None)  # the row says EXPIRED; the worker is paused here
    late = await shop.sale.take_late("ann", order, ["seat", 1])  # the same hold, not a fresh one
    assert late.outcome == "REPLAYED"
    assert shop.orders.paid_late(order, order, {("seat", 1)}, 10**15, shop.sale.now_ms)
    await events.step("finish", 0)  # the worker goes on, and frees what has just been sold
    with pytest.raises(AssertionError, match="a unit of an order is in the pool"):
        await events.compare()
