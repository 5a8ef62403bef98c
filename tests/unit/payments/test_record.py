"""The gateway's books: what is answered is committed, and a failing operation fails alone."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from fairdrop.payments.sandbox import operations
from fairdrop.payments.sandbox.cards import CARDS
from fairdrop.payments.sandbox.documents import CreateIntent
from fairdrop.payments.sandbox.mischief import NO_MISCHIEF, Dice, MischiefDefaults
from fairdrop.payments.sandbox.record import Record, RecordUnusable, Transaction

NOW_MS = 1_800_000_000_000
GOOD = CARDS["4242424242424242"]
DICE = Dice(MischiefDefaults())


@pytest.fixture
def commits() -> list[Transaction]:
    return []


@pytest.fixture
def record(tmp_path: Path, commits: list[Transaction]) -> Iterator[Record]:
    record = Record(tmp_path / "books.sqlite3", lambda: NOW_MS, commits.append)
    yield record
    record._writer.shutdown()
    record._db.close()


def create(tx: Transaction, key: str) -> str:
    request = CreateIntent(amount_minor=100, currency="EUR", reference=key)
    made = operations.create_intent(tx, request, key, b"fingerprint")
    assert isinstance(made, operations.Made)
    return str(made.document.id)


def create_pay_and_break(tx: Transaction) -> None:
    intent_id = create(tx, "broken")
    operations.pay(tx, intent_id, GOOD, NO_MISCHIEF, DICE)
    raise RuntimeError("a fault of one operation")


async def test_an_operation_that_fails_leaves_nothing_and_its_neighbours_alone(
    record: Record, commits: list[Transaction]
) -> None:
    results = await asyncio.gather(
        record.run(partial(create, key="before")),
        record.run(create_pay_and_break),
        record.run(partial(create, key="after")),
        return_exceptions=True,
    )
    assert isinstance(results[1], RuntimeError)
    for key, intent_id in (("before", results[0]), ("after", results[2])):
        (found,) = await record.run(partial(operations.find_intents, reference=key))
        assert found.id == intent_id
    assert await record.run(partial(operations.find_intents, reference="broken")) == []
    assert await record.run(operations.count_deliveries) == 0
    assert [delivery for commit in commits for delivery in commit.deliveries] == []


async def test_what_arrives_during_a_commit_shares_the_next(
    record: Record, commits: list[Transaction]
) -> None:
    await asyncio.gather(*(record.run(partial(create, key=f"k{n}")) for n in range(500)))
    assert len(commits) < 10


async def test_a_commit_waits_for_the_disk_and_nobody_is_told_before_it(record: Record) -> None:
    assert record._db.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    assert record._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    disk_answers = threading.Event()
    record._writer.submit(disk_answers.wait)  # the one writer thread: COMMIT waits behind it
    creating = asyncio.ensure_future(record.run(partial(create, key="k")))
    while not record._db.in_transaction:
        await asyncio.sleep(0)
    reading = asyncio.ensure_future(record.run(partial(operations.find_intents, reference="k")))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not creating.done()
    assert not reading.done()
    disk_answers.set()
    assert [intent.id for intent in await reading] == [await creating]


async def test_a_caller_that_goes_away_stops_nobody(record: Record) -> None:
    calls = [asyncio.ensure_future(record.run(partial(create, key=f"k{n}"))) for n in range(3)]
    await asyncio.sleep(0)
    calls[1].cancel()
    first, cancelled, last = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(first, str)
    assert isinstance(cancelled, asyncio.CancelledError)
    assert isinstance(last, str)


async def test_the_table_itself_refuses_a_second_charge_and_too_much_refund(
    record: Record,
) -> None:
    intent_id = await record.run(partial(create, key="k"))
    await record.run(
        partial(operations.pay, intent_id=intent_id, card=GOOD, mischief=NO_MISCHIEF, dice=DICE)
    )

    def charge_again(tx: Transaction) -> None:
        intent = operations.read_intent(tx, intent_id)
        assert intent is not None
        operations._charge(tx, intent, NO_MISCHIEF)

    def refund_too_much(tx: Transaction) -> None:
        tx.execute("add_refunded", {"id": intent_id, "amount_minor": 101})

    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE constraint failed"):
        await record.run(charge_again)
    with pytest.raises(sqlite3.IntegrityError, match="CHECK constraint failed"):
        await record.run(refund_too_much)
    assert len(await record.run(partial(operations.read_charges, after=0, limit=10))) == 1


async def test_books_of_another_version_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "books.sqlite3"
    record = Record(path, lambda: NOW_MS, lambda _tx: None)
    record._db.execute("PRAGMA user_version = 99")
    await record.close()
    with pytest.raises(RecordUnusable, match="version 99"):
        Record(path, lambda: NOW_MS, lambda _tx: None)


async def test_a_settlement_whose_timer_ran_ahead_of_the_clock_is_still_to_come(
    record: Record, commits: list[Transaction]
) -> None:
    """Looking too early writes nothing, and must not be the last look."""
    intent_id = await record.run(partial(create, key="slow"))
    slow = CARDS["4000000000000259"]
    await record.run(
        partial(operations.pay, intent_id=intent_id, card=slow, mischief=NO_MISCHIEF, dice=DICE)
    )
    commits.clear()
    await record.run(partial(operations.settle, intent_id=intent_id))
    assert [commit.settlements for commit in commits] == [[(intent_id, NOW_MS + 3_000)]]
