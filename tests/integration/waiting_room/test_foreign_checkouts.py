"""Tokens for checkouts that are not ours: verified, revoked, reported (W12, W13, W20; cases 3, 5, 10)."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import httpx
import pytest

from fairdrop.app import Parts
from fairdrop.errors import StoreUnavailable
from fairdrop.waiting_room import REVOKED_CHARS
from tests.driven_sale import DrivenSale
from tests.integration.control_plane.own_parts import (
    client,
    client_of,
    database_url,
    opened,
    parts,
    problem,
)
from tests.integration.waiting_room.counting import assert_everybody_is_counted_once

__all__ = ["client", "database_url", "parts"]


# ---------------------------------------------------------------- in the store


async def revoked(sale: DrivenSale) -> set[str]:
    return set((await sale.revocations()).ids)


async def test_an_admission_that_ends_early_is_revoked_and_one_that_runs_out_is_not(
    sale: DrivenSale,
) -> None:
    await sale.load(lease_ttl_ms=10_000)
    await sale.admit("done", "gone", "late")
    await sale.complete("done")
    await sale.leave("gone")
    assert await revoked(sale) == {"adm-done", "adm-gone"}
    sale.pass_ms(10_000)
    await sale.tick()
    assert await revoked(sale) == set()
    await assert_everybody_is_counted_once(sale)


async def test_leaving_the_line_revokes_nothing(sale: DrivenSale) -> None:
    await sale.load(rate_milli=1_000)
    await sale.join("called", "waiting")
    await sale.tick()
    await sale.leave("called", "waiting")
    assert await revoked(sale) == set()


async def test_the_list_shrinks_by_itself_also_when_nobody_reads_it(sale: DrivenSale) -> None:
    await sale.load(lease_ttl_ms=1_000)
    key = f"fd:{{{sale.ref.id}}}:1:revoked"
    for round_ in range(20):
        visitors = [f"{round_}-{n}" for n in range(10)]
        await sale.admit(*visitors)
        await sale.leave(*visitors)
        sale.pass_ms(1_000)
    assert await sale.scripts.store.redis.zcard(key) <= 20


async def test_the_list_is_read_page_by_page_the_longest_lived_first(sale: DrivenSale) -> None:
    await sale.load(lease_ttl_ms=10_000)
    for name in "abc":
        await sale.admit(name)
        await sale.complete(name)
        sale.pass_ms(1)
    first, second, third = [await sale.revocations(offset, 1) for offset in range(3)]
    assert [first.ids, second.ids, third.ids] == [["adm-c"], ["adm-b"], ["adm-a"]]
    assert not (await sale.revocations(3, 1)).more


# ---------------------------------------------------------------- over HTTP

SALE: dict[str, Any] = {"rate_per_s": 1_000}


class Inside:
    """A visitor who was admitted, and what they have to show."""

    def __init__(self, client: httpx.AsyncClient, sale: Any, visitor: Any, place: Any) -> None:
        self.client, self.sale, self.visitor = client, sale, visitor["visitor"]
        self.visitor_token: str = visitor["visitor_token"]
        self.token: str = place["token"]
        self.as_visitor = {"authorization": f"Bearer {self.visitor_token}"}

    async def auth(self, sale: Any = None, **headers: str) -> httpx.Response:
        given = {"authorization": "", "fairdrop-admission": self.token, **headers}
        named = {name.replace("_", "-"): value for name, value in given.items()}
        self.client.cookies.clear()
        return await self.client.get(
            f"/v1/sales/{(sale or self.sale)['id']}/auth",
            headers={name: value for name, value in named.items() if value or name != "cookie"},
        )

    async def report(self, outcome: str = "completed", **more: Any) -> httpx.Response:
        self.client.cookies.clear()
        return await self.client.post(
            f"/v1/sales/{self.sale['id']}/completions",
            json={"outcome": outcome, "token": self.token, **more},
        )


async def admitted(client: httpx.AsyncClient, parts: Parts, sale: Any) -> Inside:
    client.cookies.clear()
    joined = await client.post(f"/v1/sales/{sale['id']}/join", headers={"authorization": ""})
    visitor = joined.json()
    headers = {"authorization": f"Bearer {visitor['visitor_token']}"}
    found = await parts.catalog.sale(sale["id"])
    assert found is not None
    await parts.waiting_room.tick(found.ref)
    place = await client.post(f"/v1/sales/{sale['id']}/claim", headers=headers)
    assert place.status_code == 200, place.text
    assert f"fairdrop_admission_{sale['slug']}=" in place.headers["set-cookie"]
    return Inside(client, sale, visitor, place.json())


@pytest.fixture
async def inside(client: httpx.AsyncClient, parts: Parts) -> Inside:
    return await admitted(client, parts, await opened(client, **SALE))


async def test_a_proxy_lets_the_admitted_pass_and_learns_who_they_are(inside: Inside) -> None:
    answer = await inside.auth()
    assert answer.status_code == 204
    assert answer.headers["fairdrop-buyer"] == inside.visitor
    assert answer.headers["fairdrop-sale"] == inside.sale["id"]
    assert answer.headers["fairdrop-admission-id"]
    assert answer.headers["cache-control"] == "no-store"


async def test_the_cookie_that_claiming_set_is_enough(inside: Inside) -> None:
    cookie = f"a=1; fairdrop_admission_{inside.sale['slug']}={inside.token}"
    given = {"authorization": "", "cookie": cookie}
    answer = await inside.client.get(f"/v1/sales/{inside.sale['id']}/auth", headers=given)
    assert answer.status_code == 204


async def test_every_refusal_has_its_status_and_its_reason(
    inside: Inside, parts: Parts, client: httpx.AsyncClient
) -> None:
    other_sale = await opened(client, **SALE)
    other = await admitted(client, parts, inside.sale)
    forged = inside.token[:-6] + "AAAAAA"
    for answer, status, reason in [
        (await inside.auth(fairdrop_admission=""), 401, "admission_required"),
        (await inside.auth(fairdrop_admission=forged), 403, "admission_forged"),
        (await inside.auth(other_sale), 403, "admission_other_sale"),
        (
            await inside.auth(cookie=f"fairdrop_visitor={other.visitor_token}"),
            403,
            "admission_other_buyer",
        ),
    ]:
        problem(answer, status, reason)
        assert answer.headers["fairdrop-reason"] == reason


async def test_a_token_in_the_address_counts_for_nothing(inside: Inside) -> None:
    inside.client.cookies.clear()
    answer = await inside.client.get(
        f"/v1/sales/{inside.sale['id']}/auth",
        params={"token": inside.token, "fairdrop-admission": inside.token},
    )
    problem(answer, 401, "admission_required")


async def test_a_token_of_an_earlier_epoch_is_over(inside: Inside, parts: Parts) -> None:
    """Also when it is not listed as revoked: the list names the epoch that counts (case 3)."""
    claims = parts.admissions.read(inside.token)
    assert claims is not None
    older = parts.admissions.issue(
        sale=claims.aud,
        buyer=claims.sub,
        admission=claims.jti,
        issued_s=claims.iat,
        deadline_ms=claims.exp * 1_000,
        epoch=claims.epoch - 1,
    )
    problem(await inside.auth(fairdrop_admission=older), 403, "admission_revoked")


async def listed(client: httpx.AsyncClient, sale: Any) -> Any:
    answer = await client.get(f"/v1/sales/{sale['id']}/revocations")
    assert answer.status_code == 200
    assert answer.headers["cache-control"].startswith("public, max-age=1")
    return answer.json()


async def until_revoked(client: httpx.AsyncClient, sale: Any, admission: str) -> None:
    async with asyncio.timeout(10):
        while admission[:REVOKED_CHARS] not in (await listed(client, sale))["revoked"]:
            await asyncio.sleep(0.02)


async def test_a_completed_order_frees_the_place_and_kills_the_token_at_once(
    inside: Inside, parts: Parts, client: httpx.AsyncClient
) -> None:
    """Not at its expiry (case 5)."""
    answer = await inside.report(reference="order-1")
    document = answer.json()
    assert (answer.status_code, document["place_freed"]) == (200, True)
    problem(await inside.auth(), 403, "admission_revoked")
    figures = (await client.get(f"/admin/v1/sales/{inside.sale['id']}/figures")).json()
    assert figures["inside"] == 0
    await until_revoked(client, inside.sale, document["admission"])
    assert (await listed(client, inside.sale))["epoch"] == 1


async def test_the_list_of_revoked_tokens_is_cached_by_its_tag(
    inside: Inside, client: httpx.AsyncClient
) -> None:
    address = f"/v1/sales/{inside.sale['id']}/revocations"
    tag = (await client.get(address)).headers["etag"]
    answer = await client.get(address, headers={"if-none-match": tag})
    assert (answer.status_code, answer.content) == (304, b"")


async def test_a_repeated_report_changes_nothing(inside: Inside) -> None:
    first = (await inside.report(reference="order-1")).json()
    for _ in range(3):
        assert (await inside.report(reference="order-1")).json() == first


async def test_of_two_orders_at_once_one_has_the_admission(inside: Inside) -> None:
    """The other one is told whose it is, and can be rolled back (W13, case 10)."""
    answers = await asyncio.gather(
        *(inside.report(reference=f"order-{n}") for n in range(5)), return_exceptions=False
    )
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [200, 409, 409, 409, 409]
    (winner,) = [a.json()["reference"] for a in answers if a.status_code == 200]
    for answer in answers:
        if answer.status_code == 409:
            assert problem(answer, 409, "admission_used")["reference"] == winner


async def test_a_failed_checkout_frees_the_place_too_and_late_money_completes_it(
    inside: Inside,
) -> None:
    assert (await inside.report("failed")).json()["place_freed"] is True
    problem(await inside.auth(), 403, "admission_revoked")
    assert (await inside.report(reference="order-1")).json()["outcome"] == "completed"
    problem(await inside.report("failed"), 409, "admission_used")


async def test_an_admission_is_reported_by_its_id_where_a_proxy_keeps_the_token(
    inside: Inside,
) -> None:
    headers = (await inside.auth()).headers
    answer = await inside.client.post(
        f"/v1/sales/{inside.sale['id']}/completions",
        json={
            "outcome": "completed",
            "buyer": headers["fairdrop-buyer"],
            "admission": headers["fairdrop-admission-id"],
        },
    )
    assert answer.json()["place_freed"] is True
    problem(await inside.auth(), 403, "admission_revoked")


async def test_only_a_key_of_the_shop_reports(inside: Inside, parts: Parts) -> None:
    async with client_of(parts, key=None) as stranger:
        for headers in ({}, {"authorization": "Bearer wrong-key-of-somebody"}, inside.as_visitor):
            answer = await stranger.post(
                f"/v1/sales/{inside.sale['id']}/completions",
                json={"outcome": "completed", "token": inside.token},
                headers=headers,
            )
            problem(answer, 401, "api_key_required")
    assert (await inside.auth()).status_code == 204


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"outcome": "completed"}, 422, "invalid_request"),
        ({"outcome": "completed", "buyer": "b"}, 422, "invalid_request"),
        ({"outcome": "sold", "token": "t"}, 422, "invalid_request"),
        ({"outcome": "completed", "token": "t", "x": 1}, 422, "invalid_request"),
        ({"outcome": "completed", "token": "a.b.c"}, 403, "admission_forged"),
    ],
)
async def test_a_report_that_says_nothing_is_refused(
    inside: Inside, body: Any, status: int, code: str
) -> None:
    answer = await inside.client.post(f"/v1/sales/{inside.sale['id']}/completions", json=body)
    problem(answer, status, code)
    assert (await inside.auth()).status_code == 204


async def test_a_store_that_is_away_does_not_lose_the_report(
    inside: Inside, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row stands, and the worker's step frees the place as soon as the store is back (W13)."""
    with monkeypatch.context() as outage:
        outage.setattr(parts.waiting_room._leave_many, "_store", _Away())
        answer = await inside.report(reference="order-1")
        assert (answer.status_code, answer.json()["place_freed"]) == (200, False)
    assert (await inside.auth()).status_code == 204
    async with parts.database.connection() as connection:
        await connection.execute(
            "UPDATE admission_reports SET reported_at = now() - interval '2 seconds'"
        )
    assert await parts.completions.tell_untold() >= 1
    problem(await inside.auth(), 403, "admission_revoked")
    assert await parts.completions.tell_untold() == 0
    assert (await inside.report(reference="order-1")).json()["place_freed"] is True


