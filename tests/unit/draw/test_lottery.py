"""The arithmetic of the draw: frozen vectors, and what must hold for any list (W4)."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairdrop import lottery

VECTORS = json.loads(
    (Path(__file__).parents[2] / "vectors" / "draw-v1.json").read_text(encoding="utf-8")
)["draws"]

entries = st.lists(
    st.text(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", min_size=22, max_size=22
    ),
    unique=True,
    max_size=40,
)
keys = st.binary(min_size=32, max_size=32)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: f"{len(vector['entries'])}")
def test_the_frozen_vectors_hold(vector: dict[str, Any]) -> None:
    seed = bytes.fromhex(vector["seed"])
    assert lottery.commitment(seed).hex() == vector["commitment"]
    root = lottery.merkle_root(vector["entries"])
    assert root.hex() == vector["root"]
    key = lottery.draw_key(seed, vector["sale"], root, vector["beacon"])
    assert key.hex() == vector["key"]
    drawn = lottery.numbers(key, vector["entries"])
    assert [number.hex() for number in drawn] == vector["numbers"]
    assert [vector["entries"][index] for index in lottery.order(drawn)] == vector["order"]


def test_the_root_is_that_of_certificate_transparency() -> None:
    """The leaves and the root of the reference implementation of RFC 6962."""
    leaves = ["", "\0", "\x10", "\x20\x21", "\x30\x31", "@ABC", "PQRSTUVW", "`abcdefghijklmno"]
    root = "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"
    assert lottery.merkle_root(leaves).hex() == root


def by_definition(found: list[str]) -> bytes:
    """RFC 6962, section 2.1, word by word."""
    if not found:
        return hashlib.sha256(b"").digest()
    if len(found) == 1:
        return hashlib.sha256(b"\0" + found[0].encode()).digest()
    half = 1
    while 2 * half < len(found):
        half *= 2
    left, right = by_definition(found[:half]), by_definition(found[half:])
    return hashlib.sha256(b"\1" + left + right).digest()


@given(entries)
def test_the_root_is_the_definition_s_for_any_list(found: list[str]) -> None:
    assert lottery.merkle_root(found) == by_definition(found)


@given(entries.filter(bool), st.data())
def test_a_path_leads_from_each_entry_to_the_root_and_from_nothing_else(
    found: list[str], data: st.DataObject
) -> None:
    """W4: not from another entry, place or length, nor by a path that was changed."""
    root, levels, size = lottery.merkle_root(found), lottery.merkle_levels(found), len(found)
    assert levels[-1] == root
    at = data.draw(st.integers(0, size - 1))
    path = lottery.inclusion_path(levels, at)
    assert len(path) <= (size - 1).bit_length()
    assert lottery.root_of_path(found[at], at, size, path) == root
    assert lottery.root_of_path(found[at] + "x", at, size, path) != root
    assert lottery.root_of_path(found[at], size, size, path) is None
    assert lottery.root_of_path(found[at], -1, size, path) is None
    assert lottery.root_of_path(found[at], at, size, [*path, root]) is None
    if path:
        assert lottery.root_of_path(found[at], at, size, path[:-1]) is None
        step = data.draw(st.integers(0, len(path) - 1))
        path[step] = bytes(32)
        assert lottery.root_of_path(found[at], at, size, path) != root


def test_the_paths_are_those_of_certificate_transparency() -> None:
    """The audit paths of the reference implementation of RFC 6962: (leaf from 1, size, path)."""
    leaves = ["", "\0", "\x10", "\x20\x21", "\x30\x31", "@ABC", "PQRSTUVW", "`abcdefghijklmno"]
    levels = lottery.merkle_levels(leaves)
    assert [each.hex() for each in lottery.inclusion_path(levels, 0)] == [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ]


@given(entries.filter(bool), st.data())
def test_no_other_list_has_the_same_root(found: list[str], data: st.DataObject) -> None:
    """Changed, moved, left out, put in: any of them is seen."""
    other = list(found)
    at = data.draw(st.integers(0, len(found) - 1))
    kind = data.draw(st.sampled_from(["change", "move", "leave out", "put in"]))
    if kind == "change":
        other[at] = ("A" if other[at][0] != "A" else "B") + other[at][1:]
    elif kind == "move":
        other.append(other.pop(at))
    elif kind == "leave out":
        del other[at]
    else:
        other.insert(at, "x" * 22)
    if other != found:
        assert lottery.merkle_root(other) != lottery.merkle_root(found)


@given(keys, entries)
def test_numbers_are_hmac_and_the_order_is_theirs(key: bytes, found: list[str]) -> None:
    drawn = lottery.numbers(key, found)
    assert drawn == [hmac.new(key, entry.encode(), hashlib.sha256).digest() for entry in found]
    assert drawn == [lottery.number(key, entry) for entry in found]
    order = lottery.order(drawn)
    assert sorted(order) == list(range(len(found)))
    assert [drawn[index] for index in order] == sorted(drawn)


@given(keys, entries)
def test_the_order_of_arrival_does_not_matter_for_the_numbers(key: bytes, found: list[str]) -> None:
    """Speed before the opening wins nothing (W3)."""
    there = dict(zip(found, lottery.numbers(key, found), strict=True))
    back = dict(zip(found[::-1], lottery.numbers(key, found[::-1]), strict=True))
    assert there == back


def test_every_part_of_the_key_changes_it() -> None:
    seed, root = b"s" * 32, b"r" * 32
    made = {
        lottery.draw_key(seed, "sale", root, ""),
        lottery.draw_key(b"t" * 32, "sale", root, ""),
        lottery.draw_key(seed, "other", root, ""),
        lottery.draw_key(seed, "sale", b"q" * 32, ""),
        lottery.draw_key(seed, "sale", root, "beacon"),
    }
    assert len(made) == 5


def test_every_seed_is_another() -> None:
    assert len({lottery.new_seed() for _ in range(100)}) == 100


def test_places_are_even() -> None:
    """Chance, roughly: over 400 draws each of four people is first about 100 times."""
    people = ["a" * 22, "b" * 22, "c" * 22, "d" * 22]
    firsts = [0, 0, 0, 0]
    for n in range(400):
        drawn = lottery.numbers(hashlib.sha256(b"%d" % n).digest(), people)
        firsts[lottery.order(drawn)[0]] += 1
    assert min(firsts) > 70
    assert max(firsts) < 130
