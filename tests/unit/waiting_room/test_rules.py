"""When to ask again, and how long it may take (W5, W6)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairdrop.waiting_room import poll_after_ms, wait_range_s

ranks = st.integers(0, 10**7)


@pytest.mark.parametrize(
    ("rank", "middle_ms"),
    [(0, 1_000), (99, 1_000), (100, 3_000), (999, 3_000), (1_000, 5_000), (10**6, 5_000)],
)
def test_people_near_the_front_ask_more_often(rank: int, middle_ms: int) -> None:
    assert poll_after_ms(rank, 0.5) == middle_ms
    assert poll_after_ms(rank, 0.0) == middle_ms * 8 // 10
    assert poll_after_ms(rank, 1.0) == middle_ms * 12 // 10


@pytest.mark.parametrize(
    ("rank", "measured", "rate", "expected"),
    [
        (0, -1, 50_000, (0, 2)),  # next in line
        (99, -1, 50_000, (1, 4)),  # 2 s at the set pace
        (99, 10_000, 50_000, (8, 15)),  # the measured pace counts, when there is one
        (59_999, 50_000, 50_000, (960, 1_562)),
        (5, -1, 0, None),  # nothing was ever to move
        (5, 0, 50_000, None),  # nothing moves
    ],
)
def test_a_wait_is_told_as_a_range_around_the_expected_one(
    rank: int, measured: int, rate: int, expected: tuple[int, int] | None
) -> None:
    assert wait_range_s(rank, measured, rate) == expected


@given(rank=ranks, ahead=ranks, rate=st.integers(1, 10**7))
def test_nobody_further_back_is_promised_a_shorter_wait(rank: int, ahead: int, rate: int) -> None:
    near, far = wait_range_s(rank, rate, 0), wait_range_s(rank + ahead, rate, 0)
    assert near is not None
    assert far is not None
    assert 0 <= near[0] < near[1]
    assert near[0] <= far[0]
    assert near[1] <= far[1]


@given(
    st.lists(st.integers(0, 500), min_size=2, max_size=30),
    st.integers(1, 10**7),
    st.integers(-1, 10**7),
)
def test_while_the_outflow_is_steady_a_wait_never_rises(
    steps: list[int], rate: int, outflow: int
) -> None:
    """People ahead only become fewer; the range falls with them."""
    ahead = sum(steps)
    before = wait_range_s(ahead, outflow, rate)
    for gone in steps:
        ahead -= gone
        now = wait_range_s(ahead, outflow, rate)
        if before is None or now is None:
            assert before is now
        else:
            assert now[0] <= before[0]
            assert now[1] <= before[1]
        before = now