class _Away:
    async def run(self, *_: Any, **__: Any) -> Any:
        raise StoreUnavailable("away")


async def test_a_shop_key_reports_but_does_not_administrate(
    inside: Inside, services: Any, database_url: str
) -> None:
    from pydantic import SecretStr

    from fairdrop.app import open_parts
    from tests.integration.control_plane.own_parts import settings_for

    keys = SecretStr("first-key-of-the-shop, second-key-of-the-shop")
    async with (
        open_parts(settings_for(services, database_url, shop_keys=keys)) as parts,
        client_of(parts, key="second-key-of-the-shop") as shop,
    ):
        problem(await shop.get("/admin/v1/sales"), 401, "api_key_required")
        answer = await shop.post(
            f"/v1/sales/{inside.sale['id']}/completions",
            json={"outcome": "completed", "token": inside.token},
        )
        assert answer.status_code == 200, answer.text


async def test_the_database_keeps_one_outcome_for_each_admission(
    inside: Inside, parts: Parts
) -> None:
    await inside.report(reference="order-1")
    async with parts.database.connection() as connection:
        with pytest.raises(asyncpg.UniqueViolationError):
            await connection.execute(
                "INSERT INTO admission_reports (sale_id, admission, buyer, epoch, outcome)"
                " SELECT sale_id, admission, buyer, epoch, 'failed' FROM admission_reports LIMIT 1"
            )
