"""After any mix of arrivals, leavings, ticks and pieces of the draw, nobody is lost or passed.

W3, cases 2, 6, 8.
"""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairdrop.drivers.store import Store
from tests.driven_sale import DrivenSale, Scripts
from tests.property.searching import histories, on_the_store

VISITORS = [f"v{n}" for n in range(8)]
WINDOW_MS = 100
visitors = st.lists(st.sampled_from(VISITORS), min_size=1, max_size=5)
Step = tuple[str, Any]

steps = st.one_of(
    st.tuples(st.just("join"), visitors),
    st.tuples(st.just("join"), visitors),
    st.tuples(st.just("leave"), st.sampled_from(VISITORS)),
    st.tuples(st.just("tick"), st.sampled_from([500, 2])),
    st.tuples(st.just("pass"), st.sampled_from([400, 99, 1, 1_000])),
    st.tuples(st.just("fill"), st.sampled_from([1, 2, 8])),
    st.tuples(st.just("claim"), visitors),
)


class LobbyHistory:
    """The scripts, and what is remembered of everybody."""

    def __init__(self, store: Store) -> None:
        self.sale = DrivenSale(Scripts(store))
        self.opens_ms = self.sale.now_ms + 1_000
        self.order: list[str] | None = None
        self.entries: dict[str, str] = {}
        self.called: list[str] = []

    async def begin(self) -> None:
        await self.sale.load(
            mode="scheduled",
            opens_ms=self.opens_ms,
            lobby_ms=600,
            window_ms=WINDOW_MS,
            cap=3,
            claim_ttl_ms=10**9,
            line_cap_milli=0,
        )

    async def step(self, kind: str, what: Any) -> None:
        sale = self.sale
        if kind == "join":
            before = dict(zip(VISITORS, await sale.status(*VISITORS), strict=True))
            for visitor, place in zip(what, await sale.join(*what), strict=True):
                self.judge_join(visitor, before[visitor], place)
        elif kind == "leave":
            await sale.leave(what)
        elif kind == "tick":
            await self.tick(what)
        elif kind == "pass":
            sale.pass_ms(what)
        elif kind == "claim":
            await sale.claim(*what)
        else:
            await self.fill(what)

    def judge_join(self, visitor: str, before: Any, place: Any) -> None:
        now_ms = self.sale.now_ms
        if before.state not in {"NOT_ENTERED", "CLOSED"}:
            assert (place.state, place.position) == (before.state, before.position)
        elif now_ms < self.opens_ms - 600:
            assert place.state == "NOT_ENTERED"
        elif now_ms < self.opens_ms + WINDOW_MS:
            # Equal: whoever is there before the window ends, and the same entry on coming back.
            assert place.state == "LOBBY"
            assert self.entries.setdefault(visitor, place.entry) == place.entry
        else:
            assert (place.state, place.rank >= 0) == ("WAITING", True)
            assert place.position > len(self.entries)

    async def tick(self, limit: int) -> None:
        line = await self.in_line()
        ticked = await self.sale.tick(limit)
        # Those at the head, in their order, and nobody else.
        self.called += line[: ticked.called]
        if ticked.to_fill and self.order is not None:
            late = [visitor for visitor in line[: ticked.called] if visitor not in self.order]
            assert late == [], "somebody who came late passed people of the draw"

    async def fill(self, size: int) -> None:
        reply = await self.sale.entrants()
        if reply.status != "OK" or reply.filled >= reply.drawn:
            return
        if self.order is None:
            assert len(reply.piece) == reply.drawn == len(self.entries)
            self.order = [item[22:] for item in reply.piece]
            random.Random(len(self.order)).shuffle(self.order)
        piece = self.order[reply.filled : reply.filled + size]
        filled = await self.sale.fill(reply.filled + 1, *piece)
        assert (filled.status, filled.filled) == ("OK", reply.filled + len(piece))
        again = await self.sale.fill(reply.filled + 1, *piece)
        assert (again.status, again.placed) == ("ELSEWHERE", 0)

    async def in_line(self) -> list[str]:
        raw: list[Any] = await self.sale.scripts.store.redis.zrange(self.sale.key("line"), 0, -1)
        return [visitor.decode() for visitor in raw]

    async def compare(self) -> None:
        sale = self.sale
        figures = await sale.figures()
        places = figures.waiting + figures.called + figures.active + figures.missed
        assert figures.joined == figures.lobby + places + figures.left + figures.done
        assert figures.served <= figures.tail
        told = await sale.status(*VISITORS)
        assert sum(place.state == "LOBBY" for place in told) == figures.lobby
        ranks = sorted(place.rank for place in told if place.state == "WAITING")
        line = await self.in_line()
        assert len(ranks) == len(line)
        drawn = [
            place
            for place in told
            if place.state == "WAITING" and place.position <= len(self.entries)
        ]
        # Exact for everybody: those of the draw from 0 on, the late ones behind whoever is still to come.
        expected = [n if n < len(drawn) else n + figures.lobby for n in range(len(line))]
        assert ranks == (expected if await self.is_shut() else [])

    async def is_shut(self) -> bool:
        return bool(await self.sale.scripts.store.redis.hexists(self.sale.key("ctr"), "drawn"))


@on_the_store
@given(history=histories(steps))
async def test_nobody_is_lost_or_passed_between_lobby_and_line(
    store: Store, history: list[Step]
) -> None:
    lobby = LobbyHistory(store)
    await lobby.begin()
    for kind, what in history:
        await lobby.step(kind, what)
        await lobby.compare()
    # Whatever has happened, it ends: the lobby shuts, everybody is filled in, the sale is open.
    lobby.sale.pass_ms(3_000)
    await lobby.tick(500)
    for _ in VISITORS:
        await lobby.fill(1)
    await lobby.tick(500)
    figures = await lobby.sale.figures()
    assert (figures.lobby, figures.mode) == (0, "open")
    await lobby.compare()
