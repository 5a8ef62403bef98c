"""Identifiers: version and variant of RFC 9562, order by time, and what is not an id of ours."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from uuid import RFC_4122, UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairdrop.clock import now_ms
from fairdrop.ids import is_uuid, new_id, new_secret_id, uuid7

times_ms = st.integers(0, 2**48 - 1)


@given(at_ms=times_ms)
def test_a_uuid7_has_the_version_and_variant_bits_and_its_time(at_ms: int) -> None:
    made = uuid7(at_ms)
    assert made.version == 7
    assert made.variant == RFC_4122
    assert made.int >> 80 == at_ms


@given(one=times_ms, other=times_ms)
def test_a_later_millisecond_sorts_later_as_number_and_as_text(one: int, other: int) -> None:
    if one == other:
        return
    first, second = uuid7(min(one, other)), uuid7(max(one, other))
    assert first < second
    assert str(first) < str(second)


def test_all_74_random_bits_vary() -> None:
    seen_set = seen_clear = 0
    for _ in range(200):
        bits = uuid7(0).int
        seen_set |= bits
        seen_clear |= ~bits
    random_bits = ((1 << 80) - 1) & ~(0xF << 76) & ~(0x3 << 62)
    assert random_bits.bit_count() == 74
    assert seen_set & seen_clear & random_bits == random_bits


def test_ids_of_one_millisecond_differ() -> None:
    assert len({uuid7(1) for _ in range(10_000)}) == 10_000


@pytest.mark.parametrize("make", [new_id, new_secret_id])
def test_ids_that_many_threads_make_at_once_differ(make: Callable[[], str]) -> None:
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: [make() for _ in range(1_000)], range(8)))
    assert len({each for some in made for each in some}) == 8_000


def test_a_new_id_carries_the_present_time() -> None:
    before = now_ms()
    made_ms = int(new_id().replace("-", "")[:12], 16)
    assert before <= made_ms <= now_ms()


def test_a_new_id_is_a_uuid7_in_canonical_text() -> None:
    made = new_id()
    assert is_uuid(made)
    assert str(UUID(made)) == made
    assert (UUID(made).version, UUID(made).variant) == (7, RFC_4122)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0190B0C0-0000-7000-8000-000000000001",  # upper case: a second name for one thing
        "0190b0c0000070008000000000000001",
        "{0190b0c0-0000-7000-8000-000000000001}",
        "0190b0c0-0000-7000-8000-000000000001\n",
        "0190b0c0-0000-7000-8000-00000000000g",
        "urn:uuid:0190b0c0-0000-7000-8000-000000000001",
        "٠190b0c0-0000-7000-8000-000000000001",
    ],
)
def test_another_spelling_is_no_id(text: str) -> None:
    assert not is_uuid(text)


def test_a_secret_id_has_128_bits_and_is_safe_in_a_url_and_in_a_key() -> None:
    made = {new_secret_id() for _ in range(1_000)}
    assert len(made) == 1_000
    assert {len(secret) for secret in made} == {22}
    alphabet = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    assert set("".join(made)) <= alphabet
