"""Anybody may ask about an entry: what that costs does not grow with the list (W4, S1)."""

from __future__ import annotations

import time

from fairdrop.draw.service import _Tree
from fairdrop.ids import new_secret_id

ENTRIES = [new_secret_id() for _ in range(100_000)]
ASKED = 2_000


def test_a_question_about_an_entry_does_not_read_the_list() -> None:
    tree = _Tree.of(ENTRIES)
    unknown = [new_secret_id() for _ in range(ASKED)]
    began = time.process_time()
    assert [tree.index_of(entry) for entry in unknown] == [None] * ASKED
    looked_up_s = time.process_time() - began
    began = time.process_time()
    assert [tree.text.find(f"{entry}\n".encode()) for entry in unknown] == [-1] * ASKED
    read_s = time.process_time() - began
    assert looked_up_s < read_s / 5


def test_each_entry_is_found_where_it_stands_and_nothing_else_is() -> None:
    tree = _Tree.of(ENTRIES[:500])
    assert [tree.index_of(entry) for entry in ENTRIES[:500]] == list(range(500))
    for other in (
        "",
        "x",
        ENTRIES[0][1:],
        f"{ENTRIES[0]}x",
        f"{ENTRIES[0][1:]}\n",
        "\n" * 22,
        "é" * 11,
    ):
        assert tree.index_of(other) is None
    assert _Tree.of([]).index_of(ENTRIES[0]) is None
