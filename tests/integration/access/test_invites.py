"""Invitations (W19): who may join, who first, each used as often as it may be, and all on record."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from fairdrop.access import InviteRefusal, Kind, Tier
from fairdrop.app import Parts
from fairdrop.errors import DatabaseUnavailable
from fairdrop.waiting_room import FrontOutcome, State
from tests.driven_sale import DrivenSale
from tests.integration.control_plane.own_parts import (
    client,
    created,
    database_url,
    opened,
    parts,
    problem,
)
from tests.integration.waiting_room.counting import assert_everybody_is_counted_once

__all__ = ["client", "database_url", "parts"]


# ---------------------------------------------------------------- the front of the line


async def test_invited_people_stand_ahead_in_the_order_of_their_coming(sale: DrivenSale) -> None:
    await sale.load(rate_milli=0)
    await sale.join("a", "b", "vip1", "c")
    assert await sale.front("vip1", "vip2") == [FrontOutcome.PLACED] * 2
    assert await sale.front("king", first=True) == [FrontOutcome.PLACED]
    ranks = {name: (await sale.status(name))[0].rank for name in ("king", "vip1", "vip2", "a", "c")}
    assert ranks == {"king": 0, "vip1": 1, "vip2": 2, "a": 3, "c": 5}
    assert await sale.front("vip1", "king") == [FrontOutcome.UNCHANGED] * 2
    await assert_everybody_is_counted_once(sale)
    await sale.load(rate_milli=4_000, burst_ms=1_000)
    sale.pass_ms(1_000)
    await sale.tick()
    states = [place.state for place in await sale.status("king", "vip1", "vip2", "a", "b")]
    assert states == [State.READY] * 4 + [State.WAITING]
    await assert_everybody_is_counted_once(sale)


async def test_the_cap_holds_for_the_invited_too(sale: DrivenSale) -> None:
    await sale.load(cap=1)
    await sale.admit("a")
    await sale.front("king", first=True)
    await sale.tick()
    assert (await sale.status("king"))[0].state is State.WAITING
    await sale.leave("a")
    await sale.tick()
    assert (await sale.status("king"))[0].state is State.READY
    assert await sale.front("king", first=True) == [FrontOutcome.UNCHANGED]


async def test_from_the_lobby_to_the_front_is_out_of_the_draw(sale: DrivenSale) -> None:
    await sale.load(mode="lobby", opens_ms=sale.now_ms + 1_000, lobby_ms=1_000)
    await sale.join("a", "vip")
    assert await sale.front("vip") == [FrontOutcome.PLACED]
    await assert_everybody_is_counted_once(sale)
    assert (await sale.join("vip"))[0].state is State.WAITING
    sale.pass_ms(1_200)
    await sale.tick()
    await sale.fill(1, "a", "vip")
    places = await sale.status("vip", "a")
    assert [place.position > 0 for place in places] == [False, True]
    await assert_everybody_is_counted_once(sale)


async def test_priority_waits_ahead_of_the_opening_and_nobody_is_called_before(
    sale: DrivenSale,
) -> None:
    await sale.load(mode="scheduled", opens_ms=sale.now_ms + 10_000)
    assert await sale.front("vip") == [FrontOutcome.TOO_EARLY]
    assert await sale.front("vip", early=True) == [FrontOutcome.PLACED]
    await sale.tick()
    assert (await sale.status("vip"))[0].state is State.WAITING
    sale.pass_ms(10_200)
    await sale.tick()
    await sale.tick()
    assert (await sale.status("vip"))[0].state is State.READY
    await assert_everybody_is_counted_once(sale)


# ---------------------------------------------------------------- over HTTP


async def join(client: httpx.AsyncClient, sale: Any, code: str = "", **headers: str) -> Any:
    client.cookies.clear()
    sent = {"authorization": "", **headers}
    if code:
        sent["fairdrop-invite"] = code
    return await client.post(f"/v1/sales/{sale['id']}/join", headers=sent)


async def invite(client: httpx.AsyncClient, sale: Any, *values: str, **more: Any) -> int:
    body = {"kind": "code", "values": list(values), **more}
    answer = await client.post(f"/admin/v1/sales/{sale['id']}/invites", json=body)
    assert answer.status_code == 200, answer.text
    changed: int = answer.json()["changed"]
    return changed


async def restrict(client: httpx.AsyncClient, parts: Parts, sale: Any, **rules: Any) -> Any:
    answer = await client.put(f"/admin/v1/sales/{sale['id']}/access", json=rules)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_sale_for_the_invited_takes_nobody_else(
    client: httpx.AsyncClient, parts: Parts
) -> None:
    sale = await opened(client)
    await restrict(client, parts, sale, entry="invited")
    assert await invite(client, sale, "ABCD-1234", "ABCD-5678") == 2
    problem(await join(client, sale), 403, "invite_required")
    wrong = problem(await join(client, sale, "WXYZ-0000"), 403, "invite_refused")
    assert wrong["reason"] == InviteRefusal.UNKNOWN
    first = await join(client, sale, " abcd 1234 ")
    assert first.status_code == 200, first.text
    again = await join(client, sale, "ABCD-1234")
    assert problem(again, 403, "invite_refused")["reason"] == InviteRefusal.USED_UP
    # Who used it needs it no more, and loses nothing by showing it again.
    visitor = {"authorization": f"Bearer {first.json()['visitor_token']}"}
    assert (await join(client, sale, **visitor)).status_code == 200
    assert (await join(client, sale, "ABCD-1234", **visitor)).status_code == 200
    other = await join(client, sale, "ABCD-5678", **visitor)
    assert problem(other, 403, "invite_refused")["reason"] == InviteRefusal.OTHER_USED


async def test_an_invitation_is_used_as_often_as_it_may_be_and_no_more(
    client: httpx.AsyncClient, parts: Parts
) -> None:
    sale = await opened(client)
    await invite(client, sale, "FOR-THREE-OF-YOU", uses=3)
    found = await asyncio.gather(
        *(
            parts.invites.use(sale["id"], f"visitor-{n}", Kind.CODE, "for three of you")
            for n in range(12)
        )
    )
    assert sorted(found) == sorted([Tier.INVITED] * 3 + [InviteRefusal.USED_UP] * 9)
    (count,) = await parts.invites.counts(sale["id"])
    assert (count.used, count.uses_max) == (3, 3)


async def test_one_visitor_uses_one_invitation_once_however_often_at_once(
    client: httpx.AsyncClient, parts: Parts
) -> None:
    sale = await opened(client)
    await invite(client, sale, "CODE-NUMBER-ONE", "CODE-NUMBER-TWO", uses=5)
    found = await asyncio.gather(
        *(
            parts.invites.use(sale["id"], "one", Kind.CODE, code)
            for code in ["CODE-NUMBER-ONE", "CODE-NUMBER-TWO"] * 6
        )
    )
    assert found.count(Tier.INVITED) == found.count(InviteRefusal.OTHER_USED) == 6
    (count,) = await parts.invites.counts(sale["id"])
    assert count.used == 1


async def test_priority_comes_early_and_stands_ahead(
    client: httpx.AsyncClient, parts: Parts
) -> None:
    opens_at = datetime.now(UTC) + timedelta(hours=1)
    sale = await created(client, opens_at=opens_at.isoformat(), lobby_ms=0)
    await invite(client, sale, "EARLY-BIRD-1", "EARLY-BIRD-2", tier="priority")
    later = (datetime.now(UTC) + timedelta(minutes=30)).isoformat()
    await restrict(client, parts, sale, priority_opens_at=later)
    problem(await join(client, sale, "EARLY-BIRD-1"), 409, "sale_not_open")
    now = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    await restrict(client, parts, sale, priority_opens_at=now)
    problem(await join(client, sale), 409, "sale_not_open")
    early = (await join(client, sale, "EARLY-BIRD-2")).json()
    assert (early["state"], early["rank"]) == ("WAITING", 0)
    assert early["position"] < 0
    assert early.get("receipt") is None
    await client.post(f"/admin/v1/sales/{sale['id']}/open")
    assert (await join(client, sale)).json()["rank"] == 1


async def test_a_named_buyer_stands_at_the_front_without_a_code(
    client: httpx.AsyncClient, parts: Parts
) -> None:
    sale = await opened(client)
    assert await invite(client, sale, "customer-4711", kind="buyer", tier="bypass") == 1
    for _ in range(3):
        assert (await join(client, sale)).status_code == 200
    token = parts.visitors.token(parts.visitors.of_buyer("customer-4711"))
    for _ in range(2):
        place = (await join(client, sale, authorization=f"Bearer {token}")).json()
        assert (place["state"], place["rank"]) == ("WAITING", 0)
    (count,) = await parts.invites.counts(sale["id"])
    assert (count.tier, count.used) == (Tier.BYPASS, 1)


async def test_what_is_taken_back_lets_nobody_in_any_more(
    client: httpx.AsyncClient, parts: Parts
) -> None:
    sale = await opened(client)
    await restrict(client, parts, sale, entry="invited")
    await invite(client, sale, "TAKEN-BACK", uses=10)
    joined = (await join(client, sale, "TAKEN-BACK")).json()
    body = {"kind": "code", "values": ["taken-back", "never-there"]}
    answer = await client.post(f"/admin/v1/sales/{sale['id']}/invites/revoke", json=body)
    assert answer.json()["changed"] == 1
    problem(await join(client, sale, "TAKEN-BACK"), 403, "invite_refused")
    visitor = {"authorization": f"Bearer {joined['visitor_token']}"}
    me = await client.get(f"/v1/sales/{sale['id']}/me", headers=visitor)
    assert me.json()["state"] == "WAITING"
    assert await invite(client, sale, "TAKEN-BACK", uses=10) == 1
    assert (await join(client, sale, "TAKEN-BACK")).status_code == 200


async def test_the_line_goes_on_while_the_database_is_away(
    client: httpx.AsyncClient, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules that are known serve on; who has to be looked up is told to come back."""
    everybody, members = await opened(client), await opened(client)
    await restrict(client, parts, members, entry="invited")
    for sale in (everybody, members):
        await join(client, sale)
    monkeypatch.setattr("fairdrop.access.invites.FRESH_S", 0.0)
    monkeypatch.setattr(parts.invites, "_database", _Away())
    for _ in range(3):
        assert (await join(client, everybody)).status_code == 200
        problem(await join(client, members), 503, "database_unavailable")


