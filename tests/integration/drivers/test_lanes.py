"""Scripts have connections of their own; whatever happens on one, each call gets its own answer (W14)."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import AsyncIterator

import msgspec
import pytest
from redis.asyncio import Redis
from redis.exceptions import ResponseError

from fairdrop.drivers.store import CONNECTIONS, LANES, Script, Store

KEYS = ("{lanes}:1",)
NUMBER = msgspec.msgpack.Decoder(int)


def script(name: str, source: str) -> Script:
    sha = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
    return Script(name, source, sha, ("1",), ())


ECHO = script("echo", "return ARGV[2]")
SLOW_ECHO = script("slow_echo", "for i = 1, 200000 do end return ARGV[2]")
BROKEN = script("broken", "return redis.error_reply('ERR on purpose')")


@pytest.fixture
async def lanes(store_url: str) -> AsyncIterator[Store]:
    store = Store(store_url, timeout_s=30)
    yield store
    await store.close()


async def echoed(store: Store, number: int, script: Script = ECHO) -> int:
    return await store.run(script, KEYS, number, NUMBER)


async def test_calls_one_after_another_need_one_connection(lanes: Store) -> None:
    for number in range(20):
        assert await echoed(lanes, number) == number
    assert len(lanes._lanes) == len(lanes._free_lanes) == 1


async def test_more_calls_at_once_than_lanes_are_all_answered(lanes: Store) -> None:
    numbers = range(2 * (LANES + CONNECTIONS))
    assert await asyncio.gather(*(echoed(lanes, n) for n in numbers)) == list(numbers)
    assert len(lanes._lanes) == len(lanes._free_lanes) == LANES


async def test_an_answer_is_its_own_call_s_although_others_give_up(lanes: Store) -> None:
    """An answer that nobody waits for any more must not be taken for the next call's."""

    async def ask(number: int) -> bool:
        try:
            async with asyncio.timeout(random.uniform(0.001, 0.03)):
                assert await echoed(lanes, number, SLOW_ECHO) == number
        except TimeoutError:
            return False
        return True

    answered = [
        one
        for turn in range(8)
        for one in await asyncio.gather(*(ask(turn * 30 + n) for n in range(30)))
    ]
    assert {True, False} <= set(answered)
    assert await asyncio.gather(*(echoed(lanes, n) for n in range(LANES))) == list(range(LANES))


async def test_a_refused_script_leaves_its_lane_as_it_was(lanes: Store) -> None:
    with pytest.raises(ResponseError, match="on purpose"):
        await lanes.run(BROKEN, KEYS, 1, NUMBER)
    assert await echoed(lanes, 2) == 2
    assert len(lanes._lanes) == 1


async def test_lanes_that_the_server_cut_off_are_connected_anew(
    lanes: Store, store_url: str
) -> None:
    """So a restart of the store, or a proxy that ends idle connections, costs a repetition."""
    numbers = list(range(LANES))
    assert await asyncio.gather(*(echoed(lanes, n) for n in numbers)) == numbers
    other: Redis = Redis.from_url(store_url)
    for lane in lanes._lanes:
        await lane.send_command("CLIENT", "ID")
        client = await lane.read_response()
        assert await other.client_kill_filter(_id=str(client)) == 1
    await other.aclose()
    assert await asyncio.gather(*(echoed(lanes, n) for n in numbers)) == numbers


async def test_scripts_that_the_server_forgot_are_sent_anew(lanes: Store) -> None:
    assert await echoed(lanes, 1) == 1
    await lanes.redis.script_flush()
    assert await echoed(lanes, 2) == 2
