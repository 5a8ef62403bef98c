"""Every script is safe to run twice: a call whose connection broke is sent again (drivers/store.py).

Each scenario of the contract is told once more, with every call of its script made twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
import pytest

from fairdrop.drivers.store import Script, Store
from tests.contract.scenarios import SCENARIOS
from tests.contract.test_script_contracts import BY_NAME
from tests.driven_sale import DrivenSale, Scripts

BECOMES = {
    "RESERVED": "REPLAYED",
    "RELEASED": "NOTHING_HELD",
    "COMMITTED": "NOTHING_HELD",
    "LOADED": "CURRENT",
    "UPDATED": "CURRENT",
    "RETURNED": "RETURNED_BEFORE",
    "LEFT": "NOT_THERE",
}
"""What is done already is told so; every other answer is the same the second time."""
WAITING_ROOM = {"join", "claim", "leave", "status"}
SHOWN = sorted(
    name for name, path in BY_NAME.items() if path.parts[-3] == "inventory" or name in WAITING_ROOM
)


class RepeatingStore(Store):
    """Makes each call of one script twice, and looks at everything in between."""

    script_name = ""
    repeated = 0

    async def run(
        self,
        script: Script,
        keys: Sequence[str],
        batch: Any,
        reply: msgspec.msgpack.Decoder[Any],
        *,
        now_ms: int = 0,
    ) -> Any:
        first = await super().run(script, keys, batch, reply, now_ms=now_ms)
        if script.name != self.script_name:
            return first
        before = await self.everything(keys[0])
        second = await super().run(script, keys, batch, reply, now_ms=now_ms)
        assert await self.everything(keys[0]) == before, f"{script.name} {batch}"
        for then, now in zip(codes(first), codes(second), strict=True):
            expected = {BECOMES.get(then, then)}
            if script.name == "change" and then == "RELEASED":
                expected.add("RELEASED")  # with a key its first answer, without one what is there
            assert now in expected, (script.name, then, now)
        type(self).repeated += 1
        return first

    async def everything(self, key: str) -> dict[bytes, Any]:
        """All structures of the sale, with their content."""
        found: dict[bytes, Any] = {}
        async for name in self.redis.scan_iter(match=key.rpartition(":")[0] + ":*", count=1_000):
            kind = await self.redis.type(name)
            if kind == b"hash":
                found[name] = await self.redis.hgetall(name)
            elif kind == b"zset":
                found[name] = await self.redis.zrange(name, 0, -1, withscores=True)
            elif kind == b"set":
                found[name] = await self.redis.smembers(name)
            elif kind == b"list":
                found[name] = await self.redis.lrange(name, 0, -1)
            else:
                found[name] = await self.redis.get(name)
        return found


def codes(reply: Any) -> list[str]:
    """The status of a reply and the code of each outcome, whatever else they carry."""
    content = msgspec.to_builtins(reply)
    outcomes = content[1] if len(content) > 1 and isinstance(content[1], list) else []
    told = [one[0] if isinstance(one, list) and one else one for one in outcomes]
    return [content[0], *(code for code in told if isinstance(code, str))]


@pytest.fixture
async def repeating(store_url: str) -> AsyncIterator[RepeatingStore]:
    store = RepeatingStore(store_url, timeout_s=30)
    yield store
    await store.close()


@pytest.mark.parametrize("name", SHOWN)
async def test_a_repeated_call_changes_nothing_and_says_the_same(
    name: str, repeating: RepeatingStore
) -> None:
    repeating.script_name = name
    before = RepeatingStore.repeated
    async for _ in SCENARIOS[name](DrivenSale(Scripts(repeating))):
        pass
    assert RepeatingStore.repeated > before
