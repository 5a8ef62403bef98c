"""A first join that is repeated because its answer got lost takes one place (W1, H3; case 39)."""

from __future__ import annotations

import asyncio
import secrets

import httpx
import pytest

from fairdrop.app import Parts
from tests.integration.control_plane.own_parts import (
    client,
    client_of,
    database_url,
    opened,
    parts,
    problem,
)

__all__ = ["client", "database_url", "parts"]


async def test_the_same_random_key_is_the_same_visitor_at_any_server(
    parts: Parts, client: httpx.AsyncClient
) -> None:
    sale = await opened(client)
    path = f"/v1/sales/{sale['id']}/join"
    key = {"idempotency-key": secrets.token_hex(16)}
    async with client_of(parts, key=None) as one, client_of(parts, key=None) as two:
        answers = await asyncio.gather(
            *(server.post(path, headers=key) for server in (one, two) for _ in range(5))
        )
        documents = [answer.json() for answer in answers]
        assert {one["position"] for one in documents} == {1}
        assert len({one["visitor_token"] for one in documents}) == 1
        one.cookies.clear()
        other = await one.post(path, headers={"idempotency-key": secrets.token_hex(16)})
        assert other.json()["position"] == 2
        # Whoever is known already is not made another by a key.
        bearer = {"authorization": f"Bearer {documents[0]['visitor_token']}"}
        again = await two.post(path, headers={**bearer, "idempotency-key": secrets.token_hex(16)})
        assert again.json()["position"] == 1
    figures = (await client.get(f"/admin/v1/sales/{sale['id']}/figures")).json()
    assert figures["joined"] == 2


@pytest.mark.parametrize("weak", ["1", "", "order-2026-11-30", "a" * 65, "ä" * 30])
async def test_a_key_that_somebody_could_guess_is_refused(
    parts: Parts, client: httpx.AsyncClient, weak: str
) -> None:
    sale = await opened(client)
    async with client_of(parts, key=None) as anybody:
        answer = await anybody.post(
            f"/v1/sales/{sale['id']}/join", headers={b"idempotency-key": weak.encode()}
        )
        problem(answer, 400, "idempotency_key_weak")
    figures = (await client.get(f"/admin/v1/sales/{sale['id']}/figures")).json()
    assert figures["joined"] == 0


@pytest.mark.parametrize("made_up", ["fdv1.me.AAAAAAAAAAAAAAAAAAAAAA", "me", "fdv1..", "x" * 500])
async def test_whoever_makes_up_visitors_takes_no_place_with_them(
    parts: Parts, client: httpx.AsyncClient, made_up: str
) -> None:
    """Case 39: as a token they are refused; as a cookie they are nobody, who gets one identity."""
    sale = await opened(client)
    path = f"/v1/sales/{sale['id']}"
    async with client_of(parts, key=None) as anybody:
        bearer = {"authorization": f"Bearer {made_up}"}
        problem(await anybody.post(f"{path}/join", headers=bearer), 401, "visitor_unknown")
        problem(await anybody.get(f"{path}/me", headers=bearer), 401, "visitor_unknown")
        shown = {"receipt": "fdr1.x.y"}
        problem(
            await anybody.post(f"{path}/restore", headers=bearer, json=shown),
            401,
            "visitor_unknown",
        )
        cookie = {"cookie": f"fairdrop_visitor={made_up}"}
        first = (await anybody.post(f"{path}/join", headers=cookie)).json()
        anybody.cookies.clear()
        assert first["visitor"] not in made_up
        own = {"authorization": f"Bearer {first['visitor_token']}"}
        for _ in range(3):
            assert (await anybody.post(f"{path}/join", headers=own)).json()["position"] == 1
    figures = (await client.get(f"/admin/v1/sales/{sale['id']}/figures")).json()
    assert figures["joined"] == 1
