"""The crowd is the backup: a line that the store lost comes back with its people (W15; cases 3, 9)."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from fairdrop.app import Parts, open_parts
from fairdrop.catalog import Sale
from fairdrop.checkout import ReceiptRefusal
from fairdrop.embedded import BackgroundServices, Durability, EmbeddedServices
from fairdrop.waiting_room import PositionReceipt, RestoreOutcome, State
from tests.driven_sale import DrivenSale
from tests.integration.checkout.shop import open_sale
from tests.integration.control_plane.own_parts import (
    client,
    client_of,
    database_url,
    opened,
    parts,
    problem,
    settings_for,
)
from tests.integration.waiting_room.counting import assert_everybody_is_counted_once

__all__ = ["client", "database_url", "parts"]


@pytest.fixture
async def flushable(
    services: BackgroundServices, database_url: str, tmp_path: Path
) -> AsyncIterator[Parts]:
    """Parts on a store of this test alone."""
    async with EmbeddedServices(
        tmp_path / "data",
        durability=Durability.PROCESS_DEATH,
        external_database_url="postgresql://not-needed",
    ) as own:
        settings = settings_for(services, database_url, store_url=own.store_url)
        async with open_parts(settings) as parts:
            yield parts


async def reloaded(parts: Parts, sale: Sale) -> Sale:
    """What a worker does twice a second."""
    parts.catalog.forget(sale.id)
    found = await parts.catalog.sale(sale.id)
    assert found is not None
    return await parts.loader.keep_loaded(found)


async def lose(parts: Parts, sale: Sale) -> Sale:
    """The store forgets the sale; a worker builds it anew."""
    keys = [key async for key in parts.store.redis.scan_iter(match=f"fd:{{{sale.id}}}:*")]
    await parts.store.redis.delete(*keys)
    return await reloaded(parts, sale)


async def present(
    parts: Parts, sale: Sale, visitor: str, receipt: str, token: str = ""
) -> RestoreOutcome | ReceiptRefusal:
    return await parts.restoration.present(sale, visitor, receipt, token, now_s=time.time())


def receipt_of(parts: Parts, sale: Sale, visitor: str, position: int) -> str:
    return parts.receipts.of_place(sale.id, visitor, sale.epoch, position)


async def test_ten_thousand_people_get_their_places_back_after_a_flush(flushable: Parts) -> None:
    """Seven in ten come back, in any order; newcomers stand behind all of them."""
    parts = flushable
    sale = await open_sale(parts, 50_000, rate_per_s=1_000.0, line_cap_factor=0.0)
    people = [f"v{n}" for n in range(10_000)]
    room = parts.waiting_room
    standings = await asyncio.gather(*(room.join(sale.ref, visitor) for visitor in people))
    receipts = {
        visitor: receipt_of(parts, sale, visitor, standing.place.position)
        for visitor, standing in zip(people, standings, strict=True)
    }
    before = {
        visitor: standing.place.rank for visitor, standing in zip(people, standings, strict=True)
    }
    await reloaded(parts, sale)
    await parts.store.redis.flushall()
    again = await reloaded(parts, sale)
    assert again.epoch == sale.epoch + 1

    chance = random.Random(15)
    returning = chance.sample(people, 7_000)
    half = len(returning) // 2
    first = await asyncio.gather(*(present(parts, again, v, receipts[v]) for v in returning[:half]))
    newcomers = await asyncio.gather(*(room.join(again.ref, f"new{n}") for n in range(100)))
    rest = await asyncio.gather(*(present(parts, again, v, receipts[v]) for v in returning[half:]))
    assert {*first, *rest} == {RestoreOutcome.RESTORED}
    assert (await room.tick(again.ref)).called == 0  # nobody passes those who are on their way

    standings = await asyncio.gather(*(room.status(again.ref, v) for v in returning))
    order = sorted(returning, key=before.__getitem__)
    ranks = {v: one.place.rank for v, one in zip(returning, standings, strict=True)}
    assert [ranks[visitor] for visitor in order] == list(range(7_000))
    new = await asyncio.gather(*(room.status(again.ref, f"new{n}") for n in range(100)))
    assert sorted(one.place.rank for one in new) == list(range(7_000, 7_100))
    assert len(newcomers) == 100
    # The grace ends: those who stood first are called first.
    await room.grace(again.ref, 0)
    assert (await room.tick(again.ref)).called == 250
    ready = await asyncio.gather(*(room.status(again.ref, v) for v in order[:251]))
    assert [one.place.state for one in ready] == [State.READY] * 250 + [State.WAITING]
    # Somebody who comes back late stands where they stood.
    late = max(set(people) - set(returning), key=before.__getitem__)
    assert await present(parts, again, late, receipts[late]) is RestoreOutcome.RESTORED
    behind = sum(before[visitor] > before[late] for visitor in returning)
    assert (await room.status(again.ref, late)).place.rank == 7_000 - 250 - behind


async def test_those_inside_get_their_leases_back_and_never_more_than_the_cap(
    parts: Parts,
) -> None:
    sale = await open_sale(parts, 100, cap=3, rate_per_s=1_000.0)
    room = parts.waiting_room
    people = [f"v{n}" for n in range(6)]
    for visitor in people:
        await room.join(sale.ref, visitor)
    await room.tick(sale.ref)
    places = [(await room.claim(sale.ref, visitor)).place for visitor in people[:3]]
    await reloaded(parts, sale)
    tokens = [
        parts.admissions.issue(
            sale=sale.id,
            buyer=visitor,
            admission=place.admission,
            issued_s=place.issued_s,
            deadline_ms=place.deadline_ms,
            epoch=sale.epoch,
        )
        for visitor, place in zip(people, places, strict=False)
    ]
    again = await lose(parts, sale)
    # The operator has lowered the cap meanwhile: two fit, the third waits at the front.
    await parts.catalog.change(sale.id, {"cap": 2}, "test")
    again = await reloaded(parts, again)
    receipts = [receipt_of(parts, sale, v, n + 1) for n, v in enumerate(people)]
    assert await present(parts, again, people[4], receipts[4]) is RestoreOutcome.RESTORED
    told = [await present(parts, again, people[n], receipts[n], tokens[n]) for n in range(3)]
    inside, waits = RestoreOutcome.ADMITTED_AGAIN, RestoreOutcome.RESTORED
    assert told == [inside, inside, waits]
    standings = [(await room.status(again.ref, visitor)).place for visitor in people[:3]]
    assert [one.state for one in standings] == [State.ADMITTED, State.ADMITTED, State.WAITING]
    assert standings[2].rank == 0
    for place, restored in zip(places[:2], standings[:2], strict=True):
        assert (restored.admission, restored.issued_s) == (place.admission, place.issued_s)
        # The token says whole seconds: the lease never grows by it.
        assert place.deadline_ms - 1_000 < restored.deadline_ms <= place.deadline_ms
    figures = await parts.inventory.figures(again.ref, [])
    assert (figures.active, figures.pace.restored, figures.pace.restored_inside) == (2, 4, 2)
    # Showing everything again changes nothing.
    told = [await present(parts, again, people[n], receipts[n], tokens[n]) for n in range(3)]
    assert told == [RestoreOutcome.HAS_PLACE] * 3
    assert (await parts.inventory.figures(again.ref, [])).joined == figures.joined


async def test_a_place_whose_admission_was_used_is_not_given_back(parts: Parts) -> None:
    sale = await open_sale(parts, 100, rate_per_s=1_000.0)
    room = parts.waiting_room
    await room.join(sale.ref, "ann")
    await room.tick(sale.ref)
    place, _ = await room.claim(sale.ref, "ann")
    token = parts.admissions.issue(
        sale=sale.id,
        buyer="ann",
        admission=place.admission,
        issued_s=place.issued_s,
        deadline_ms=place.deadline_ms,
        epoch=sale.epoch,
    )
    async with parts.database.connection() as connection:
        await connection.execute(
            "INSERT INTO admission_reports (sale_id, admission, buyer, epoch, outcome)"
            " VALUES ($1, $2, 'ann', $3, 'completed')",
            sale.id,
            place.admission,
            sale.epoch,
        )
    receipt = receipt_of(parts, sale, "ann", 1)
    await reloaded(parts, sale)
    again = await lose(parts, sale)
    assert await present(parts, again, "ann", receipt, token) is RestoreOutcome.PLACE_USED
    assert (await room.status(again.ref, "ann")).place.state is State.NOT_ENTERED


async def test_a_receipt_of_another_is_worth_nothing_and_so_is_a_changed_one(parts: Parts) -> None:
    sale = await open_sale(parts, 100)
    other = await open_sale(parts, 100)
    await parts.waiting_room.join(sale.ref, "ann")
    receipt = receipt_of(parts, sale, "ann", 1)
    await reloaded(parts, sale)
    again = await lose(parts, sale)
    assert await present(parts, again, "bob", receipt) is ReceiptRefusal.OTHER_VISITOR
    assert await present(parts, other, "ann", receipt) is ReceiptRefusal.OTHER_SALE
    better = parts.receipts.issue(PositionReceipt(sale.id, "ann", sale.epoch, 1))
    head, _, mac = receipt.rpartition(".")
    assert better == receipt
    for forged in (head + ".", f"{head}.{mac[::-1]}", "fdr1.x.y", "", receipt[:-1]):
        assert await present(parts, again, "ann", forged) is ReceiptRefusal.FORGED
    assert (await parts.waiting_room.status(again.ref, "ann")).place.state is State.NOT_ENTERED


async def test_after_a_reset_no_receipt_and_no_token_from_before_counts(
    parts: Parts, client: httpx.AsyncClient
) -> None:
    """Case 3: reset and reopened, and the store lost once more for good measure."""
    document = await opened(client)
    name = document["id"]
    async with client_of(parts, key=None) as anybody:
        joined = (await anybody.post(f"/v1/sales/{name}/join")).json()
        bearer = {"authorization": f"Bearer {joined['visitor_token']}"}
        anybody.cookies.clear()
        problem(await client.post(f"/admin/v1/sales/{name}/reset"), 409, "wrong_mode")
        await client.post(f"/admin/v1/sales/{name}/pause")
        reset = (await client.post(f"/admin/v1/sales/{name}/reset")).json()
        assert (reset["restored"], reset["waiting"], reset["restoring_until_ms"]) == (0, 0, None)
        await client.post(f"/admin/v1/sales/{name}/resume")
        me = (await anybody.get(f"/v1/sales/{name}/me", headers=bearer)).json()
        assert me["state"] == "NOT_ENTERED"
        shown = await anybody.post(
            f"/v1/sales/{name}/restore", headers=bearer, json={"receipt": joined["receipt"]}
        )
        problem(shown, 409, "receipt_void")
        sale = await parts.catalog.sale(name)
        assert sale is not None
        await lose(parts, sale)
        shown = await anybody.post(
            f"/v1/sales/{name}/restore", headers=bearer, json={"receipt": joined["receipt"]}
        )
        problem(shown, 409, "receipt_void")
        first = (await anybody.post(f"/v1/sales/{name}/join", headers=bearer)).json()
        assert (first["rank"], first["position"]) == (0, 1)


async def test_a_client_shows_its_receipt_and_has_its_place_again(
    parts: Parts, client: httpx.AsyncClient
) -> None:
    document = await opened(client, rate_per_s=0.001, restore_grace_ms=60_000)
    name = document["id"]
    async with client_of(parts, key=None) as anybody:
        people = []
        for _ in range(5):
            joined = (await anybody.post(f"/v1/sales/{name}/join")).json()
            anybody.cookies.clear()
            people.append(({"authorization": f"Bearer {joined['visitor_token']}"}, joined))
        sale = await parts.catalog.sale(name)
        assert sale is not None
        await reloaded(parts, sale)
        await lose(parts, sale)
        for bearer, joined in reversed(people):
            me = (await anybody.get(f"/v1/sales/{name}/me", headers=bearer)).json()
            assert me["state"] == "NOT_ENTERED"
            for _ in range(2):
                shown = await anybody.post(
                    f"/v1/sales/{name}/restore", headers=bearer, json={"receipt": joined["receipt"]}
                )
                assert shown.status_code == 200, shown.text
                back = shown.json()
                assert (back["state"], back["position"]) == ("WAITING", joined["position"])
                assert back["restoring_until_ms"] > 0
                assert back["receipt"] != joined["receipt"]  # it names the new epoch
        public = (await anybody.get(f"/v1/sales/{name}")).json()
        assert public["restoring_until_ms"] > public["server_time_ms"]
        progress = (await client.get(f"/admin/v1/sales/{name}/restoration")).json()
        assert (progress["restored"], progress["waiting"]) == (5, 5)
        assert progress["lost_tail"] >= 5
        ended = await client.put(f"/admin/v1/sales/{name}/restoration", json={"grace_ms": 0})
        assert ended.json()["restoring_until_ms"] is None
        async with parts.database.connection() as connection:
            noted = await connection.fetch(
                "SELECT detail FROM operator_audit WHERE sale_id = $1 AND action = 'restore'", name
            )
        assert [row["detail"] for row in noted] == [{"grace_ms": 0}]


async def test_a_place_is_given_back_once_and_a_closed_sale_gives_none(sale: DrivenSale) -> None:
    await sale.load(cap=1, line=(50, 4, 10_000))
    assert await sale.restore("a", 7) == "RESTORED"
    assert await sale.restore("a", 7) == "HAS_PLACE"
    (new,) = await sale.join("newcomer")
    assert new.position == 51
    assert await sale.restore("beyond", 90) == "RESTORED"
    (newer,) = await sale.join("another")
    assert newer.position == 91
    assert (await sale.tick()).called == 0
    sale.pass_ms(9_999)
    assert (await sale.tick()).called == 0
    sale.pass_ms(1)
    assert (await sale.tick()).called == 1
    assert (await sale.status("a"))[0].state is State.READY
    await assert_everybody_is_counted_once(sale)
    await sale.load(mode="closed")
    assert await sale.restore("b", 8) == "SALE_CLOSED"


async def test_who_has_units_already_does_not_get_the_place_again(sale: DrivenSale) -> None:
    await sale.load({"seat": 5}, bought={"ann": 1})
    assert await sale.restore("ann", 1) == "PLACE_USED"
    assert await sale.restore("bob", 2) == "RESTORED"


async def test_invited_people_come_back_to_the_front_and_the_next_ones_stand_behind_them(
    sale: DrivenSale,
) -> None:
    await sale.load(line=(50, 4, 10_000))
    assert await sale.restore("first class", 3 - 2_000_000_000) == "RESTORED"
    assert await sale.restore("second class", 4 - 1_000_000_000) == "RESTORED"
    assert await sale.restore("everybody", 7) == "RESTORED"
    script = await sale.scripts.front(sale.ref, [("newly invited", 2, False)])
    assert script.outcomes == ["PLACED"]
    people = ["first class", "second class", "newly invited", "everybody"]
    assert [place.rank for place in await sale.status(*people)] == [0, 1, 2, 3]
    assert (await sale.figures()).tail == 50
    await assert_everybody_is_counted_once(sale)


async def test_after_a_restoration_the_serving_number_stays_behind_the_tail(
    sale: DrivenSale,
) -> None:
    """Case 8, also for leases that come back with positions beyond the mark."""
    await sale.load(cap=5, line=(10, 4, 0))
    lease_ms = sale.now_ms + 60_000
    assert await sale.restore("beyond", 30, "adm", 0, lease_ms) == "ADMITTED_AGAIN"
    assert await sale.restore("behind", 40) == "RESTORED"
    for _ in range(3):
        figures = await sale.figures()
        assert figures.served <= figures.tail
        sale.pass_ms(1_000)
        await sale.tick()
    (late,) = await sale.join("late")
    assert late.position > (await sale.figures()).served
