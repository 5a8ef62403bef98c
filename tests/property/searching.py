"""How histories are drawn, and how long they are searched."""

from __future__ import annotations

from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

Step = TypeVar("Step")

on_the_store = settings(
    max_examples=100,
    # Explaining a failure tries hundreds of histories more, each on the real store.
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    # Every history has a sale of its own; the connection may be shared.
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def histories(step: st.SearchStrategy[Step], length: int = 40) -> st.SearchStrategy[list[Step]]:
    """Long ones, because what is wrong shows late; they shrink by steps that do nothing."""
    steps = st.lists(st.none() | step, min_size=length, max_size=length)
    return steps.map(lambda drawn: [step for step in drawn if step is not None])


def pick(there: list[Any], number: int) -> list[Any]:
    """One of those there are, or none."""
    return [there[number % len(there)]] if there else []
