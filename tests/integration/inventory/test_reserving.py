"""Check and take in one step: never a unit too many, all or nothing (H1, H2; cases 11, 12, 34)."""

from __future__ import annotations

import asyncio

import pytest

from fairdrop.inventory import Inventory, ReserveOutcome, VariantFigures
from tests.driven_sale import DrivenSale
from tests.integration.inventory.accounting import assert_every_unit_is_in_one_place


async def test_what_is_taken_are_serial_numbers_from_one_on(sale: DrivenSale) -> None:
    await sale.load({"seat": 10, "stand": 10}, order_limit=5)
    await sale.admit("a", "b")
    first = await sale.reserve("a", ["seat", 2, "stand", 1], hold="one")
    second = await sale.reserve("b", ["seat", 3], hold="two")
    assert first.lines == [("seat", [1, 2]), ("stand", [1])]
    assert second.lines == [("seat", [3, 4, 5])]
    assert (first.hold, first.deadline_ms) == ("one", sale.now_ms + 600_000)
    assert await sale.stock("seat") == VariantFigures(10, 5, 5, 0)
    await assert_every_unit_is_in_one_place(sale)


async def test_two_fresh_buyers_of_the_last_unit_make_one_order(sale: DrivenSale) -> None:
    await sale.load({"seat": 1})
    await sale.admit("a", "b")
    answers = await sale.reserve_all(
        sale.request("a", ["seat", 1], hold="one"), sale.request("b", ["seat", 1], hold="two")
    )
    assert [answer.outcome for answer in answers] == [
        ReserveOutcome.RESERVED,
        ReserveOutcome.SOLD_OUT,
    ]
    assert await sale.stock("seat") == VariantFigures(1, 0, 1, 0)


async def test_two_lines_of_one_variant_count_together(sale: DrivenSale) -> None:
    """1 + 1 of a stock of 1 is refused whole (case 12)."""
    await sale.load({"seat": 1})
    await sale.admit("a")
    answer = await sale.reserve("a", ["seat", 1, "seat", 1])
    assert (answer.outcome, answer.detail, answer.hold) == (ReserveOutcome.SOLD_OUT, "seat", False)
    assert await sale.stock("seat") == VariantFigures(1, 1, 0, 0)
    await sale.load({"seat": 2})
    answer = await sale.reserve("a", ["seat", 1, "seat", 1])
    assert answer.lines == [("seat", [1, 2])]


async def test_several_variants_are_taken_together_or_not_at_all(sale: DrivenSale) -> None:
    await sale.load({"seat": 5, "box": 1})
    await sale.admit("a", "b")
    await sale.reserve("a", ["box", 1])
    answer = await sale.reserve("b", ["seat", 2, "box", 1])
    assert (answer.outcome, answer.detail) == (ReserveOutcome.SOLD_OUT, "box")
    assert await sale.stock("seat") == VariantFigures(5, 5, 0, 0)
    assert {buyer for buyer, *_ in (await sale.holds()).values()} == {"a"}
    await assert_every_unit_is_in_one_place(sale)


async def test_a_variant_that_does_not_exist_takes_nothing_of_the_others(sale: DrivenSale) -> None:
    await sale.load({"seat": 5})
    await sale.admit("a")
    answer = await sale.reserve("a", ["seat", 1, "attic", 1])
    assert (answer.outcome, answer.detail) == (ReserveOutcome.UNKNOWN_VARIANT, "attic")
    assert (await sale.stock("seat")).free == 5


async def test_units_that_came_back_are_taken_first_then_fresh_ones(sale: DrivenSale) -> None:
    await sale.load({"seat": 5})
    await sale.admit("a", "b")
    await sale.reserve("a", ["seat", 2], hold="one")
    await sale.release("one", "a")
    answer = await sale.reserve("b", ["seat", 3])
    assert answer.lines == [("seat", [1, 2, 3])]
    await assert_every_unit_is_in_one_place(sale)


async def test_the_last_unit_is_found_wherever_it_is(sale: DrivenSale) -> None:
    await sale.load({"seat": 3})
    await sale.admit("a", "b")
    await sale.reserve("a", ["seat", 2], hold="one")
    await sale.release("one", "a")  # two came back, one is fresh
    assert (await sale.reserve("b", ["seat", 3])).outcome is ReserveOutcome.RESERVED
    assert (await sale.reserve("a", ["seat", 1])).outcome is ReserveOutcome.SOLD_OUT


async def test_sold_out_is_an_answer_and_leaves_nothing_behind(sale: DrivenSale) -> None:
    """But the memory of the answer (case 34)."""
    await sale.load({"seat": 1})
    await sale.admit("a", "b")
    await sale.reserve("a", ["seat", 1])
    before = await sale.figures(), await sale.holds(), await sale.keys_in_store()
    for _ in range(3):
        answer = await sale.reserve("b", ["seat", 1])
        assert answer.outcome is ReserveOutcome.SOLD_OUT
    assert (await sale.figures(), await sale.holds(), await sale.keys_in_store()) == before
    await assert_every_unit_is_in_one_place(sale)


