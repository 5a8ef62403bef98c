"""After a reset or a loss nothing from before counts (W14; cases 3, 9)."""

from __future__ import annotations

import pytest

from fairdrop.drivers.sale_scripts import SaleNotLoaded
from fairdrop.drivers.store import Store
from fairdrop.errors import StoreUnavailable
from fairdrop.ids import SaleRef
from fairdrop.inventory import ReserveOutcome
from fairdrop.waiting_room import State
from tests.driven_sale import DrivenSale


def next_epoch(sale: DrivenSale) -> DrivenSale:
    return DrivenSale(sale.scripts, SaleRef(sale.ref.id, sale.ref.epoch + 1), sale.now_ms)


async def test_no_place_of_an_earlier_epoch_counts(sale: DrivenSale) -> None:
    await sale.load({"seat": 5}, cap=1)
    await sale.admit("inside")
    await sale.join("waiting")
    await sale.reserve("inside", ["seat", 1], hold="h", key="k")
    again = next_epoch(sale)
    await again.load({"seat": 5}, cap=1)
    places = await again.status("inside", "waiting")
    assert {place.state for place in places} == {State.NOT_ENTERED}
    figures = await again.figures()
    assert (figures.joined, figures.tail, figures.served, figures.holds) == (0, 0, 0, 0)
    assert (await again.stock("seat")).free == 5
    (first,) = await again.join("newcomer")
    assert (first.position, first.rank) == (1, 0)


async def test_no_admission_and_no_answer_of_an_earlier_epoch_counts(sale: DrivenSale) -> None:
    await sale.load({"seat": 5})
    await sale.admit("a")
    await sale.reserve("a", ["seat", 1], hold="h", key="k")
    again = next_epoch(sale)
    await again.load({"seat": 5})
    # The same token, the same idempotency key, the same hold.
    answer = await again.reserve("a", ["seat", 1], hold="h", key="k")
    assert answer.outcome is ReserveOutcome.NOT_ADMITTED
    assert (await again.start("h", "a")).outcome == "NO_HOLD"
    assert await again.complete("a") == "NOT_THERE"


async def test_a_store_that_lost_the_sale_admits_nobody_and_sells_nothing(
    sale: DrivenSale,
) -> None:
    await sale.load({"seat": 5}, cap=2)
    await sale.admit("a", "b")
    await sale.reserve("a", ["seat", 1], hold="h")
    await sale.lose()
    for call in (
        sale.join("c"),
        sale.claim("a"),
        sale.tick(),
        sale.status("a"),
        sale.leave("a"),
        sale.reserve("b", ["seat", 1]),
        sale.start("h", "a"),
        sale.commit("h"),
        sale.release("h", "a"),
        sale.free("h"),
        sale.extend("h", sale.now_ms),
        sale.expire(),
        sale.figures(),
        sale.reduce("seat", 1),
    ):
        with pytest.raises(SaleNotLoaded) as told:
            await call
        assert isinstance(told.value, StoreUnavailable)  # the web answers 503 to both
    assert await sale.keys_in_store() == []


async def test_after_a_loss_no_more_people_get_in_than_the_cap(sale: DrivenSale) -> None:
    await sale.load(cap=3)
    people = [f"v{n}" for n in range(10)]
    await sale.admit(*people[:3])
    await sale.lose()
    again = next_epoch(sale)
    await again.load(cap=3)
    await again.join(*people)
    await again.tick()
    figures = await again.figures()
    assert figures.called + figures.active == 3


async def test_the_store_evicts_nothing_and_says_so(store: Store) -> None:
    assert await store.eviction_policy() == "noeviction"
