"""Whether units last until somebody's turn (W16)."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from fairdrop.waiting_room import Forecast, Outlook, prospects, read_outlook

counts = st.integers(0, 100_000)
outlooks = st.builds(
    lambda free, held, sold, undecided, admitted: Outlook(
        free, held, free + held + sold, undecided, admitted
    ),
    counts,
    counts,
    counts,
    counts,
    counts,
)


def written(outlook: Outlook) -> str:
    """As the store writes it."""
    return ":".join(str(part) for part in outlook)


@given(outlooks, counts, counts, st.integers(1, 20))
def test_nobody_further_back_has_better_prospects(
    outlook: Outlook, ahead: int, more: int, limit: int
) -> None:
    order = [Forecast.LIKELY, Forecast.UNLIKELY]
    everybody = prospects(written(outlook), limit)
    near, far = everybody.of(ahead), everybody.of(ahead + more)
    if near in order and far in order:
        assert order.index(near) <= order.index(far)
    else:
        assert near is far  # nothing free is the same for everybody


@given(outlooks, counts)
def test_sold_out_is_said_exactly_when_nothing_is_free(outlook: Outlook, ahead: int) -> None:
    assume(outlook.quantity > 0)
    told = prospects(written(outlook), 4).of(ahead)
    assert (told is Forecast.SOLD_OUT) == (outlook.free == 0 and outlook.held == 0)
    assert (told is Forecast.SOLD_OUT_MAY_RETURN) == (outlook.free == 0 and outlook.held > 0)


def test_what_people_take_is_measured_once_enough_were_inside() -> None:
    unknown = Outlook(free=90, held=0, quantity=100, undecided=0, admitted=5)
    assert unknown.each(4) == 2.5
    known = Outlook(free=60, held=10, quantity=100, undecided=10, admitted=80)
    assert known.each(4) == 0.5
    assert known.lasts_for(4) == (60 - 5) / 0.5
    greedy = Outlook(free=10, held=0, quantity=1_000, undecided=0, admitted=20)
    assert greedy.each(4) == 4


def test_without_stock_there_is_no_outlook() -> None:
    assert read_outlook("") is None
    assert read_outlook("0:0:0:5:9") is None
    assert prospects("", 4).of(0) is None
