"""A variant's pool, rebuilt from what is taken: nothing lost, nothing twice (H8)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairdrop.checkout.loading import variant_load


@st.composite
def variants(draw: st.DrawFn) -> tuple[int, set[int], set[int], set[int]]:
    """Serials 1..last, each free, sold, held or retired."""
    fates = draw(st.lists(st.sampled_from("free sold held retired".split()), max_size=40))
    taken: dict[str, set[int]] = {"sold": set(), "held": set(), "retired": set(), "free": set()}
    for serial, fate in enumerate(fates, 1):
        taken[fate].add(serial)
    return len(fates), taken["sold"], taken["held"], taken["retired"]


@given(variants())
def test_every_serial_is_free_once_or_taken(
    state: tuple[int, set[int], set[int], set[int]],
) -> None:
    last, sold, held, retired = state
    quantity = last - len(retired)
    load = variant_load("v", quantity, last, sold=sold, held=held, retired=retired)
    free = [*load.returned, *range(load.next_serial, load.last_serial + 1)]
    assert sorted(free) == sorted(set(range(1, last + 1)) - sold - held - retired)
    assert len(free) + len(held) + load.sold == quantity
    assert load.sold == len(sold)


def test_an_untouched_variant_has_all_its_serials_fresh() -> None:
    load = variant_load("v", 3, 3, sold=set(), held=set(), retired=set())
    assert (load.next_serial, load.returned) == (1, [])


def test_gaps_below_the_highest_taken_serial_go_out_again() -> None:
    load = variant_load("v", 9, 10, sold={2}, held={5}, retired={4})
    assert (load.next_serial, load.returned, load.sold) == (6, [1, 3], 1)


def test_a_variant_that_is_all_taken_has_nothing_left() -> None:
    load = variant_load("v", 2, 2, sold={1, 2}, held=set(), retired=set())
    assert (load.next_serial, load.returned, load.sold) == (3, [], 2)
