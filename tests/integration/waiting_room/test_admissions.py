"""From a call to the inside and out again (W9, W12, W13; cases 5, 10, 36)."""

from __future__ import annotations

import asyncio

import pytest

from fairdrop.inventory import ReserveOutcome
from fairdrop.waiting_room import Admission, AdmissionTokens, State, WaitingRoom, new_signing_key
from tests.driven_sale import DrivenSale
from tests.integration.waiting_room.counting import assert_everybody_is_counted_once


async def test_a_claim_moves_from_called_to_inside_and_keeps_the_number_inside(
    sale: DrivenSale,
) -> None:
    await sale.load(cap=2)
    await sale.join("a", "b", "c")
    await sale.tick()
    (place,) = await sale.claim("a")
    assert place.state is State.ADMITTED
    assert place.deadline_ms == sale.now_ms + 300_000
    figures = await sale.figures()
    assert (figures.called, figures.active, figures.waiting) == (1, 1, 1)
    assert figures.admitted == 1
    await sale.claim("a")
    assert (await sale.figures()).admitted == 1  # the same admission is counted once
    await assert_everybody_is_counted_once(sale)


async def test_nobody_gets_in_by_claiming_without_a_call(sale: DrivenSale) -> None:
    await sale.load(cap=1)
    await sale.join("a", "b")
    await sale.tick()
    waiting, stranger = await sale.claim("b", "stranger")
    assert (waiting.state, waiting.rank) == (State.WAITING, 0)
    assert stranger.state is State.NOT_ENTERED
    assert (await sale.figures()).active == 0


async def test_a_repeated_claim_gives_the_same_admission_and_never_a_later_deadline(
    sale: DrivenSale,
) -> None:
    await sale.load()
    await sale.join("a")
    await sale.tick()
    (first,) = await sale.claim("a")
    sale.pass_ms(299_999)
    reply = await sale.scripts.claim(sale.ref, [("a", "another id")], now_ms=sale.now_ms)
    assert reply.places == [first]


async def test_two_claims_at_once_give_one_admission(sale: DrivenSale) -> None:
    await sale.load()
    await sale.join("a")
    await sale.tick()
    reply = await sale.scripts.claim(sale.ref, [("a", "one"), ("a", "two")], now_ms=sale.now_ms)
    assert [place.admission for place in reply.places] == ["one", "one"]


async def test_a_token_asked_for_just_before_the_end_never_outlives_the_lease(
    sale: DrivenSale,
) -> None:
    """And the cap holds: the place is somebody else's the moment that the token is dead (case 36)."""
    await sale.load(cap=1)
    await sale.admit("a")
    await sale.join("b")
    lease_ms = (await sale.status("a"))[0].deadline_ms
    sale.now_ms = lease_ms - 1
    (place,) = await sale.claim("a")
    tokens = AdmissionTokens([new_signing_key()])
    token = tokens.issue(
        sale=sale.ref.id,
        buyer="a",
        admission=place.admission,
        issued_s=place.issued_s,
        deadline_ms=place.deadline_ms,
        epoch=sale.ref.epoch,
    )
    at_the_end = tokens.verify(token, sale=sale.ref.id, buyer="a", now_s=lease_ms / 1_000)
    assert not isinstance(at_the_end, Admission)
    assert (await sale.tick()).called == 0
    sale.now_ms = lease_ms
    assert (await sale.tick()).called == 1
    figures = await sale.figures()
    assert figures.called + figures.active == 1


async def test_a_completed_order_frees_its_place_and_kills_its_token_at_once(
    sale: DrivenSale,
) -> None:
    await sale.load({"seat": 10}, cap=1)
    await sale.admit("a")
    await sale.join("b")
    assert (await sale.reserve("a", ["seat", 1], hold="h")).outcome is ReserveOutcome.RESERVED
    await sale.commit("h")
    assert await sale.complete("a") == "LEFT"
    assert (await sale.reserve("a", ["seat", 1])).outcome is ReserveOutcome.NOT_ADMITTED
    assert (await sale.status("a"))[0].state is State.NOT_ENTERED
    assert (await sale.tick()).called == 1
    figures = await sale.figures()
    assert (figures.done, figures.left) == (1, 0)
    await assert_everybody_is_counted_once(sale)


async def test_completing_again_changes_nothing(sale: DrivenSale) -> None:
    """The step is durable and is repeated until it is done; it may be done twice."""
    await sale.load()
    await sale.admit("a")
    assert [await sale.complete("a") for _ in range(3)] == ["LEFT", "NOT_THERE", "NOT_THERE"]
    assert (await sale.figures()).done == 1
    await assert_everybody_is_counted_once(sale)


async def test_completing_an_old_admission_does_not_end_a_newer_one(sale: DrivenSale) -> None:
    await sale.load()
    await sale.admit("a")
    sale.pass_ms(300_000)
    await sale.join("a")
    await sale.tick()
    await sale.scripts.claim(sale.ref, [("a", "newer")], now_ms=sale.now_ms)
    assert await sale.complete("a", "adm-a") == "NOT_THERE"
    assert (await sale.status("a"))[0].state is State.ADMITTED
    assert await sale.complete("a", "newer") == "LEFT"