async def test_a_refused_request_does_not_touch_its_neighbours_in_the_batch(
    sale: DrivenSale,
) -> None:
    await sale.load({"seat": 3})
    await sale.admit("a", "b", "c")
    answers = await sale.reserve_all(
        sale.request("a", ["seat", 2]),
        sale.request("b", ["seat", 2]),
        sale.request("stranger", ["seat", 1]),
        sale.request("c", ["seat", 1]),
    )
    assert [answer.outcome for answer in answers] == [
        ReserveOutcome.RESERVED,
        ReserveOutcome.SOLD_OUT,
        ReserveOutcome.NOT_ADMITTED,
        ReserveOutcome.RESERVED,
    ]
    await assert_every_unit_is_in_one_place(sale)


@pytest.mark.parametrize("lines", [["seat", 0], ["seat", -1], ["seat", 2, "seat", -1]])
async def test_a_line_of_less_than_one_unit_is_refused(
    sale: DrivenSale, lines: list[str | int]
) -> None:
    await sale.load({"seat": 3})
    await sale.admit("a")
    assert (await sale.reserve("a", lines)).outcome is ReserveOutcome.ORDER_LIMIT
    assert (await sale.take_late("a", "order", lines)).outcome is ReserveOutcome.ORDER_LIMIT
    assert await sale.stock("seat") == VariantFigures(3, 3, 0, 0)


@pytest.mark.parametrize("mode", ["scheduled", "lobby", "drawing", "closed"])
async def test_a_sale_that_does_not_run_sells_nothing(sale: DrivenSale, mode: str) -> None:
    await sale.load({"seat": 3})
    await sale.admit("a")
    # No sale goes back to before its opening: written past the script that sees to that.
    await sale.scripts.store.redis.hset(sale.key("cfg"), "mode", mode)
    assert (await sale.reserve("a", ["seat", 1])).outcome is ReserveOutcome.SALE_CLOSED
    assert (await sale.stock("seat")).free == 3


async def test_the_closing_time_counts_although_no_tick_has_closed_the_sale(
    sale: DrivenSale,
) -> None:
    await sale.load({"seat": 3}, closes_ms=sale.now_ms + 1_000)
    await sale.admit("a", "b")
    sale.pass_ms(999)
    assert (await sale.reserve("a", ["seat", 1])).outcome is ReserveOutcome.RESERVED
    sale.pass_ms(1)
    assert (await sale.reserve("b", ["seat", 1])).outcome is ReserveOutcome.SALE_CLOSED


async def test_people_inside_go_on_buying_while_the_line_is_paused_or_drains(
    sale: DrivenSale,
) -> None:
    await sale.load({"seat": 3})
    await sale.admit("a", "b")
    for visitor, mode in (("a", "paused"), ("b", "draining")):
        await sale.load(mode=mode)
        assert (await sale.reserve(visitor, ["seat", 1])).outcome is ReserveOutcome.RESERVED


async def test_a_lease_that_is_over_buys_nothing_though_no_sweep_has_run(sale: DrivenSale) -> None:
    await sale.load({"seat": 3})
    await sale.admit("a", "b")
    sale.pass_ms(299_999)
    assert (await sale.reserve("a", ["seat", 1])).outcome is ReserveOutcome.RESERVED
    sale.pass_ms(1)
    assert (await sale.reserve("b", ["seat", 1])).outcome is ReserveOutcome.NOT_ADMITTED


async def test_the_service_gives_each_caller_their_own_answer(sale: DrivenSale) -> None:
    await sale.load({"seat": 3})
    people = [f"v{n}" for n in range(5)]
    sale.now_ms = 0  # the store's own time, as in production
    await sale.admit(*people)
    inventory = Inventory(sale.scripts.store)
    answers = await asyncio.gather(
        *(inventory.reserve(sale.ref, sale.request(v, ["seat", 1], hold=v)) for v in people)
    )
    assert [answer.hold for answer in answers] == [*people[:3], False, False]
    assert [answer.lines for answer in answers[:3]] == [[("seat", [n])] for n in (1, 2, 3)]
    assert (await inventory.start(sale.ref, "v0", "v0")).lines == [("seat", [1])]
    assert await inventory.commit(sale.ref, "v0") == "COMMITTED"
    assert (await inventory.release(sale.ref, "v1", "v1")).units == 1
    figures = await inventory.figures(sale.ref, ["seat"])
    assert figures.variants == [VariantFigures(quantity=3, free=1, held=1, sold=1)]
    late = await inventory.take_late(sale.ref, "late", "order", {"seat": 1})
    assert late.lines == [("seat", [2])]
    assert (await inventory.free(sale.ref, "order")).units == 1
    assert (await inventory.expire(sale.ref)).holds == 0


async def test_serials_beyond_a_million_stay_exact(sale: DrivenSale) -> None:
    await sale.load({"seat": 12_000_000})
    await sale.scripts.store.redis.hset(sale.key("stk"), "seat:n", "9999999")
    await sale.scripts.store.redis.hset(sale.key("stk"), "seat:s", "9999998")
    await sale.admit("a")
    answer = await sale.reserve("a", ["seat", 3], hold="h")
    assert answer.lines == [("seat", [9_999_999, 10_000_000, 10_000_001])]
    await sale.release("h", "a")
    assert await sale.returned("seat") == [9_999_999, 10_000_000, 10_000_001]
    assert (await sale.reserve("a", ["seat", 1])).lines == [("seat", [9_999_999])]
