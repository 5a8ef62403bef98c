"""What buyers, operators and anybody else see of a lobby and its draw, over HTTP (W3, W4, W5)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairdrop import lottery
from fairdrop.app import Parts
from fairdrop.cli.verify_draw import write
from fairdrop.draw import PublicFiles, Step, service, verify, verify_entry
from fairdrop.drivers.keys import sale_key
from tests.integration.control_plane.own_parts import client_of, created, problem
from tests.unit.cli.command import run


async def joined(parts: Parts, sale: Any) -> tuple[httpx.AsyncClient, Any]:
    """A browser of its own that has joined, and what it was told."""
    client = client_of(parts, key=None)
    answer = await client.post(f"/v1/sales/{sale['slug']}/join")
    assert answer.status_code == 200, answer.text
    return client, answer.json()


async def the_window_ends(parts: Parts, sale: Any) -> None:
    known = await parts.catalog.sale(sale["id"])
    assert known is not None
    await parts.store.redis.hset(sale_key(*known.ref, "cfg"), "opens_ms", 1)
    await parts.waiting_room.tick(known.ref)
    assert await parts.draws.hold(known.ref) in {Step.FILLED, Step.AWAITS_BEACON}


async def in_lobby(parts: Parts, client: httpx.AsyncClient, **more: Any) -> Any:
    sale = await created(client, lobby_ms=7_200_000, **more)
    known = await parts.catalog.sale(sale["id"])
    assert known is not None
    await parts.waiting_room.tick(known.ref)
    return sale


async def test_a_buyer_goes_from_the_lobby_to_a_place_that_anybody_can_check(
    parts: Parts, tmp_path: Path
) -> None:
    async with client_of(parts) as operator:
        sale = await in_lobby(parts, operator)
        public = (await operator.get(f"/v1/sales/{sale['slug']}")).json()
        assert public["mode"] == "lobby"
        assert public["commitment"] == sale["commitment"]
        crowd = [await joined(parts, sale) for _ in range(5)]
        me, told = crowd[2]
        assert (told["state"], told["total_waiting"], told["position"]) == ("LOBBY", 3, 0)
        again = (await me.post(f"/v1/sales/{sale['slug']}/join")).json()
        assert (again["entry"], again["receipt"]) == (told["entry"], told["receipt"])
        here = (await me.get(f"/v1/sales/{sale['slug']}/me")).json()
        assert (here["state"], here["entry"], here["total_waiting"]) == ("LOBBY", told["entry"], 5)
        refused = await me.post(f"/v1/sales/{sale['slug']}/claim")
        assert problem(refused, 409, "not_called")["state"] == "LOBBY"

        asked = {"receipt": told["receipt"]}
        proof = (await me.post(f"/v1/sales/{sale['slug']}/receipt", json=asked)).json()
        assert proof["entry"] == told["entry"]

        await the_window_ends(parts, sale)
        after = (await me.get(f"/v1/sales/{sale['slug']}/me")).json()
        base = f"/v1/sales/{sale['slug']}/draw"
        got = [await me.get(f"{base}/{name}") for name in ("draw.json", "entries.txt", "order.txt")]
        assert [answer.status_code for answer in got] == [200, 200, 200]
        files = PublicFiles(*(answer.content for answer in got))
        verdict = verify(files, proof["proof"])
        assert (verdict.findings, verdict.place) == ([], after["position"])
        for client, about in crowd:
            short = await client.get(f"{base}/entries/{about['entry']}")
            assert verify_entry(got[0].content, short.content, about["receipt"]).findings == []
        shown = await me.get(f"{base}/entries/{told['entry']}")
        assert "immutable" in shown.headers["cache-control"]
        again = await me.get(shown.url.path, headers={"if-none-match": shown.headers["etag"]})
        assert again.status_code == 304
        for unknown in ("x" * 22, told["entry"][1:], f"{told['entry']}%0A", "%0A" * 23):
            problem(await me.get(f"{base}/entries/{unknown}"), 404, "entry_not_listed")
        write(tmp_path, files)
        assert run("verify-draw", str(tmp_path)).status == 0
        for client, _ in crowd:
            await client.aclose()


async def test_two_draws_that_are_asked_about_in_turn_are_hashed_once_each(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What anybody may ask costs the same whoever asks what (S1)."""
    hashed: list[int] = []

    def counted(entries: Sequence[str]) -> list[bytes]:
        hashed.append(len(entries))
        return levels(entries)

    levels = lottery.merkle_levels
    monkeypatch.setattr(lottery, "merkle_levels", counted)
    async with client_of(parts) as operator:
        addresses = []
        for people in (1, 2):
            sale = await in_lobby(parts, operator)
            entries = []
            for _ in range(people):
                browser, told = await joined(parts, sale)
                await browser.aclose()
                entries.append(told["entry"])
            await the_window_ends(parts, sale)
            addresses.append(f"/v1/sales/{sale['slug']}/draw/entries/{entries[-1]}")
        answers = [await operator.get(address) for address in addresses * 3]
        assert [answer.json()["entries"] for answer in answers] == [1, 2] * 3
        assert hashed == [1, 2]
        monkeypatch.setattr(service, "KEPT", 2)
        for address in addresses * 2:
            assert (await operator.get(address)).status_code == 200
        assert hashed == [1, 2, 2, 1, 2]  # of the two, the one asked about last is kept


