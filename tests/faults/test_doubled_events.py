"""The relay dies between publishing and noting it: who follows the documented rule counts right (E2, E3)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
import pytest_asyncio

from fairdrop import faults
from fairdrop.audit import audit
from fairdrop.checkout import Granted, Wanted
from fairdrop.drivers.keys import EVENT_STREAM
from fairdrop.faults import Point
from fairdrop.ids import new_id
from fairdrop.rehearsal.drop import Deadlines
from tests.faults.whole_site import FaultySite, buyers, faulty_site

pytestmark = [
    pytest.mark.xdist_group("whole_sites"),
    pytest.mark.asyncio(loop_scope="module"),
]

DOCUMENT = Path(__file__).parents[2] / "docs" / "events.md"
AMPLE = Deadlines(claim_ttl_ms=20_000, lease_ttl_ms=60_000, hold_ttl_ms=20_000)
REFUNDS = (100, 200)
TABLES = """
CREATE SCHEMA consumer;
CREATE TABLE consumer.events_seen (source text, id text, PRIMARY KEY (source, id));
CREATE TABLE consumer.refunds_owed (amount_minor bigint NOT NULL);
"""
Event = dict[str, Any]
Take = Callable[[Any, Event], Awaitable[None]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shop() -> AsyncIterator[FaultySite]:
    async with faulty_site() as running:
        async with running.parts.database.connection() as connection:
            await connection.execute(TABLES)
        yield running


class DiesOnce:
    """What a consumer does about an event; of the first one, a process dies in the middle."""

    alive = False

    async def __call__(self, connection: Any, event: Event) -> None:
        await connection.execute(
            "INSERT INTO consumer.refunds_owed VALUES ($1)", event["data"]["amount_minor"]
        )
        if not self.alive:
            self.alive = True
            raise ConnectionResetError("dead")


def documented_rule() -> Take:
    """``take`` as docs/events.md has it."""
    (source,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    names: dict[str, Any] = {"act_on": DiesOnce()}
    exec(source, names)  # noqa: S102 - what the document tells people to write
    take: Take = names["take"]
    return take


def with_mark_before_the_work() -> Take:
    """Case 35, as a control: the mark is committed first."""
    act = DiesOnce()

    async def take(connection: Any, event: Event) -> None:
        if await connection.fetchval(
            "INSERT INTO events_seen VALUES ($1, $2) ON CONFLICT DO NOTHING RETURNING true",
            event["source"],
            event["id"],
        ):
            async with connection.transaction():
                await act(connection, event)

    return take


def without_any_rule() -> Take:
    act = DiesOnce()

    async def take(connection: Any, event: Event) -> None:
        async with connection.transaction():
            await act(connection, event)

    return take


def by_type_and_subject() -> Take:
    """The near miss: what happened to which order, instead of which event it was."""
    rule = documented_rule()

    async def take(connection: Any, event: Event) -> None:
        await rule(connection, {**event, "source": event["type"], "id": event["subject"]})

    return take


async def events_of(shop: FaultySite, order: str) -> list[Event]:
    """The order's refunds that are owed, as often as the stream has them, in its order."""
    redis: Any = shop.parts.store.redis
    events = [
        msgspec.json.decode(fields[b"event"]) for _, fields in await redis.xrange(EVENT_STREAM)
    ]
    return [
        event
        for event in events
        if (event["subject"], event["type"]) == (order, "fairdrop.order.refund_pending")
    ]


async def owed(shop: FaultySite, take: Take, events: list[Event]) -> int:
    """What a consumer's books say that is owed, after it has died and come back once."""
    async with shop.parts.database.connection() as connection:
        await connection.execute("TRUNCATE consumer.events_seen, consumer.refunds_owed")
        await connection.execute("SET search_path = consumer")
        try:
            for event in events:
                try:
                    await take(connection, event)
                except ConnectionResetError:
                    await take(connection, event)  # it was not acknowledged: it comes again
            total = await connection.fetchval("SELECT sum(amount_minor) FROM refunds_owed")
        finally:
            await connection.execute("RESET search_path")
    return int(total or 0)


async def refund_and_die(shop: FaultySite, order: str, amount_minor: int) -> None:
    """Part of the money goes back; the relay dies with that event published and not noted."""
    faults.arm(shop.faults, Point.PUBLISHED)
    wanted = Wanted(amount_minor=amount_minor, reason="asked")
    answer = await shop.parts.refunds.grant(order, wanted, key=new_id(), actor="test")
    assert isinstance(answer, Granted), answer
    async with asyncio.timeout(30):
        while await waits(shop, order):
            await asyncio.sleep(0.05)
    assert faults.died(shop.faults, Point.PUBLISHED) is not None


async def waits(shop: FaultySite, order: str) -> bool:
    """Whether the refund or an event of the order is under way."""
    async with shop.parts.database.connection() as connection:
        return bool(
            await connection.fetchval(
                "SELECT EXISTS (SELECT FROM outbox WHERE aggregateid = $1::text)"
                " OR EXISTS (SELECT FROM refunds WHERE order_id = $1::uuid AND state = 'PENDING')",
                order,
            )
        )


async def test_a_consumer_that_sees_events_twice_and_follows_the_rule_counts_right(
    shop: FaultySite,
) -> None:
    sale, seen, left = await shop.sell(buyers(1), AMPLE)
    assert not seen.complaints
    assert not any(left.values()), left
    async with shop.parts.database.connection() as connection:
        order = str(
            await connection.fetchval("SELECT id FROM orders WHERE sale_id = $1", UUID(sale))
        )
    for amount_minor in REFUNDS:
        await refund_and_die(shop, order, amount_minor)

    events = await events_of(shop, order)
    amounts = [event["data"]["amount_minor"] for event in events]
    assert amounts == [100, 100, 200, 200], "each was published twice"
    assert len({event["id"] for event in events}) == 2

    assert await owed(shop, documented_rule(), events) == sum(REFUNDS)
    assert await owed(shop, documented_rule(), events * 2) == sum(REFUNDS)
    # The controls: each departure from the rule is wrong, in its own way.
    assert await owed(shop, without_any_rule(), events) == 2 * sum(REFUNDS)
    assert await owed(shop, with_mark_before_the_work(), events) == REFUNDS[1]
    assert await owed(shop, by_type_and_subject(), events) == REFUNDS[0]
    assert await audit(shop.parts, sale) == []