class _Away:
    def connection(self) -> Any:
        raise DatabaseUnavailable("away")


async def test_the_database_knows_no_code_and_no_address(
    client: httpx.AsyncClient, parts: Parts
) -> None:
    sale = await opened(client)
    await invite(client, sale, "SECRET-CODE-99")
    await invite(client, sale, "Ada@Example.org", kind="email")
    async with parts.database.connection() as connection:
        rows = await connection.fetch("SELECT i::text FROM invites i")
        audit = await connection.fetch(
            "SELECT action, detail::text FROM operator_audit WHERE sale_id = $1 ORDER BY id",
            sale["id"],
        )
    text = " ".join(str(row[0]) for row in rows) + str(audit)
    for secret in ("SECRET-CODE-99", "secretcode99", "ada@example.org"):
        assert secret.casefold() not in text.casefold()
        assert secret.encode().hex() not in text
    assert [row["action"] for row in audit].count("invite") == 2


async def test_every_change_is_audited(client: httpx.AsyncClient, parts: Parts) -> None:
    sale = await opened(client)
    await restrict(client, parts, sale, entry="invited")
    await invite(client, sale, "AUDITED-CODE")
    body = {"kind": "code", "values": ["AUDITED-CODE"]}
    await client.post(f"/admin/v1/sales/{sale['id']}/invites/revoke", json=body)
    async with parts.database.connection() as connection:
        rows = await connection.fetch(
            "SELECT action FROM operator_audit WHERE sale_id = $1 ORDER BY id", sale["id"]
        )
    assert [row["action"] for row in rows][-3:] == ["access", "invite", "uninvite"]
    shown = (await client.get(f"/admin/v1/sales/{sale['id']}/access")).json()
    assert shown["entry"] == "invited"
    assert shown["invites"][0] == {
        "kind": "code",
        "tier": "invited",
        "invites": 1,
        "uses": 1,
        "used": 0,
        "revoked": 1,
    }


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "code", "values": ["short"]},
        {"kind": "code", "values": ["- - - - - - - -"]},
        {"kind": "code", "values": []},
        {"kind": "phone", "values": ["0123456789"]},
        {"kind": "code", "values": ["LONG-ENOUGH"], "tier": "king"},
        {"kind": "code", "values": ["LONG-ENOUGH"], "uses": 0},
    ],
)
async def test_invitations_that_are_none_are_refused(client: httpx.AsyncClient, body: Any) -> None:
    sale = await opened(client)
    answer = await client.post(f"/admin/v1/sales/{sale['id']}/invites", json=body)
    problem(answer, 422, "invalid_request")
