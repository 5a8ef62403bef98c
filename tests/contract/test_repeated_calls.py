"""Every script is safe to run twice: a call whose connection broke is sent again (drivers/store.py).

Each scenario of the contract is told once more, with every call of its script made twice. A script
without a scenario, or whose header does not say what a repetition does, fails.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
import pytest

from fairdrop.drivers.store import Script, Store
from tests.contract.scenarios import SCENARIOS
from tests.contract.test_script_contracts import BY_NAME, each_script, header
from tests.driven_sale import DrivenSale, Scripts

COUNTS_AGAIN = {name for name in BY_NAME if "Repeat: counts once more" in header(name)}
"""What is added up cannot be told from the same once more; their headers say what that does."""


def becomes(name: str) -> dict[str, str]:
    """What is told the second time, by the header; every other answer is the same."""
    found = re.search(r"^-- Repeat: (.+(?:\n-- [^A-Z].*)*)", header(name), re.MULTILINE)
    told = re.findall(
        r"([A-Z_]{2,}(?: and [A-Z_]{2,})*) becomes? ([A-Z_]{2,})", found[1] if found else ""
    )
    return {before: after for names, after in told for before in names.split(" and ")}


class RepeatingStore(Store):
    """Makes each call of one script twice, and looks at everything in between."""

    script_name = ""
    repeated = 0
    changed = 0

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
        changed = await self.everything(keys[0]) != before
        type(self).changed += changed
        assert not changed or script.name in COUNTS_AGAIN, f"{script.name} {batch}"
        for then, now in zip(codes(first), codes(second), strict=True):
            expected = {becomes(script.name).get(then, then)}
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


@each_script
async def test_a_repeated_call_changes_nothing_and_says_what_its_header_promises(
    name: str, repeating: RepeatingStore
) -> None:
    repeating.script_name = name
    before, changed = RepeatingStore.repeated, RepeatingStore.changed
    async for _ in SCENARIOS[name](DrivenSale(Scripts(repeating))):
        pass
    assert RepeatingStore.repeated > before
    assert (RepeatingStore.changed > changed) is (name in COUNTS_AGAIN)


def test_what_headers_say_of_repetitions_is_read() -> None:
    assert becomes("load") == {"LOADED": "CURRENT", "UPDATED": "CURRENT"}
    assert becomes("restore") == {"RESTORED": "HAS_PLACE", "ADMITTED_AGAIN": "HAS_PLACE"}
    assert becomes("change") == {"RELEASED": "NOTHING_HELD"}
    assert becomes("extend") == {}
    assert {"rates", "observe"} == COUNTS_AGAIN
