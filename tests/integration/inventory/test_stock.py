"""Loading, restocking, reducing: never under what is held or sold (H8, H9)."""

from __future__ import annotations

import pytest

from fairdrop.inventory import HoldLoad, Inventory, ReserveOutcome, VariantFigures, VariantLoad
from tests.driven_sale import DrivenSale
from tests.integration.inventory.accounting import assert_every_unit_is_in_one_place


async def test_loading_again_changes_nothing(sale: DrivenSale) -> None:
    await sale.load({"seat": 5})
    await sale.admit("a")
    await sale.reserve("a", ["seat", 2], hold="h")
    before = await sale.figures()
    for version in (1, 0, 1):
        sale.version = version - 1
        assert (await sale.load({"seat": 5}, mode="closed", cap=1)).status == "CURRENT"
    after = await sale.figures()
    assert after == before
    assert after.mode == "open"


async def test_a_newer_version_changes_the_configuration_and_keeps_the_rest(
    sale: DrivenSale,
) -> None:
    await sale.load({"seat": 5}, cap=10)
    await sale.admit("a")
    await sale.join("b")
    await sale.reserve("a", ["seat", 2])
    loaded = await sale.load(mode="paused", rate_milli=7_000)
    assert (loaded.status, loaded.version) == ("UPDATED", 2)
    figures = await sale.figures()
    assert (figures.mode, figures.rate_milli, figures.version) == ("paused", 7_000, 2)
    assert (figures.waiting, figures.active, figures.holds) == (1, 1, 1)
    assert figures.variants == [VariantFigures(5, 3, 2, 0)]


async def test_the_mode_that_the_clock_has_set_survives_a_repeated_load(sale: DrivenSale) -> None:
    await sale.load(mode="scheduled", opens_ms=sale.now_ms)
    await sale.tick()
    sale.version -= 1
    await sale.load(mode="scheduled")
    assert (await sale.figures()).mode == "open"


async def test_more_stock_makes_new_serials(sale: DrivenSale) -> None:
    await sale.load({"seat": 2})
    await sale.admit("a", "b")
    await sale.reserve("a", ["seat", 2])
    assert (await sale.reserve("b", ["seat", 1])).outcome is ReserveOutcome.SOLD_OUT
    await sale.load({"seat": 4})
    assert await sale.stock("seat") == VariantFigures(4, 2, 2, 0)
    assert (await sale.reserve("b", ["seat", 2])).lines == [("seat", [3, 4])]
    await assert_every_unit_is_in_one_place(sale, sold={})


async def test_a_late_load_of_an_older_stock_takes_nothing_away(sale: DrivenSale) -> None:
    await sale.load({"seat": 4})
    await sale.load({"seat": 2})
    assert await sale.stock("seat") == VariantFigures(4, 4, 0, 0)


async def test_a_new_variant_is_added_while_the_sale_runs(sale: DrivenSale) -> None:
    await sale.load({"seat": 2})
    await sale.load({"seat": 2, "box": 3})
    await sale.admit("a")
    assert (await sale.reserve("a", ["box", 1])).lines == [("box", [1])]
    assert await sale.stock("box") == VariantFigures(3, 2, 1, 0)


async def test_a_new_variant_that_was_reduced_before_it_came_keeps_its_quantity(
    sale: DrivenSale,
) -> None:
    await sale.load({"seat": 2})
    await sale.load([VariantLoad("box", quantity=3, last_serial=5, next_serial=3)])
    assert await sale.stock("box") == VariantFigures(3, 3, 0, 0)
    await sale.admit("a")
    assert (await sale.reserve("a", ["box", 3])).lines == [("box", [3, 4, 5])]


async def test_reducing_takes_free_units_and_never_others(sale: DrivenSale) -> None:
    await sale.load({"seat": 6})
    await sale.admit("a", "b")
    await sale.reserve("a", ["seat", 1], hold="sold")
    await sale.commit("sold")
    await sale.reserve("b", ["seat", 2], hold="held")
    reduced = await sale.reduce("seat", 2)
    assert (reduced.status, reduced.free, len(reduced.retired)) == ("REDUCED", 1, 2)
    assert await sale.stock("seat") == VariantFigures(4, 1, 2, 1)
    refused = await sale.reduce("seat", 2)
    assert (refused.status, refused.free, refused.retired) == ("TOO_FEW_FREE", 1, [])
    assert await sale.stock("seat") == VariantFigures(4, 1, 2, 1)
    await assert_every_unit_is_in_one_place(
        sale, sold={"seat": [1]}, retired={"seat": reduced.retired}
    )


