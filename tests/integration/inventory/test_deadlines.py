"""A deadline passed is over; from the start of checkout on the order's row decides (H4, H7)."""

from __future__ import annotations

from fairdrop.inventory import ReserveOutcome, StartOutcome, VariantFigures
from tests.driven_sale import DrivenSale
from tests.integration.inventory.accounting import assert_every_unit_is_in_one_place


async def test_a_reservation_ends_at_its_deadline_and_not_before(sale: DrivenSale) -> None:
    await sale.load({"seat": 5})
    await sale.admit("a")
    await sale.reserve("a", ["seat", 2], hold="h")
    sale.pass_ms(599_999)
    assert (await sale.expire()).holds == 0
    sale.pass_ms(1)
    swept = await sale.expire()
    assert (swept.holds, swept.units, swept.undecided, swept.more) == (1, 2, [], False)
    assert await sale.stock("seat") == VariantFigures(5, 5, 0, 0)
    assert (await sale.expire()).holds == 0
    assert await sale.scripts.store.redis.hlen(sale.key("admhold")) == 0
    # The buyer's limit does not count what has gone back.
    assert await assert_every_unit_is_in_one_place(sale, sold={}) == {}


async def test_checkout_cannot_start_after_the_deadline_though_no_sweep_has_run(
    sale: DrivenSale,
) -> None:
    await sale.load({"seat": 5})
    await sale.admit("a")
    await sale.reserve("a", ["seat", 1], hold="h")
    sale.pass_ms(600_000)
    assert (await sale.start("h", "a")).outcome is StartOutcome.EXPIRED
    await sale.expire()
    assert (await sale.start("h", "a")).outcome is StartOutcome.NO_HOLD


async def test_a_hold_that_has_run_out_does_not_stand_in_its_buyers_own_way(
    sale: DrivenSale,
) -> None:
    """The last units, all that the buyer may have, and no sweep in between."""
    await sale.load({"seat": 2, "box": 1}, hold_ttl_ms=10_000, buyer_limit=2)
    await sale.admit("a")
    await sale.reserve("a", ["seat", 2], hold="one")
    sale.pass_ms(10_000)
    again = await sale.reserve("a", ["seat", 2], hold="two")
    assert (again.outcome, again.hold) == (ReserveOutcome.RESERVED, "two")
    assert again.lines == [("seat", [1, 2])]
    assert set(await sale.holds()) == {"two"}
    await assert_every_unit_is_in_one_place(sale, sold={})
    sale.pass_ms(10_000)
    refused = await sale.reserve("a", ["seat", 1, "box", 2])
    assert refused.outcome is ReserveOutcome.BUYER_LIMIT
    assert (await sale.reserve("a", ["box", 1])).outcome is ReserveOutcome.RESERVED
    assert await sale.stock("seat") == VariantFigures(2, 2, 0, 0)
    await assert_every_unit_is_in_one_place(sale, sold={})


async def test_a_hold_in_checkout_is_never_released_by_the_sweep(sale: DrivenSale) -> None:
    await sale.load({"seat": 5})
    await sale.admit("a")
    await sale.reserve("a", ["seat", 1], hold="h")
    started = await sale.start("h", "a")
    assert started.outcome is StartOutcome.STARTED
    assert (started.lines, started.admission) == ([("seat", [1])], "adm-a")
    sale.pass_ms(10_000_000)
    swept = await sale.expire()
    assert (swept.holds, swept.undecided) == (0, [("h", "a")])
    assert (await sale.stock("seat")).held == 1
    # Starting again is the same start, also past the deadline: its row decides now.
    assert await sale.start("h", "a") == started


async def test_an_undecided_hold_is_told_to_one_worker_at_a_time_and_told_again(
    sale: DrivenSale,
) -> None:
    await sale.load({"seat": 5})
    await sale.admit("a")
    await sale.reserve("a", ["seat", 1], hold="h")
    await sale.start("h", "a")
    sale.pass_ms(600_000)
    told = [(await sale.expire(look_again_ms=3_000)).undecided for _ in range(3)]
    assert told == [[("h", "a")], [], []]
    sale.pass_ms(2_999)
    assert (await sale.expire()).undecided == []
    sale.pass_ms(1)
    assert (await sale.expire()).undecided == [("h", "a")]