@pytest.mark.parametrize("stage", ["waiting", "called", "inside", "missed"])
async def test_leaving_ends_a_place_wherever_it_is(sale: DrivenSale, stage: str) -> None:
    await sale.load(cap=1)
    await sale.join("a", "b")
    if stage != "waiting":
        await sale.tick()
    if stage == "inside":
        await sale.claim("a")
    if stage == "missed":
        sale.pass_ms(60_000)
        await sale.tick()
    assert await sale.leave("a", "a") == ["LEFT", "NOT_THERE"]
    assert (await sale.status("a"))[0].state is State.NOT_ENTERED
    assert (await sale.figures()).left == 1
    await assert_everybody_is_counted_once(sale)
    sale.pass_ms(1_000)
    await sale.tick()
    assert (await sale.status("b"))[0].state is State.READY


async def test_two_requests_with_one_admission_make_one_order(sale: DrivenSale) -> None:
    """With different idempotency keys, at once and one after the other (case 10)."""
    await sale.load({"seat": 10}, buyer_limit=10)
    await sale.admit("a")
    answers = await sale.reserve_all(
        sale.request("a", ["seat", 1], hold="one"), sale.request("a", ["seat", 2], hold="two")
    )
    assert [(answer.outcome, answer.hold) for answer in answers] == [
        (ReserveOutcome.RESERVED, "one"),
        (ReserveOutcome.ALREADY_RESERVED, "one"),
    ]
    await sale.start("one", "a")
    sale.pass_ms(299_000)
    assert (await sale.reserve("a", ["seat", 1])).outcome is ReserveOutcome.ALREADY_RESERVED
    assert (await sale.stock("seat")).held == 1


async def test_an_admission_whose_order_is_confirmed_makes_no_second_one(sale: DrivenSale) -> None:
    """Also in the moment between the commit of its units and the end of its admission (W13)."""
    await sale.load({"seat": 10}, buyer_limit=10)
    await sale.admit("a")
    await sale.reserve("a", ["seat", 1], hold="h")
    await sale.start("h", "a")
    await sale.commit("h")
    assert (await sale.reserve("a", ["seat", 1])).outcome is ReserveOutcome.NOT_ADMITTED
    assert await sale.complete("a") == "LEFT"
    # A new place in the line gives a new admission, and that one buys.
    await sale.admit("a")
    assert (await sale.reserve("a", ["seat", 1])).outcome is ReserveOutcome.RESERVED


async def test_a_confirmed_order_of_a_lapsed_admission_does_not_block_the_next(
    sale: DrivenSale,
) -> None:
    """The lease ran out during payment, and the visitor was back inside when the money came."""
    await sale.load({"seat": 10}, buyer_limit=10)
    await sale.admit("a")
    await sale.reserve("a", ["seat", 1], hold="h")
    await sale.start("h", "a")
    sale.pass_ms(300_000)
    await sale.join("a")  # meets the lapsed lease before any sweep
    await sale.tick()
    await sale.scripts.claim(sale.ref, [("a", "second")], now_ms=sale.now_ms)
    await sale.commit("h")
    answer = await sale.reserve("a", ["seat", 1], admission="second")
    assert answer.outcome is ReserveOutcome.RESERVED


async def test_the_reverse_too_a_lapse_after_the_commit_forgets_the_consumed_admission(
    sale: DrivenSale,
) -> None:
    await sale.load({"seat": 10}, buyer_limit=10)
    await sale.admit("a")
    await sale.reserve("a", ["seat", 1], hold="h")
    await sale.commit("h")
    sale.pass_ms(300_000)
    await sale.join("a")
    await sale.tick()
    await sale.scripts.claim(sale.ref, [("a", "second")], now_ms=sale.now_ms)
    answer = await sale.reserve("a", ["seat", 1], admission="second")
    assert answer.outcome is ReserveOutcome.RESERVED


async def test_a_failed_order_gives_its_admission_back(sale: DrivenSale) -> None:
    await sale.load({"seat": 10})
    await sale.admit("a")
    await sale.reserve("a", ["seat", 1], hold="one")
    await sale.start("one", "a")
    await sale.free("one")  # its row has said: failed
    again = await sale.reserve("a", ["seat", 1], hold="two")
    assert (again.outcome, again.hold) == (ReserveOutcome.RESERVED, "two")


async def test_many_servers_claim_for_one_visitor_at_once(sale: DrivenSale) -> None:
    await sale.load()
    rooms = [WaitingRoom(sale.scripts.store) for _ in range(8)]
    await rooms[0].join(sale.ref, "a")
    await rooms[0].tick(sale.ref)
    standings = await asyncio.gather(*(room.claim(sale.ref, "a") for room in rooms))
    assert len({standing.place for standing in standings}) == 1
    assert (await sale.figures()).active == 1
