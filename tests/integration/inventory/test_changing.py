"""Other quantities in a reservation: all or nothing, never below zero, never a later deadline (H4, H5)."""

from __future__ import annotations

import asyncio

import pytest

from fairdrop.drivers.store import Store
from fairdrop.inventory import ChangeOutcome, ChangeRequest, Inventory, VariantFigures
from tests.driven_sale import DrivenSale
from tests.integration.inventory.accounting import assert_every_unit_is_in_one_place

CHANGED, RELEASED = ChangeOutcome.CHANGED, ChangeOutcome.RELEASED


@pytest.fixture
async def held(sale: DrivenSale) -> DrivenSale:
    """Buyer ``a`` holds three seats and a box as ``h``."""
    await sale.load({"seat": 6, "box": 2}, order_limit=6, buyer_limit=6)
    await sale.admit("a", "b")
    await sale.reserve("a", ["seat", 3, "box", 1], hold="h")
    return sale


async def test_five_deliveries_of_a_partial_release_raise_the_stock_once(
    held: DrivenSale, store_url: str
) -> None:
    """Case 15, with units named by their number and a key, or by what is to stay."""
    stores = [Store(store_url, timeout_s=30) for _ in range(5)]
    request = ChangeRequest("a", "h", "one key", "body", ["seat", -1])
    answers = await asyncio.gather(
        *(Inventory(store).change(held.ref, request) for store in stores)
    )
    for store in stores:
        await store.close()
    assert {(answer.outcome, answer.units) for answer in answers} == {(CHANGED, 1)}
    assert await held.stock("seat") == VariantFigures(6, 4, 2, 0)
    for _ in range(5):
        answer = await held.change("h", "a", ["seat", 1])
        assert answer.lines == [("seat", [1]), ("box", [1])]
    assert await held.stock("seat") == VariantFigures(6, 5, 1, 0)
    owned = await assert_every_unit_is_in_one_place(held, sold={})
    assert owned == {"a": 2}


async def test_no_more_goes_back_than_is_held(held: DrivenSale) -> None:
    answer = await held.change("h", "a", ["seat", -100, "circle", -1])
    assert (answer.outcome, answer.units, answer.lines) == (CHANGED, 3, [("box", [1])])
    assert await held.stock("seat") == VariantFigures(6, 6, 0, 0)
    again = await held.change("h", "a", ["seat", -100])
    assert (again.outcome, again.units) == (CHANGED, 0)
    assert await held.stock("seat") == VariantFigures(6, 6, 0, 0)
    await assert_every_unit_is_in_one_place(held, sold={})


async def test_the_last_unit_given_back_ends_the_reservation(held: DrivenSale) -> None:
    answer = await held.change("h", "a", ["seat", 0, "box", 0])
    assert (answer.outcome, answer.units, answer.lines) == (RELEASED, 4, [])
    assert await held.holds() == {}
    assert await assert_every_unit_is_in_one_place(held, sold={}) == {}
    assert (await held.change("h", "a", ["seat", 0])).outcome is ChangeOutcome.NOTHING_HELD
    assert (await held.reserve("a", ["seat", 1])).outcome == "RESERVED"


async def test_more_units_come_at_the_same_deadline(held: DrivenSale) -> None:
    deadline_ms = (await held.holds())["h"][2]
    held.pass_ms(1_000)
    answer = await held.change("h", "a", ["seat", 4, "box", 2])
    assert (answer.outcome, answer.deadline_ms) == (CHANGED, deadline_ms)
    assert answer.lines == [("seat", [1, 2, 3, 4]), ("box", [1, 2])]
    assert await held.stock("box") == VariantFigures(2, 0, 2, 0)
    assert await assert_every_unit_is_in_one_place(held, sold={}) == {"a": 6}
    held.now_ms = deadline_ms
    assert (await held.expire()).units == 6
    assert await assert_every_unit_is_in_one_place(held, sold={}) == {}


@pytest.mark.parametrize(
    ("lines", "outcome"),
    [
        (["seat", 1, "box", 3], ChangeOutcome.SOLD_OUT),
        (["seat", 4, "box", 3], ChangeOutcome.ORDER_LIMIT),
        (["seat", 2, "circle", 1], ChangeOutcome.UNKNOWN_VARIANT),
    ],
)
async def test_a_raise_that_fails_leaves_units_hold_and_deadline_as_they_were(
    held: DrivenSale, lines: list[str | int], outcome: ChangeOutcome
) -> None:
    """Case 14: also the lines that would have gone down or could have gone up stay."""
    before = await held.holds(), (await held.figures()).variants
    held.pass_ms(1_000)
    assert (await held.change("h", "a", lines)).outcome is outcome
    assert (await held.holds(), (await held.figures()).variants) == before
    assert await held.scripts.store.redis.zscore(held.key("due"), "h") == before[0]["h"][2]


