"""The arithmetic of the pace (Little's law), and its page in the docs."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairdrop.waiting_room import outlook, planning
from fairdrop.waiting_room.planning import plan_pace
from tests.unit.cli.command import run

DOCS = Path(__file__).parents[3] / "docs" / "pace.md"


@pytest.mark.parametrize("module", [planning, outlook])
def test_the_examples_are_true(module: object) -> None:
    assert doctest.testmod(module, raise_on_error=True).attempted > 0  # type: ignore[arg-type]


@given(
    st.integers(1, 10**6),
    st.floats(0.1, 10**4),
    st.floats(1, 10**4),
    st.floats(0, 1),
    st.integers(1, 10**5),
)
def test_a_cap_never_makes_anybody_faster(
    people: int, rate: float, checkout: float, no_show: float, cap: int
) -> None:
    free = plan_pace(people, rate, checkout, no_show=no_show)
    capped = plan_pace(people, rate, checkout, no_show=no_show, cap=cap)
    assert capped.inside <= min(cap, free.inside)
    assert capped.outflow_per_s <= free.outflow_per_s
    assert capped.drain_s >= free.drain_s
    assert plan_pace(people, rate, checkout, no_show=no_show, cap=free.inside) == free._replace(
        cap=free.inside
    )


def test_what_cannot_be_is_refused() -> None:
    for wrong in ((-1, 50, 180), (1, 0, 180), (1, 50, 0)):
        with pytest.raises(ValueError, match="positive"):
            plan_pace(*wrong)


def test_the_docs_show_what_the_command_prints() -> None:
    shown = DOCS.read_text("utf-8").split("$ fairdrop ")[1].split("```")[0]
    command, _, output = shown.partition("\n")
    ran = run(*command.split())
    assert ran.status == 0
    assert ran.output == output
    assert "2 h 20 min" in run(*command.split(), "--cap", "1000").output
