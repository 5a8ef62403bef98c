"""After any history, a loss, and any return: nobody twice, nobody passed, the cap holds (W15, case 2)."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fairdrop.drivers.store import Store
from fairdrop.ids import SaleRef
from fairdrop.waiting_room import State
from tests.driven_sale import DrivenSale, Scripts
from tests.integration.waiting_room.counting import assert_everybody_is_counted_once
from tests.property.searching import histories, on_the_store

VISITORS = [f"v{n}" for n in range(6)]
visitors = st.sampled_from(VISITORS)
Step = tuple[str, Any]
CAP = 2

before_loss = st.one_of(
    st.tuples(st.just("join"), st.lists(visitors, min_size=1, max_size=4)),
    st.tuples(st.just("tick"), st.just(None)),
    st.tuples(st.just("claim"), visitors),
    st.tuples(st.just("leave"), visitors),
    st.tuples(st.just("pass"), st.sampled_from([500, 2_000, 6_000])),
)
after_loss = st.one_of(
    st.tuples(st.just("restore"), visitors),
    st.tuples(st.just("restore"), visitors),
    st.tuples(st.just("join"), st.lists(visitors, min_size=1, max_size=2)),
    st.tuples(st.just("tick"), st.just(None)),
    st.tuples(st.just("leave"), visitors),
    st.tuples(st.just("cap"), st.sampled_from([0, 1, 2, 3])),
)


async def live(sale: DrivenSale, kind: str, what: Any) -> None:
    if kind == "join":
        await sale.join(*what)
    elif kind == "tick":
        await sale.tick()
    elif kind == "claim":
        await sale.claim(what)
    elif kind == "leave":
        await sale.leave(what)
    elif kind == "cap":
        await sale.load(cap=what)
    else:
        sale.pass_ms(what)


@settings(on_the_store, max_examples=40)
@given(before=histories(before_loss, 20), after=histories(after_loss, 20))
async def test_a_line_that_comes_back_is_the_line_that_was(
    store: Store, before: list[Step], after: list[Step]
) -> None:
    old = DrivenSale(Scripts(store))
    await old.load(cap=CAP, rate_milli=5_000, claim_ttl_ms=2_000, lease_ttl_ms=6_000)
    for kind, what in before:
        await live(old, kind, what)
    places = dict(zip(VISITORS, await old.status(*VISITORS), strict=True))
    receipts = {visitor: place for visitor, place in places.items() if place.position}
    figures = await old.figures()

    sale = DrivenSale(old.scripts, SaleRef(old.ref.id, 2), old.now_ms)
    await sale.load(
        cap=CAP,
        rate_milli=5_000,
        claim_ttl_ms=2_000,
        lease_ttl_ms=6_000,
        line=(figures.tail, figures.served, 1_000_000),
    )
    cap = CAP
    for kind, what in after:
        inside_before = await _inside(sale)
        if kind == "restore" and what in receipts:
            place = receipts[what]
            known = (await sale.status(what))[0].state is not State.NOT_ENTERED
            proof: tuple[Any, ...] = ()
            if place.state is State.ADMITTED:
                proof = (place.admission, place.issued_s, place.deadline_ms, False)
            outcome = await sale.restore(what, place.position, *proof)
            assert (outcome == "HAS_PLACE") == known
            if outcome == "ADMITTED_AGAIN":
                assert place.state is State.ADMITTED
                assert (await sale.status(what))[0] == place
            elif outcome == "RESTORED":
                assert (await sale.status(what))[0].position == place.position
        elif kind != "restore":
            await live(sale, kind, what)
            cap = what if kind == "cap" else cap
        assert await _inside(sale) <= max(cap, inside_before)
        await assert_everybody_is_counted_once(sale)
        await _stands_in_the_old_order(sale, receipts)


async def _inside(sale: DrivenSale) -> int:
    figures = await sale.figures()
    assert figures.served <= figures.tail
    return figures.called + figures.active


async def _stands_in_the_old_order(sale: DrivenSale, receipts: dict[str, Any]) -> None:
    """Whoever waits at an old position stands before all who were behind it, and before newcomers."""
    waiting = [
        (place.rank, place.position, visitor)
        for visitor, place in zip(VISITORS, await sale.status(*VISITORS), strict=True)
        if place.state is State.WAITING
    ]
    positions = [position for _, position, _ in sorted(waiting)]
    assert positions == sorted(positions)
    restored = {
        v for _, position, v in waiting if v in receipts and position == receipts[v].position
    }
    newcomers = [rank for rank, _, visitor in waiting if visitor not in restored]
    assert all(rank < min(newcomers, default=99) for rank, _, v in waiting if v in restored)
