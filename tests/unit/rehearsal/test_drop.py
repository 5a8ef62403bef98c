"""The sale that is rehearsed: all units are there, and the control plane takes it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairdrop.rehearsal.drop import (
    LEAST_INSIDE,
    MOST_INSIDE,
    Deadlines,
    Drop,
    default_rate_per_s,
    split_units,
    time_limit_s,
)
from fairdrop.web.control_plane.bodies import NewSaleBody


@given(units=st.integers(1, 1_000_000))
def test_the_variants_have_all_units_together(units: int) -> None:
    assert sum(split_units(units)) == units
    assert min(split_units(units)) >= 0
    body = Drop("demo", "Demo", units, 50.0).body(1_800_000_000)
    assert sum(variant["quantity"] for variant in body["variants"]) == units
    assert all(variant["quantity"] > 0 for variant in body["variants"])


@pytest.mark.parametrize("short", [True, False])
@given(units=st.integers(1, 1_000_000), rate=st.floats(0.001, 100_000))
def test_the_control_plane_takes_it(short: bool, units: int, rate: float) -> None:
    body = Drop("demo", "Demo", units, rate, deadlines=Deadlines() if short else None).body(
        1_800_000_000.25
    )
    taken = NewSaleBody(**{**body, "rate_per_s": float(body["rate_per_s"])})
    assert taken.opens_at == "2027-01-15T08:00:00.250000+00:00"
    assert (taken.hold_ttl_ms < 10_000) is short


@given(units=st.integers(1, 1_000_000))
def test_the_places_inside_are_bounded(units: int) -> None:
    assert LEAST_INSIDE <= Drop("demo", "Demo", units, 50.0).cap <= MOST_INSIDE


@given(buyers=st.integers(1, 1_000_000))
def test_the_default_pace_lets_the_crowd_pass_in_seconds(buyers: int) -> None:
    assert buyers / default_rate_per_s(buyers) < 13
    assert time_limit_s(buyers, default_rate_per_s(buyers)) > 90