async def test_public_files_are_cached_and_what_is_not_public_is_not_there(parts: Parts) -> None:
    async with client_of(parts) as client:
        sale = await in_lobby(parts, client)
        base = f"/v1/sales/{sale['slug']}/draw"
        one = await client.get(base)
        assert (one.json()["state"], one.json()["seed"], one.json()["files"]) == (
            "committed",
            None,
            [],
        )
        assert "max-age=1" in one.headers["cache-control"]
        same = await client.get(base, headers={"if-none-match": one.headers["etag"]})
        assert same.status_code == 304
        problem(await client.get(f"{base}/entries.txt"), 404, "not_published")
        problem(await client.get(f"{base}/seed.txt"), 404, "not_found")
        browser, _ = await joined(parts, sale)
        await browser.aclose()
        await the_window_ends(parts, sale)
        file = await client.get(f"{base}/entries.txt")
        assert "immutable" in file.headers["cache-control"]
        assert int(file.headers["content-length"]) == len(file.content) == 23
        again = await client.get(
            f"{base}/entries.txt", headers={"if-none-match": file.headers["etag"]}
        )
        assert again.status_code == 304


@pytest.mark.parametrize("receipt", ["fdr1.x.y", "nothing", "eyJ.a.b"])
async def test_a_receipt_that_is_not_ours_is_not_signed(parts: Parts, receipt: str) -> None:
    async with client_of(parts) as client:
        sale, other = await in_lobby(parts, client), await in_lobby(parts, client)
        path = f"/v1/sales/{sale['slug']}/receipt"
        problem(await client.post(path, json={"receipt": receipt}), 422, "receipt_unknown")
        browser, told = await joined(parts, other)
        await browser.aclose()
        strange = await client.post(path, json={"receipt": told["receipt"]})
        problem(strange, 422, "receipt_unknown")


async def test_an_operator_enters_the_beacon_and_nobody_changes_it_after(parts: Parts) -> None:
    async with client_of(parts) as client:
        sale = await in_lobby(parts, client, beacon="manual")
        path = f"/admin/v1/sales/{sale['slug']}/draw/beacon"
        problem(await client.put(path, json={"value": "1"}), 409, "list_open")
        browser, _ = await joined(parts, sale)
        await browser.aclose()
        await the_window_ends(parts, sale)
        answer = await client.put(path, json={"value": "lotto 7 12 31"})
        assert (answer.json()["state"], answer.json()["beacon_value"]) == ("fixed", "lotto 7 12 31")
        await the_window_ends(parts, sale)
        problem(await client.put(path, json={"value": "2"}), 409, "already_drawn")
        shown = (await client.get(f"/admin/v1/sales/{sale['slug']}/draw")).json()
        assert (shown["state"], shown["entries"]) == ("filled", 1)
        problem(await client.get("/admin/v1/sales/no-such/draw"), 404, "no_such_sale")


async def test_lobby_and_beacon_can_change_until_the_sale_opens(parts: Parts) -> None:
    async with client_of(parts) as client:
        sale = await in_lobby(parts, client)
        path = f"/admin/v1/sales/{sale['slug']}"
        later = (datetime.now(UTC) + timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
        changed = await client.patch(path, json={"opens_at": later, "window_ms": 250})
        assert changed.status_code == 200, changed.text
        assert (changed.json()["mode"], changed.json()["window_ms"]) == ("lobby", 250)
        for bad in ({"lobby_ms": -1}, {"beacon": "file:///etc/passwd"}, {"beacon_failure": "x"}):
            problem(await client.patch(path, json=bad), 422, "invalid_request")
        browser, _ = await joined(parts, sale)
        await browser.aclose()
        await the_window_ends(parts, sale)
        for late in ({"lobby_ms": 5}, {"opens_at": "2099-01-01T00:00"}, {"beacon": "manual"}):
            problem(await client.patch(path, json=late), 409, "already_opened")


async def test_opening_a_lobby_by_hand_draws_it_first(parts: Parts) -> None:
    async with client_of(parts) as client:
        sale = await in_lobby(parts, client, window_ms=0)
        browser, _ = await joined(parts, sale)
        opened = await client.post(f"/admin/v1/sales/{sale['slug']}/open")
        assert opened.status_code == 200, opened.text
        known = await parts.catalog.sale(sale["id"])
        assert known is not None
        assert (await parts.waiting_room.tick(known.ref)).mode == "drawing"
        late, told = await joined(parts, sale)
        assert (told["state"], told["rank"]) == ("WAITING", 1)
        assert await parts.draws.hold(known.ref) is Step.FILLED
        here = (await browser.get(f"/v1/sales/{sale['slug']}/me")).json()
        assert (here["state"], here["position"], here["rank"]) == ("WAITING", 1, 0)
        await browser.aclose()
        await late.aclose()
