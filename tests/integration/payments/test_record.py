"""The gateway's own record, read page by page (SPEC O11)."""

from __future__ import annotations

import asyncio

import pytest

from fairdrop.payments import SandboxGateway
from tests.integration.payments.running_gateway import Buyer, Connect, RunningGateway, an_intent


async def test_pages_show_every_charge_once_and_in_order(
    adapter: SandboxGateway, buyer: Buyer
) -> None:
    start = (await adapter.charges(limit=1_000)).last
    intents = [await an_intent(adapter, amount) for amount in range(1, 8)]
    for intent in intents:
        await buyer.pay(intent)
    seen, after = [], start
    while True:
        page = await adapter.charges(after, limit=3)
        seen += [(charge.intent, charge.amount_minor, charge.reference) for charge in page.data]
        if page.next is None:
            break
        assert page.next == page.last
        after = page.next
    assert seen == [(intent.id, intent.amount_minor, intent.reference) for intent in intents]


async def test_whoever_follows_the_record_misses_nothing_written_meanwhile(
    adapter: SandboxGateway, buyer: Buyer
) -> None:
    after = (await adapter.charges(limit=1_000)).last
    writing = asyncio.gather(*(_pay_one(adapter, buyer) for _ in range(60)))
    seen: list[str] = []
    while True:
        finished = writing.done()
        page = await adapter.charges(after, limit=7)
        seen += [charge.intent for charge in page.data]
        after = page.last
        if finished and page.next is None:
            break
    assert len(seen) == len(set(seen))
    assert set(seen) == set(await writing)


async def _pay_one(adapter: SandboxGateway, buyer: Buyer) -> str:
    intent = await an_intent(adapter)
    await buyer.pay(intent)
    return intent.id


async def test_an_empty_record_has_no_cursor(own_gateway: RunningGateway, connect: Connect) -> None:
    adapter = connect(own_gateway)
    for page in (await adapter.charges(), await adapter.refunds()):
        assert (page.data, page.next, page.last) == ((), None, None)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("after=x", "invalid_cursor"),
        ("after=-1", "invalid_cursor"),
        ("after=" + "9" * 30, "invalid_cursor"),
        ("limit=0", "invalid_limit"),
        ("limit=1001", "invalid_limit"),
        ("limit=9999999999999", "invalid_limit"),
        ("limit=ten", "invalid_limit"),
    ],
)
async def test_a_wrong_cursor_or_limit_is_refused(buyer: Buyer, query: str, code: str) -> None:
    for path in ("/v1/charges", "/v1/refunds"):
        status, told = await buyer.as_shop("GET", f"{path}?{query}")
        assert (status, told["code"]) == (400, code)
