"""After any mix of joins, leaves, claims, deadlines and settings, everybody is counted once (case 2)."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fairdrop.drivers.store import Store
from tests.driven_sale import DrivenSale, Scripts
from tests.property.models import LineModel
from tests.property.searching import histories, on_the_store

VISITORS = [f"v{n}" for n in range(5)]
visitors = st.sampled_from(VISITORS)
Step = tuple[str, Any]

steps = st.one_of(
    st.tuples(st.just("join"), st.lists(visitors, min_size=1, max_size=6)),
    st.tuples(st.just("tick"), st.sampled_from([500, 2, 1])),
    st.tuples(st.just("tick"), st.just(500)),
    st.tuples(st.just("claim"), st.lists(visitors, min_size=1, max_size=6)),
    st.tuples(st.just("enter"), st.lists(visitors, min_size=1, max_size=3)),
    st.tuples(st.just("lapse"), st.sampled_from([2_000, 6_000, 6_000])),
    st.tuples(st.just("leave"), visitors),
    st.tuples(st.just("front"), st.tuples(visitors, st.booleans())),
    st.tuples(st.just("complete"), visitors),
    st.tuples(st.just("pass"), st.sampled_from([500, 1_000, 2_000, 6_000, 99, -700])),
    st.tuples(
        st.just("mode"), st.sampled_from(["open", "open", "open", "paused", "draining", "closed"])
    ),
    st.tuples(st.just("cap"), st.sampled_from([2, 3, 1, 0])),
    st.tuples(st.just("burst_ms"), st.sampled_from([1_000, 250, 0])),
    st.tuples(st.just("rate_milli"), st.sampled_from([5_000, 2_000, 700, 0])),
)


class LineHistory:
    """The scripts and the model, side by side."""

    def __init__(self, store: Store) -> None:
        self.sale = DrivenSale(Scripts(store))
        self.model = LineModel(rate_milli=2_000, cap=2, claim_ttl_ms=2_000, lease_ttl_ms=6_000)
        self.admissions = 0
        self.latest_ms = self.sale.now_ms

    async def begin(self) -> None:
        model = self.model
        await self.sale.load(
            rate_milli=model.rate_milli,
            cap=model.cap,
            claim_ttl_ms=model.claim_ttl_ms,
            lease_ttl_ms=model.lease_ttl_ms,
        )

    async def step(self, kind: str, what: Any) -> None:
        sale, model = self.sale, self.model
        if kind == "enter":  # what single steps rarely come to: people who get inside
            for part, of_whom in (("join", what), ("tick", 500), ("claim", what)):
                await self.step(part, of_whom)
        elif kind == "lapse":  # and those who stay there until nobody but a tick ends it
            await self.step("pass", what)
            await self.step("tick", 500)
        elif kind == "join":
            told = await sale.join(*what)
            # A visitor who is twice in a batch gets one answer, that of the first time.
            first = {v: model.join(v, sale.now_ms) for v in dict.fromkeys(what)}
            assert [_short(place) for place in told] == [first[visitor] for visitor in what]
        elif kind == "tick":
            ticked = await sale.tick(what)
            expected = model.tick(sale.now_ms, what)
            assert (ticked.called, ticked.missed, ticked.lapsed) == expected
        elif kind == "claim":
            batch = [(visitor, f"adm-{self.admissions + n}") for n, visitor in enumerate(what)]
            self.admissions += len(batch)
            line = await sale.scripts.claim(sale.ref, batch, now_ms=sale.now_ms)
            assert [place.state for place in line.places] == [
                model.claim(visitor, admission, sale.now_ms) for visitor, admission in batch
            ]
        elif kind == "leave":
            assert (await sale.leave(what) == ["LEFT"]) == model.leave(what, sale.now_ms)
        elif kind == "front":
            visitor, first_of_all = what
            outcomes = await sale.front(visitor, first=first_of_all)
            assert [str(outcome) for outcome in outcomes] == [
                model.front(visitor, first=first_of_all)
            ]
        elif kind == "complete":
            admission = model.inside[what][2] if what in model.inside else "of another time"
            left = await sale.complete(what, admission) == "LEFT"
            assert left == model.complete(what, admission, sale.now_ms)
        elif kind == "pass":
            sale.pass_ms(what)
        else:
            await sale.load(**{kind: what})
            setattr(model, kind, what)

    async def compare(self) -> None:
        sale, model = self.sale, self.model
        figures = await sale.figures()
        counted = model.counted()
        assert {name: getattr(figures, name) for name in counted} == counted
        places = figures.waiting + figures.called + figures.active + figures.missed
        assert figures.joined == places + figures.left + figures.done
        assert figures.served <= figures.tail
        # What was over at the latest moment may be gone, also when the clock was set back since.
        self.latest_ms = max(self.latest_ms, sale.now_ms)
        revoked = set((await sale.revocations()).ids)
        assert revoked <= {name for name, until in model.revoked.items() if until > sale.now_ms}
        assert revoked >= {name for name, until in model.revoked.items() if until > self.latest_ms}
        told = await sale.status(*VISITORS)
        assert [_short(place) for place in told] == [
            model.status(visitor, sale.now_ms) for visitor in VISITORS
        ]


def _short(place: Any) -> tuple[str, int, int]:
    return place.state.value, place.position, place.rank


@on_the_store
@given(history=histories(steps))
async def test_the_line_is_what_the_model_says_after_every_step(
    store: Store, history: list[Step]
) -> None:
    line = LineHistory(store)
    await line.begin()
    for kind, what in history:
        before = (await line.sale.figures(), line.model.cap) if kind == "tick" else None
        await line.step(kind, what)
        await line.compare()
        if before is not None:
            # The cap may be lowered below what is inside; a tick never lets more in than fit.
            figures, cap = before
            inside = len(line.model.called) + len(line.model.inside)
            assert inside <= max(cap, figures.called + figures.active)
