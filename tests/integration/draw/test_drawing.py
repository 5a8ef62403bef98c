"""From the lobby to the line: everybody drawn, nobody passed, the same order after any crash (W3, W4)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fairdrop import lottery
from fairdrop.app import Parts
from fairdrop.checkout import ReceiptRefusal
from fairdrop.draw import DrawState, EnterOutcome, EntryProofs, Step, verify
from fairdrop.drivers.keys import sale_key
from fairdrop.errors import StoreUnavailable
from fairdrop.ids import SaleRef
from fairdrop.waiting_room import EntryReceipt, Filled, Mode, RestoreOutcome, State, WaitingRoom
from tests.integration.draw.lobbies import enter, in_line, published, shut, with_a_lobby


async def test_the_line_stands_in_the_order_that_the_public_files_give(parts: Parts) -> None:
    sale = await with_a_lobby(parts)
    people = await enter(parts, sale, 300)
    await shut(parts, sale)
    assert await parts.draws.hold(sale.ref) is Step.FILLED
    files = await published(parts, sale)
    verdict = verify(files)
    assert (verdict.findings, verdict.entries) == ([], 300)
    assert sorted(files.entries.decode().split()) == sorted(people.values())
    by_entry = {entry: visitor for visitor, entry in people.items()}
    drawn = [by_entry[line.split()[1]] for line in (files.order or b"").decode().splitlines()]
    assert await in_line(parts, sale) == drawn
    assert drawn != list(people), "300 people were drawn into the order in which they came"


async def test_a_receipt_names_its_place_and_a_stranger_s_names_none(parts: Parts) -> None:
    sale = await with_a_lobby(parts)
    people = await enter(parts, sale, 50)
    await shut(parts, sale)
    await parts.draws.hold(sale.ref)
    files = await published(parts, sale)
    places = await parts.draws.places(sale.id)
    for visitor, entry in people.items():
        receipt = parts.receipts.issue(EntryReceipt(sale.id, visitor, sale.epoch, entry))
        read = parts.receipts.read(receipt)
        assert isinstance(read, EntryReceipt)
        proof = parts.entry_proofs.issue(read, sale.commitment or "")
        standing = await parts.waiting_room.status(sale.ref, visitor)
        for text in (receipt, proof):
            found = verify(files, text)
            assert (found.findings, found.place) == ([], standing.place.position)
        assert places[entry] == standing.place.position


async def test_the_seed_is_nobody_s_before_the_order_is_drawn(parts: Parts) -> None:
    sale = await with_a_lobby(parts, beacon="manual")
    record = await parts.draws.record(sale.id)
    assert record is not None
    seed = record.seed
    assert lottery.commitment(bytes.fromhex(seed)).hex() == sale.commitment
    assert seed not in repr(record)
    assert seed.encode() not in (await published(parts, sale)).parameters
    await enter(parts, sale, 3)
    await shut(parts, sale)
    assert await parts.draws.hold(sale.ref) is Step.AWAITS_BEACON
    fixed = await published(parts, sale)
    assert len(fixed.entries.split()) == 3
    assert seed.encode() not in fixed.parameters
    assert await parts.draws.enter_beacon(sale.id, "lotto 7 12 31", "test") is EnterOutcome.ENTERED
    assert await parts.draws.hold(sale.ref) is Step.FILLED
    files = await published(parts, sale)
    assert seed.encode() in files.parameters
    assert verify(files).findings == []


async def test_a_beacon_s_value_counts_only_between_the_list_and_the_draw(parts: Parts) -> None:
    """Whoever knew it before could choose entries to suit it; whoever had it after, the value."""
    sale = await with_a_lobby(parts, beacon="manual")
    await enter(parts, sale, 2)
    assert await parts.draws.enter_beacon(sale.id, "early", "test") is EnterOutcome.LIST_OPEN
    await shut(parts, sale)
    await parts.draws.hold(sale.ref)
    await parts.draws.enter_beacon(sale.id, "7", "test")
    await parts.draws.hold(sale.ref)
    assert await parts.draws.enter_beacon(sale.id, "8", "test") is EnterOutcome.DRAWN
    without = await with_a_lobby(parts)
    assert await parts.draws.enter_beacon(without.id, "8", "test") is EnterOutcome.NOT_ASKED


async def test_late_comers_stand_behind_everybody_drawn(parts: Parts) -> None:
    """Case 6: the first moment after the window is too late, also before any tick has run."""
    sale = await with_a_lobby(parts, rate_per_s=0.001)
    await enter(parts, sale, 20)
    await parts.store.redis.hset(sale_key(*sale.ref, "cfg"), "opens_ms", 1)
    late = await parts.waiting_room.join(sale.ref, "late")
    assert (late.place.state, late.place.position, late.place.rank) == (State.WAITING, 21, 20)
    await parts.waiting_room.tick(sale.ref)
    later = await parts.waiting_room.join(sale.ref, "later")
    assert (later.place.position, later.place.rank) == (22, 21)
    await parts.draws.hold(sale.ref)
    assert (await in_line(parts, sale))[-2:] == ["late", "later"]
    assert (await parts.waiting_room.status(sale.ref, "late")).place.rank <= 20


async def test_who_leaves_the_lobby_leaves_an_empty_place(parts: Parts) -> None:
    sale = await with_a_lobby(parts)
    people = await enter(parts, sale, 10)
    await parts.waiting_room.leave(sale.ref, "v3")
    assert (await parts.waiting_room.status(sale.ref, "v3")).place.state is State.NOT_ENTERED
    again = await parts.waiting_room.join(sale.ref, "v3")
    assert again.place.entry == people["v3"], "coming and going makes a second chance"
    await parts.waiting_room.leave(sale.ref, "v3")
    await parts.waiting_room.leave(sale.ref, "v4")
    await shut(parts, sale)
    await parts.waiting_room.leave(sale.ref, "v5")
    await parts.draws.hold(sale.ref)
    assert sorted(await in_line(parts, sale)) == sorted({*people} - {"v3", "v4", "v5"})
    assert len((await published(parts, sale)).entries.split()) == 10
    figures = await parts.inventory.figures(sale.ref, [])
    assert (figures.joined, figures.lobby, figures.waiting, figures.left) == (11, 0, 7, 4)


async def test_a_sale_whose_lobby_is_empty_opens_at_once(parts: Parts) -> None:
    sale = await with_a_lobby(parts)
    await shut(parts, sale)
    ticked = await parts.waiting_room.tick(sale.ref)
    assert (ticked.mode, ticked.to_fill) == (Mode.OPEN, 0)
    assert await parts.draws.hold(sale.ref) is Step.NO_DRAW


class Dying(WaitingRoom):
    """A waiting room whose caller dies after so many pieces of the line."""

    def __init__(self, room: WaitingRoom, pieces: int, size: int) -> None:
        self.__dict__ = room.__dict__.copy()
        self.pieces, self.size = pieces, size

    async def fill(self, sale: SaleRef, first: int, visitors: Any) -> Filled:
        if self.pieces == 0:
            raise StoreUnavailable("died here")
        self.pieces -= 1
        return await super().fill(sale, first, visitors[: self.size])


@pytest.mark.parametrize("pieces", [0, 1, 3])
async def test_a_worker_that_dies_in_the_middle_is_followed_by_the_same_order(
    parts: Parts, pieces: int
) -> None:
    sale = await with_a_lobby(parts)
    people = await enter(parts, sale, 40)
    await shut(parts, sale)
    draws = parts.draws
    room = draws._room
    draws._room = Dying(room, pieces, 7)
    with pytest.raises(StoreUnavailable):
        await draws.hold(sale.ref)
    half = await in_line(parts, sale)
    assert len(half) == 7 * pieces
    record = await draws.record(sale.id)
    assert record is not None
    assert record.state is DrawState.DRAWN
    draws._room = room
    assert await draws.hold(sale.ref) is Step.FILLED
    whole = await in_line(parts, sale)
    assert whole[: len(half)] == half
    places = await draws.places(sale.id)
    assert whole == sorted(people, key=lambda visitor: places[people[visitor]])
    assert verify(await published(parts, sale)).findings == []


async def test_nobody_is_called_beyond_what_is_filled(parts: Parts) -> None:
    """Case 8: those who came late wait for the whole draw, however much room there is."""
    sale = await with_a_lobby(parts)
    await enter(parts, sale, 30)
    await shut(parts, sale)
    for n in range(5):
        await parts.waiting_room.join(sale.ref, f"late{n}")
    assert (await parts.waiting_room.tick(sale.ref)).called == 0
    parts.draws._room = Dying(parts.draws._room, 1, 10)
    with pytest.raises(StoreUnavailable):
        await parts.draws.hold(sale.ref)
    ticked = await parts.waiting_room.tick(sale.ref)
    assert (ticked.called, ticked.mode, ticked.to_fill) == (10, Mode.OPEN, 20)
    assert (await parts.waiting_room.tick(sale.ref)).called == 0
    figures = await parts.inventory.figures(sale.ref, [])
    assert (figures.lobby, figures.waiting, figures.called, figures.served) == (20, 5, 10, 10)
    waiting = (await parts.waiting_room.status(sale.ref, "late0")).place
    assert (waiting.rank, waiting.position) == (20, 31)
    parts.draws._room = parts.waiting_room
    assert await parts.draws.hold(sale.ref) is Step.FILLED
    assert (await parts.waiting_room.tick(sale.ref)).called == 25


async def test_workers_that_draw_at_once_draw_once(parts: Parts) -> None:
    sale = await with_a_lobby(parts)
    await enter(parts, sale, 2_500)
    await shut(parts, sale)
    steps = await asyncio.gather(*(parts.draws.hold(sale.ref) for _ in range(4)))
    assert steps.count(Step.FILLED) == 1
    assert set(steps) <= {Step.FILLED, Step.ELSEWHERE, Step.NO_DRAW}
    assert verify(await published(parts, sale)).findings == []
    assert len(await in_line(parts, sale)) == 2_500


async def test_files_that_a_dead_worker_did_not_publish_are_published(parts: Parts) -> None:
    """It died between the last piece of the line and ``order.txt``."""
    sale = await with_a_lobby(parts)
    await enter(parts, sale, 20)
    await shut(parts, sale)
    await parts.draws.hold(sale.ref)
    async with parts.database.connection() as connection:
        await connection.execute(
            "DELETE FROM draw_files WHERE sale_id = $1::text::uuid AND name = 'order.txt'", sale.id
        )
        await connection.execute(
            "UPDATE draws SET state = 'DRAWN' WHERE sale_id = $1::text::uuid", sale.id
        )
    assert sale.id in await parts.draws.unfinished()
    assert await parts.draws.hold(sale.ref) is Step.FILLED
    assert verify(await published(parts, sale)).findings == []


async def test_a_lobby_that_the_store_lost_is_never_drawn_a_second_time(parts: Parts) -> None:
    """What was published stays; its places are what receipts are good for (W15)."""
    sale = await with_a_lobby(parts, beacon="manual")
    people = await enter(parts, sale, 12)
    await shut(parts, sale)
    assert await parts.draws.hold(sale.ref) is Step.AWAITS_BEACON
    keys = [key async for key in parts.store.redis.scan_iter(match=f"fd:{{{sale.id}}}*")]
    await parts.store.redis.delete(*keys)
    again = await parts.loader.keep_loaded(sale)
    assert again.epoch == sale.epoch + 1
    await parts.store.redis.hset(sale_key(*again.ref, "cfg"), "opens_ms", 1)
    await parts.waiting_room.tick(again.ref)
    await parts.draws.enter_beacon(sale.id, "7", "test")
    assert await parts.draws.hold(again.ref) is Step.FILLED
    assert verify(await published(parts, sale)).findings == []
    assert sorted(await parts.draws.places(sale.id)) == sorted(people.values())


async def test_after_a_loss_a_receipt_of_the_lobby_gives_the_drawn_place_back(parts: Parts) -> None:
    """W15: the list is in the database, and each receipt says whose entry is whose."""
    sale = await with_a_lobby(parts, rate_per_s=0.001, burst_ms=0)
    people = await enter(parts, sale, 12)
    receipts = {
        visitor: parts.receipts.issue(EntryReceipt(sale.id, visitor, sale.epoch, entry))
        for visitor, entry in people.items()
    }
    early = await parts.restoration.present(sale, "v1", receipts["v1"], "", now_s=0)
    assert early == ReceiptRefusal.OF_LOBBY
    await shut(parts, sale)
    await parts.draws.hold(sale.ref)
    before = await in_line(parts, sale)
    keys = [key async for key in parts.store.redis.scan_iter(match=f"fd:{{{sale.id}}}*")]
    await parts.store.redis.delete(*keys)
    again = await parts.loader.keep_loaded(sale)
    await parts.store.redis.hset(sale_key(*again.ref, "cfg"), "opens_ms", 1)
    await parts.waiting_room.tick(again.ref)
    for visitor, receipt in receipts.items():
        outcome = await parts.restoration.present(again, visitor, receipt, "", now_s=0)
        assert outcome == RestoreOutcome.RESTORED
        other = await parts.restoration.present(again, "thief", receipt, "", now_s=0)
        assert other == ReceiptRefusal.OTHER_VISITOR
    assert await in_line(parts, again) == before
    strange = parts.receipts.issue(EntryReceipt(sale.id, "x", sale.epoch, "n" * 22))
    outcome = await parts.restoration.present(again, "x", strange, "", now_s=0)
    assert outcome == ReceiptRefusal.OF_LOBBY


async def test_without_an_ed25519_key_there_is_no_public_proof(parts: Parts) -> None:
    assert EntryProofs([]).issue(EntryReceipt("s", "v", 1, "e"), "c") is None