async def test_a_replayed_change_is_its_first_answer_and_undoes_nothing_later(
    held: DrivenSale,
) -> None:
    """A late second delivery of an older change does not bring its quantities back (H3)."""
    first = await held.change("h", "a", ["seat", 4], key="older")
    await held.change("h", "a", ["seat", 1], key="newer")
    assert await held.change("h", "a", ["seat", 4], key="older") == first
    assert (await held.stock("seat")).held == 1
    refused = await held.change("h", "a", ["seat", 7], key="refused")
    await held.release("h", "a")
    assert await held.change("h", "a", ["seat", 7], key="refused") == refused
    other = await held.change("h", "a", ["seat", 2], key="older", fingerprint="other")
    assert other.outcome is ChangeOutcome.KEY_REUSED


async def test_a_key_of_a_reservation_is_no_key_of_a_change(held: DrivenSale) -> None:
    await held.reserve("b", ["seat", 1], hold="b", key="k", fingerprint="reserve")
    answer = await held.change("b", "b", ["seat", 2], key="k", fingerprint="change")
    assert answer.outcome is ChangeOutcome.KEY_REUSED
    assert (await held.stock("seat")).held == 4


async def test_the_limits_count_what_is_held_besides(sale: DrivenSale) -> None:
    """Limits of the order and of the buyer, over all that was bought before (H6, case 13)."""
    await sale.load({"seat": 50}, order_limit=3, buyer_limit=4)
    await sale.admit("a")
    await sale.reserve("a", ["seat", 2], hold="bought")
    await sale.commit("bought")
    await sale.complete("a")
    await sale.admit("a")
    await sale.reserve("a", ["seat", 1], hold="h")
    assert (await sale.change("h", "a", ["seat", 3])).outcome is ChangeOutcome.BUYER_LIMIT
    assert (await sale.change("h", "a", ["seat", 2])).outcome is CHANGED
    await sale.load(order_limit=1, buyer_limit=1)
    # Fewer units are always possible, also where the limits have come down.
    assert (await sale.change("h", "a", ["seat", 1])).outcome is CHANGED


async def test_raises_at_the_same_instant_never_share_a_unit(sale: DrivenSale) -> None:
    await sale.load({"seat": 5}, order_limit=5, buyer_limit=5)
    await sale.admit("a", "b")
    await sale.reserve("a", ["seat", 1], hold="a")
    await sale.reserve("b", ["seat", 1], hold="b")
    answers = await asyncio.gather(
        *(sale.change(buyer, buyer, ["seat", 4]) for buyer in ("a", "b"))
    )
    assert sorted(answer.outcome for answer in answers) == ["CHANGED", "SOLD_OUT"]
    assert await sale.stock("seat") == VariantFigures(5, 0, 5, 0)
    await assert_every_unit_is_in_one_place(sale, sold={})


async def test_nobody_else_changes_a_reservation_and_nobody_changes_an_order(
    held: DrivenSale,
) -> None:
    assert (await held.change("h", "b", ["seat", 0])).outcome is ChangeOutcome.NOTHING_HELD
    await held.start("h", "a")
    assert (await held.change("h", "a", ["seat", 0])).outcome is ChangeOutcome.ORDER_STARTED
    assert (await held.stock("seat")).held == 3


async def test_who_is_outside_may_give_back_but_not_take(held: DrivenSale) -> None:
    await held.leave("a")
    assert (await held.change("h", "a", ["seat", 4])).outcome is ChangeOutcome.NOT_ADMITTED
    assert (await held.change("h", "a", ["seat", 2])).outcome is CHANGED
    await held.load(mode="closed")
    assert (await held.change("h", "a", ["seat", 1])).outcome is CHANGED


async def test_the_safety_buffer_stays_unsold_and_follows_its_setting(sale: DrivenSale) -> None:
    """H9: a share of the quantity, rounded up, for reservations, raises and late payments alike."""
    await sale.load({"seat": 15}, order_limit=20, buyer_limit=20, buffer_percent=10)
    assert await sale.stock("seat") == VariantFigures(15, 13, 0, 0, 2)
    await sale.admit("a", "b")
    assert (await sale.reserve("a", ["seat", 14])).outcome == "SOLD_OUT"
    assert (await sale.reserve("a", ["seat", 12], hold="h")).outcome == "RESERVED"
    assert (await sale.change("h", "a", ["seat", 14])).outcome is ChangeOutcome.SOLD_OUT
    assert (await sale.change("h", "a", ["seat", 13])).outcome is CHANGED
    assert await sale.stock("seat") == VariantFigures(15, 0, 13, 0, 2)
    assert (await sale.take_late("c", "late", ["seat", 1])).outcome == "SOLD_OUT"
    # While the sale runs: less is kept, then more than there is.
    await sale.load(buffer_percent=5)
    assert await sale.stock("seat") == VariantFigures(15, 1, 13, 0, 1)
    await sale.load(buffer_percent=90)
    assert await sale.stock("seat") == VariantFigures(15, 0, 13, 0, 2)
    assert (await sale.reserve("b", ["seat", 1])).outcome == "SOLD_OUT"
    await sale.load(buffer_percent=0)
    assert (await sale.reserve("b", ["seat", 2])).outcome == "RESERVED"
    await assert_every_unit_is_in_one_place(sale, sold={})
