"""Where somebody stands (W5): admission before rank, exact ranks, nothing changed by asking."""

from __future__ import annotations

from fairdrop.waiting_room import Mode, State, WaitingRoom
from tests.driven_sale import DrivenSale


async def test_each_state_is_told_with_what_belongs_to_it(sale: DrivenSale) -> None:
    await sale.load(cap=2)
    await sale.join("inside", "called", "waits", "waits behind")
    await sale.tick()
    await sale.claim("inside")
    inside, called, waits, behind, stranger = await sale.status(
        "inside", "called", "waits", "waits behind", "stranger"
    )
    assert (inside.state, inside.position, inside.rank) == (State.ADMITTED, 1, 0)
    assert inside.deadline_ms == sale.now_ms + 300_000
    assert (inside.admission, inside.issued_s) == ("adm-inside", sale.now_ms // 1_000)
    assert (called.state, called.position, called.rank) == (State.READY, 2, 0)
    assert called.deadline_ms == sale.now_ms + 60_000
    assert (waits.state, waits.position, waits.rank) == (State.WAITING, 3, 0)
    assert (behind.state, behind.position, behind.rank) == (State.WAITING, 4, 1)
    assert (stranger.state, stranger.position) == (State.NOT_ENTERED, 0)


async def test_asking_changes_nothing(sale: DrivenSale) -> None:
    await sale.load(cap=2)
    await sale.join("a", "b", "c")
    await sale.tick()
    await sale.claim("a")
    sale.pass_ms(400_000)  # both deadlines have passed, and no sweep has run
    before = await sale.figures()
    for _ in range(3):
        await sale.status("a", "b", "c", "stranger")
    assert await sale.figures() == before
    assert before.active == before.called == 1


async def test_nobody_just_admitted_is_told_that_they_are_not_in_line(sale: DrivenSale) -> None:
    """At every step from the line to the inside there is one state, never none."""
    await sale.load()
    await sale.join("ann")
    seen = [(await sale.status("ann"))[0].state]
    await sale.tick()
    seen.append((await sale.status("ann"))[0].state)
    await sale.claim("ann")
    seen.append((await sale.status("ann"))[0].state)
    assert seen == [State.WAITING, State.READY, State.ADMITTED]


async def test_a_deadline_passed_is_over_though_no_sweep_has_run(sale: DrivenSale) -> None:
    await sale.load(cap=2)
    await sale.join("inside", "called")
    await sale.tick()
    await sale.claim("inside")
    sale.pass_ms(59_999)
    assert (await sale.status("called"))[0].state is State.READY
    sale.pass_ms(1)
    assert (await sale.status("called"))[0].state is State.MISSED
    sale.pass_ms(239_999)
    assert (await sale.status("inside"))[0].state is State.ADMITTED
    sale.pass_ms(1)
    assert (await sale.status("inside"))[0].state is State.NOT_ENTERED


async def test_rank_counts_exactly_the_people_ahead(sale: DrivenSale) -> None:
    await sale.load(cap=3)
    people = [f"v{n}" for n in range(20)]
    await sale.join(*people)
    await sale.tick()
    await sale.leave("v5", "v9", "v10")
    waiting = [visitor for visitor in people[3:] if visitor not in {"v5", "v9", "v10"}]
    ranks = [place.rank for place in await sale.status(*waiting)]
    assert ranks == list(range(len(waiting)))


async def test_the_line_as_a_whole_comes_with_every_answer(sale: DrivenSale) -> None:
    await sale.load(cap=2, mode="paused")
    await sale.join("a", "b", "c", "d", "e")
    await sale.load(mode="open")
    await sale.tick()
    for line in (await sale.status_line("a"), await sale.join_line("a")):
        assert (line.mode, line.served, line.tail, line.waiting) == (Mode.OPEN, 2, 5, 3)


async def test_the_service_tells_a_visitor_what_the_script_said(sale: DrivenSale) -> None:
    await sale.load(cap=1)
    room = WaitingRoom(sale.scripts.store)
    joined = await room.join(sale.ref, "ann")
    assert (joined.place.state, joined.line.tail) == (State.WAITING, 1)
    assert (await room.tick(sale.ref)).called == 1
    assert (await room.status(sale.ref, "ann")).place.state is State.READY
    place, _ = await room.claim(sale.ref, "ann")
    assert place.state is State.ADMITTED
    assert (await room.claim(sale.ref, "ann")).place == place
    assert await room.complete(sale.ref, "ann", place.admission) == "LEFT"
    assert await room.leave(sale.ref, "ann") == "NOT_THERE"