async def test_paying_extends_the_deadline_and_never_shortens_it(sale: DrivenSale) -> None:
    await sale.load({"seat": 5})
    await sale.admit("a")
    deadline_ms = (await sale.reserve("a", ["seat", 1], hold="h")).deadline_ms
    assert await sale.extend("h", deadline_ms + 300_000) == "NO_HOLD"  # not in checkout yet
    await sale.start("h", "a")
    assert await sale.extend("h", deadline_ms + 300_000) == "EXTENDED"
    assert await sale.extend("h", deadline_ms) == "EXTENDED"
    sale.now_ms = deadline_ms + 299_999
    assert (await sale.expire()).undecided == []
    sale.pass_ms(1)
    assert (await sale.expire()).undecided == [("h", "a")]
    assert (await sale.start("h", "a")).deadline_ms == deadline_ms + 300_000


async def test_asking_for_more_than_there_is_leaves_the_reservation_as_it_was(
    sale: DrivenSale,
) -> None:
    """Nothing left, another quantity, a new key: units and deadline stay (case 14)."""
    await sale.load({"seat": 2})
    await sale.admit("a")
    first = await sale.reserve("a", ["seat", 2], hold="h")
    sale.pass_ms(1_000)
    answer = await sale.reserve("a", ["seat", 3])
    assert answer.outcome is ReserveOutcome.ALREADY_RESERVED
    assert (answer.hold, answer.deadline_ms, answer.lines) == (
        "h",
        first.deadline_ms,
        first.lines,
    )
    assert await sale.holds() == {
        "h": ("a", "adm-a", first.deadline_ms, 0, [("seat", [1, 2])]),
    }


async def test_any_number_of_passed_deadlines_is_swept_in_bounded_steps(sale: DrivenSale) -> None:
    await sale.load({"seat": 100}, cap=100)
    people = [f"v{n}" for n in range(45)]
    await sale.admit(*people)
    await sale.reserve_all(*(sale.request(visitor, ["seat", 2]) for visitor in people))
    sale.pass_ms(600_000)
    runs = [await sale.expire(limit=20) for _ in range(3)]
    assert [(run.holds, run.units, run.more) for run in runs] == [
        (20, 40, True),
        (20, 40, True),
        (5, 10, False),
    ]
    assert await sale.stock("seat") == VariantFigures(100, 100, 0, 0)
    await assert_every_unit_is_in_one_place(sale, sold={})


async def test_holds_of_many_units_are_swept_in_bounded_steps_too(sale: DrivenSale) -> None:
    """A run ends once enough units are free, however few holds that took (case 37)."""
    await sale.load({"seat": 2_000}, cap=100, order_limit=400, buyer_limit=400)
    people = [f"v{n}" for n in range(5)]
    await sale.admit(*people)
    await sale.reserve_all(*(sale.request(visitor, ["seat", 400]) for visitor in people))
    sale.pass_ms(600_000)
    runs = [await sale.expire(units=800) for _ in range(3)]
    assert [(run.holds, run.units, run.more) for run in runs] == [
        (2, 800, True),
        (2, 800, True),
        (1, 400, False),
    ]
    assert await sale.stock("seat") == VariantFigures(2_000, 2_000, 0, 0)
    await assert_every_unit_is_in_one_place(sale, sold={})


async def test_nobody_else_starts_a_buyers_checkout(sale: DrivenSale) -> None:
    await sale.load({"seat": 5})
    await sale.admit("a", "b")
    await sale.reserve("a", ["seat", 1], hold="h")
    assert (await sale.start("h", "b")).outcome is StartOutcome.NO_HOLD
    assert (await sale.release("h", "b")).outcome == "NOTHING_HELD"
    assert (await sale.start("h", "a")).outcome is StartOutcome.STARTED
