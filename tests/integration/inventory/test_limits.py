"""Limits for each order and for each buyer over the whole sale (H6; case 13)."""

from __future__ import annotations

import pytest

from fairdrop.inventory import ReserveOutcome
from tests.driven_sale import DrivenSale

RESERVED, BUYER_LIMIT = ReserveOutcome.RESERVED, ReserveOutcome.BUYER_LIMIT


async def buy(sale: DrivenSale, buyer: str, units: int) -> ReserveOutcome:
    """A whole purchase: in, reserved, confirmed, out."""
    await sale.admit(buyer)
    answer = await sale.reserve(buyer, ["seat", units])
    if answer.outcome is RESERVED:
        assert isinstance(answer.hold, str)
        await sale.start(answer.hold, buyer)
        await sale.commit(answer.hold)
        await sale.complete(buyer)
    else:
        await sale.leave(buyer)
    sale.pass_ms(1_000)
    return answer.outcome


async def test_a_buyers_limit_adds_up_over_orders(sale: DrivenSale) -> None:
    await sale.load({"seat": 50}, buyer_limit=3)
    outcomes = [await buy(sale, "a", units) for units in (1, 1, 2, 1, 1)]
    assert outcomes == [RESERVED, RESERVED, BUYER_LIMIT, RESERVED, BUYER_LIMIT]
    assert (await sale.stock("seat")).sold == 3
    assert await buy(sale, "b", 3) is RESERVED  # somebody else's limit is their own


async def test_parallel_requests_of_one_buyer_share_the_limit(sale: DrivenSale) -> None:
    """Five at once for one unit each, limit 3 (case 13): one admission holds once anyhow."""
    await sale.load({"seat": 50}, buyer_limit=3)
    await sale.admit("a")
    answers = await sale.reserve_all(*(sale.request("a", ["seat", 1]) for _ in range(5)))
    assert [answer.outcome for answer in answers].count(RESERVED) == 1
    # Units of an earlier admission count too, as long as they are held.
    for admission in ("second", "third", "fourth", "fifth"):
        await sale.leave("a")
        await sale.join("a")
        sale.pass_ms(1_000)
        await sale.tick()
        await sale.scripts.claim(sale.ref, [("a", admission)], now_ms=sale.now_ms)
        await sale.reserve("a", ["seat", 1], admission=admission)
    assert (await sale.stock("seat")).held == 3


async def test_a_quantity_changed_in_the_request_is_refused(sale: DrivenSale) -> None:
    await sale.load({"seat": 500}, order_limit=10, buyer_limit=1_000)
    await sale.admit("a")
    answer = await sale.reserve("a", ["seat", 200])
    assert (answer.outcome, answer.hold) == (ReserveOutcome.ORDER_LIMIT, False)
    assert (await sale.stock("seat")).held == 0


@pytest.mark.parametrize("lines", [["seat", 3, "seat", 2], ["seat", 3, "box", 2], ["seat", 5]])
async def test_the_limit_of_an_order_is_over_all_its_lines(
    sale: DrivenSale, lines: list[str | int]
) -> None:
    await sale.load({"seat": 50, "box": 50}, order_limit=4, buyer_limit=100)
    await sale.admit("a")
    assert (await sale.reserve("a", lines)).outcome is ReserveOutcome.ORDER_LIMIT


async def test_exactly_the_limit_is_allowed(sale: DrivenSale) -> None:
    await sale.load({"seat": 50}, order_limit=4, buyer_limit=4)
    await sale.admit("a")
    assert (await sale.reserve("a", ["seat", 4])).outcome is RESERVED


async def test_one_admission_holds_one_reservation_until_it_ends(sale: DrivenSale) -> None:
    await sale.load({"seat": 50}, buyer_limit=50)
    await sale.admit("a")
    await sale.reserve("a", ["seat", 1], hold="h")
    refused = await sale.reserve("a", ["seat", 1])
    assert (refused.outcome, refused.hold) == (ReserveOutcome.ALREADY_RESERVED, "h")
    await sale.release("h", "a")
    assert (await sale.reserve("a", ["seat", 1])).outcome is RESERVED


@pytest.mark.parametrize("end", ["sweep", "release", "commit", "free"])
async def test_the_end_of_an_earlier_hold_leaves_the_present_one_alone(
    sale: DrivenSale, end: str
) -> None:
    """The buyer was inside before, with another admission, and still has a hold of that time."""
    await sale.load({"seat": 50}, buyer_limit=50)
    await sale.admit("a")
    await sale.reserve("a", ["seat", 1], hold="earlier")
    await sale.leave("a")
    await sale.join("a")
    sale.pass_ms(500_000)
    await sale.tick()
    await sale.scripts.claim(sale.ref, [("a", "second")], now_ms=sale.now_ms)
    await sale.reserve("a", ["seat", 1], hold="present", admission="second")
    if end == "sweep":
        sale.pass_ms(100_000)
        assert (await sale.expire()).holds == 1
    elif end == "release":
        await sale.release("earlier", "a")
    elif end == "commit":
        await sale.commit("earlier")
    else:
        await sale.free("earlier")
    again = await sale.reserve("a", ["seat", 1], admission="second")
    assert (again.outcome, again.hold) == (ReserveOutcome.ALREADY_RESERVED, "present")


async def test_a_limit_changed_while_the_sale_runs_counts_at_once(sale: DrivenSale) -> None:
    await sale.load({"seat": 50}, buyer_limit=1)
    assert [await buy(sale, "a", 1), await buy(sale, "a", 1)] == [RESERVED, BUYER_LIMIT]
    await sale.load(buyer_limit=2)
    assert await buy(sale, "a", 1) is RESERVED
