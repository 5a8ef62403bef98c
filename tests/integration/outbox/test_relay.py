"""Every committed event reaches the bus, in order for each aggregate, at least once (E2, case 27)."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fairdrop import faults
from fairdrop.app import Parts
from fairdrop.drivers.keys import EVENT_STREAM
from fairdrop.drivers.store import Store
from fairdrop.errors import StoreUnavailable
from fairdrop.ids import new_id
from fairdrop.outbox import Event, Relay, insert_events


async def written(parts: Parts, *events: Event) -> None:
    async with parts.database.transaction() as connection:
        await insert_events(connection, events)


async def publish_all(parts: Parts) -> None:
    while await parts.relay.publish():
        pass


async def published(parts: Parts) -> dict[str, list[dict[str, object]]]:
    """The stream's events by subject, in its order."""
    found: dict[str, list[dict[str, object]]] = defaultdict(list)
    redis: Any = parts.store.redis
    for _, fields in await redis.xrange(EVENT_STREAM):
        document = msgspec.json.decode(fields[b"event"])
        found[document["subject"]].append(document)
    return found


async def waiting(parts: Parts, subject: str) -> int:
    async with parts.database.connection() as connection:
        count: int = await connection.fetchval(
            "SELECT count(*) FROM outbox WHERE aggregateid = $1", subject
        )
    return count


async def test_an_event_is_a_cloudevents_document_and_leaves_the_outbox(parts: Parts) -> None:
    subject = new_id()
    await written(parts, Event(subject, "order.confirmed", {"order": subject, "total": 1}))
    await publish_all(parts)
    (event,) = (await published(parts))[subject]
    assert event["specversion"] == "1.0"
    assert event["type"] == "fairdrop.order.confirmed"
    assert event["data"] == {"order": subject, "total": 1}
    assert {"id", "source", "time", "datacontenttype"} <= event.keys()
    assert await waiting(parts, subject) == 0


async def test_a_transaction_that_commits_after_the_relay_has_passed_is_published(
    parts: Parts,
) -> None:
    """Case 27, and its control: who remembers how far they have read never sees the slow one."""
    slow, quick = new_id(), new_id()
    async with parts.database.connection() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await insert_events(connection, [Event(slow, "order.reserved", {})])
        await written(parts, Event(quick, "order.reserved", {}))
        async with parts.database.connection() as reader:
            read_to = await reader.fetchval("SELECT max(seq) FROM outbox")
        await publish_all(parts)
        found = await published(parts)
        assert len(found[quick]) == 1
        assert found[slow] == []
        await transaction.commit()
    async with parts.database.connection() as reader:
        seen = await reader.fetch("SELECT aggregateid FROM outbox WHERE seq > $1", read_to)
    assert [row["aggregateid"] for row in seen] == []
    await publish_all(parts)
    assert len((await published(parts))[slow]) == 1


async def test_relays_side_by_side_keep_the_order_of_each_aggregate(parts: Parts) -> None:
    aggregates = [new_id() for _ in range(5)]
    for number in range(300):
        await written(
            parts, *(Event(aggregate, "order.step", {"n": number}) for aggregate in aggregates)
        )
    async with asyncio.timeout(60):
        await asyncio.gather(*(publish_all(parts) for _ in range(4)))
        await publish_all(parts)
    found = await published(parts)
    for aggregate in aggregates:
        assert [event["data"] for event in found[aggregate]] == [{"n": n} for n in range(300)]


async def test_a_relay_that_dies_before_its_commit_publishes_the_same_event_again(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = new_id()
    await written(parts, Event(subject, "order.confirmed", {}))

    def die(point: faults.Point) -> None:
        raise RuntimeError(point)

    monkeypatch.setattr(faults, "passing", die)
    with pytest.raises(RuntimeError):
        await publish_all(parts)
    monkeypatch.undo()
    assert await waiting(parts, subject) == 1
    await publish_all(parts)
    first, second = (await published(parts))[subject]
    assert first["id"] == second["id"]


async def test_while_the_bus_is_away_events_wait(parts: Parts, tmp_path: Path) -> None:
    subject = new_id()
    await written(parts, Event(subject, "order.confirmed", {}))
    away = Store(f"unix://{tmp_path}/nothing.sock")
    with pytest.raises(StoreUnavailable):
        await Relay(parts.database, away, kept=1_000).publish()
    assert await waiting(parts, subject) == 1
    await publish_all(parts)
    assert len((await published(parts))[subject]) == 1