async def test_reducing_takes_returned_units_when_no_fresh_ones_are_left(sale: DrivenSale) -> None:
    await sale.load({"seat": 4})
    await sale.admit("a", "b")
    await sale.reserve("a", ["seat", 3], hold="h")
    await sale.release("h", "a")
    reduced = await sale.reduce("seat", 3)
    assert (reduced.free, len(set(reduced.retired))) == (1, 3)
    assert await sale.stock("seat") == VariantFigures(1, 1, 0, 0)
    answer = await sale.reserve("b", ["seat", 1])
    assert answer.lines[0][1][0] not in reduced.retired
    await assert_every_unit_is_in_one_place(sale, sold={}, retired={"seat": reduced.retired})


async def test_a_repeated_reduction_is_its_first_answer_and_takes_nothing_more(
    sale: DrivenSale,
) -> None:
    """A call whose connection broke is sent again, and nobody knows whether it was carried out."""
    await sale.load({"seat": 6})
    first = await sale.reduce("seat", 2, "k")
    assert await sale.reduce("seat", 2, "k") == first
    assert await sale.stock("seat") == VariantFigures(4, 4, 0, 0)
    assert (await sale.reduce("seat", 1, "k")).status == "KEY_REUSED"
    # The negative control: without the key it is another reduction.
    assert (await sale.reduce("seat", 2)).retired != first.retired
    assert await sale.stock("seat") == VariantFigures(2, 2, 0, 0)
    refused = await sale.reduce("seat", 3, "too many")
    await sale.load({"seat": 9})
    # A refusal took nothing: the same request may succeed later.
    assert (refused.status, (await sale.reduce("seat", 3, "too many")).status) == (
        "TOO_FEW_FREE",
        "REDUCED",
    )


async def test_units_taken_out_of_sale_never_come_back_by_a_restock(sale: DrivenSale) -> None:
    await sale.load({"seat": 4})
    retired = (await sale.reduce("seat", 3)).retired
    await sale.load([VariantLoad("seat", quantity=3, last_serial=6)])
    assert await sale.stock("seat") == VariantFigures(3, 3, 0, 0)
    await sale.admit("a")
    (line,) = (await sale.reserve("a", ["seat", 3])).lines
    assert not set(line[1]) & set(retired)


@pytest.mark.parametrize("units", [0, -1])
async def test_reducing_by_less_than_one_is_a_callers_bug(sale: DrivenSale, units: int) -> None:
    await sale.load({"seat": 4})
    with pytest.raises(ValueError, match="at least one"):
        await Inventory(sale.scripts.store).reduce(sale.ref, "seat", units, "key")
    assert await sale.stock("seat") == VariantFigures(4, 4, 0, 0)


async def test_a_lost_store_is_rebuilt_with_everything_that_the_database_knows(
    sale: DrivenSale,
) -> None:
    """Ten made: 1 and 2 sold, 3 in checkout, 4 and 5 came back, 6 retired, 7 to 10 never issued."""
    deadline_ms = sale.now_ms + 100_000
    await sale.load(
        [VariantLoad("seat", 9, 10, next_serial=7, sold=2, returned=[4, 5])],
        holds=[HoldLoad("h", "a", False, deadline_ms, [("seat", [3])])],
        bought={"b": 2},
        buyer_limit=2,
    )
    assert await sale.stock("seat") == VariantFigures(9, 6, 1, 2)
    await assert_every_unit_is_in_one_place(sale, sold={"seat": [1, 2]}, retired={"seat": [6]})
    await sale.admit("a", "b", "c", "d")
    # Limits count what was held and bought before the loss.
    assert (await sale.reserve("a", ["seat", 2])).outcome is ReserveOutcome.BUYER_LIMIT
    assert (await sale.reserve("b", ["seat", 1])).outcome is ReserveOutcome.BUYER_LIMIT
    assert (await sale.reserve("c", ["seat", 2])).lines == [("seat", [4, 5])]
    assert (await sale.reserve("d", ["seat", 2])).lines == [("seat", [7, 8])]
    # The restored hold is its order's: the sweep asks, and the order's end frees or sells it.
    sale.now_ms = deadline_ms
    assert (await sale.expire()).undecided == [("h", "a")]
    assert await sale.commit("h") == "COMMITTED"
    await assert_every_unit_is_in_one_place(sale, sold={"seat": [1, 2, 3]}, retired={"seat": [6]})
