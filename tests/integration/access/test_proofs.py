"""Proof of work and CAPTCHA before a place is given (W18), each solved and each cheated."""

from __future__ import annotations

import asyncio
import base64
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest
from altcha.v1 import solve_challenge
from pydantic import SecretStr

from fairdrop.access import CAPTCHAS, CaptchaResult, Proof, Proofs
from fairdrop.app import Parts, open_parts
from fairdrop.drivers.store import Store
from fairdrop.embedded import BackgroundServices
from fairdrop.ids import SaleRef, new_id
from tests.integration.access.test_limits import random_address
from tests.integration.control_plane.own_parts import (
    ADMIN_KEY,
    client,
    client_of,
    database_url,
    opened,
    parts,
    problem,
    settings_for,
)

__all__ = ["client", "database_url", "parts"]

KEY = b"k" * 32
NOW_S = 1_800_000_000.0


def solved(challenge: Any, **changes: Any) -> str:
    solution = solve_challenge(
        challenge["challenge"], challenge["salt"], "SHA-256", challenge["maxnumber"], 0
    )
    assert solution is not None
    payload = {
        "algorithm": challenge["algorithm"],
        "challenge": challenge["challenge"],
        "number": solution.number,
        "salt": challenge["salt"],
        "signature": challenge["signature"],
        **changes,
    }
    return base64.b64encode(json.dumps(payload).encode()).decode()


@pytest.fixture
def proofs(store: Store) -> Proofs:
    return Proofs(store, KEY, max_number=500, ttl_s=60)


@pytest.fixture
def ref() -> SaleRef:
    return SaleRef(new_id(), 1)


async def test_a_solution_is_good_once(proofs: Proofs, ref: SaleRef) -> None:
    solution = solved(proofs.challenge(ref, "join", NOW_S))
    answers = await asyncio.gather(*(proofs.check(ref, "join", solution, NOW_S) for _ in range(20)))
    assert sorted(answers) == [Proof.GOOD] + [Proof.USED] * 19


async def test_a_solution_is_for_one_sale_one_step_and_a_while(
    proofs: Proofs, ref: SaleRef
) -> None:
    solution = solved(proofs.challenge(ref, "join", NOW_S))
    other = SaleRef(new_id(), 1)
    assert await proofs.check(other, "join", solution, NOW_S) is Proof.ELSEWHERE
    assert await proofs.check(ref, "claim", solution, NOW_S) is Proof.ELSEWHERE
    assert await proofs.check(ref, "join", solution, NOW_S + 60) is Proof.EXPIRED
    # None of them has used it up.
    assert await proofs.check(ref, "join", solution, NOW_S + 59) is Proof.GOOD


async def test_nothing_but_the_work_makes_a_solution(
    proofs: Proofs, ref: SaleRef, store: Store
) -> None:
    challenge = proofs.challenge(ref, "join", NOW_S)
    later = challenge["salt"].replace("expires=18", "expires=19")
    assert later != challenge["salt"]
    foreign = Proofs(store, b"x" * 32, max_number=500, ttl_s=60).challenge(ref, "join", NOW_S)
    good = json.loads(base64.b64decode(solved(challenge)))
    for wrong in (
        "nonsense",
        "é",
        "A" * 100_000,
        base64.b64encode(b"[]").decode(),
        base64.b64encode(b"[" * 1_000).decode(),
        solved(challenge, number=-1),
        solved(challenge, number="5"),
        solved(challenge, number=good["number"] + 1),
        solved(challenge, salt=later),
        solved(challenge, salt=challenge["salt"] + "expires=2000000000&"),
        solved(challenge, signature="0" * 64),
        solved(challenge, algorithm="SHA-1"),
        solved(challenge, salt=5),
        solved(foreign),
    ):
        assert await proofs.check(ref, "join", wrong, NOW_S) is Proof.WRONG, wrong[:80]
    assert await proofs.check(ref, "join", "", NOW_S) is Proof.MISSING
    assert await proofs.check(ref, "join", solved(challenge), NOW_S) is Proof.GOOD


# ---------------------------------------------------------------- over HTTP


@asynccontextmanager
async def site(
    services: BackgroundServices, database_url: str, **settings: Any
) -> AsyncIterator[tuple[Parts, httpx.AsyncClient]]:
    async with (
        open_parts(settings_for(services, database_url, **settings)) as parts,
        client_of(parts, key=None) as client,
    ):
        yield parts, client


async def join(
    client: httpx.AsyncClient, sale: Any, address: str = "", **headers: str
) -> httpx.Response:
    client.cookies.clear()
    sent = {"x-forwarded-for": address or random_address(), **headers}
    named = {name.replace("_", "-"): value for name, value in sent.items()}
    return await client.post(f"/v1/sales/{sale['id']}/join", headers=named)


async def test_a_place_costs_a_proof_and_keeping_it_costs_none(
    services: BackgroundServices, database_url: str, client: httpx.AsyncClient
) -> None:
    sale = await opened(client)
    async with site(services, database_url, proof_of_work="always", proof_max_number=1_000) as (
        _,
        buyer,
    ):
        document = problem(await join(buyer, sale), 403, "proof_required")
        assert document["reason"] == "missing"
        assert set(document["challenge"]) == {
            "algorithm",
            "challenge",
            "maxnumber",
            "salt",
            "signature",
        }
        solution = solved(document["challenge"])
        joined = await join(buyer, sale, fairdrop_proof=solution)
        assert joined.status_code == 200, joined.text
        again = await join(buyer, sale, fairdrop_proof=solution)
        assert problem(again, 403, "proof_required")["reason"] == "used"
        visitor = f"Bearer {joined.json()['visitor_token']}"
        assert (await join(buyer, sale, authorization=visitor)).status_code == 200
        assert (await join(buyer, sale, fairdrop_shop_key=ADMIN_KEY)).status_code == 200


async def test_going_in_costs_another_proof_where_it_is_set_so(
    services: BackgroundServices, database_url: str, client: httpx.AsyncClient
) -> None:
    sale = await opened(client, rate_per_s=1_000)
    async with site(
        services,
        database_url,
        proof_of_work="always",
        proof_max_number=1_000,
        proof_at_claim=True,
    ) as (parts, buyer):
        challenge = (await join(buyer, sale)).json()["challenge"]
        joined = (await join(buyer, sale, fairdrop_proof=solved(challenge))).json()
        found = await parts.catalog.sale(sale["id"])
        assert found is not None
        await parts.waiting_room.tick(found.ref)
        visitor = {"authorization": f"Bearer {joined['visitor_token']}"}
        claim = f"/v1/sales/{sale['id']}/claim"
        document = problem(await buyer.post(claim, headers=visitor), 403, "proof_required")
        visitor["fairdrop-proof"] = solved(document["challenge"])
        assert (await buyer.post(claim, headers=visitor)).status_code == 200
        # Asking for the token again is no second entry.
        assert (await buyer.post(claim, headers=visitor)).status_code == 200


async def test_adaptive_proofs_are_asked_of_a_busy_address_and_in_a_rush(
    services: BackgroundServices, database_url: str, client: httpx.AsyncClient
) -> None:
    sale = await opened(client)
    async with site(services, database_url, proof_of_work="adaptive") as (_, buyer):
        address = random_address()
        statuses = [(await join(buyer, sale, address)).status_code for _ in range(12)]
        assert statuses == [200] * 10 + [403] * 2
        assert (await join(buyer, sale)).status_code == 200
    async with site(services, database_url, proof_of_work="adaptive", busy_joins_per_s=0.001) as (
        _,
        buyer,
    ):
        statuses = [(await join(buyer, sale)).status_code for _ in range(3)]
        assert statuses == [200, 403, 403]


# ---------------------------------------------------------------- CAPTCHA


class _Service(BaseHTTPRequestHandler):
    """Speaks as Turnstile and hCaptcha do: answers in the shapes that their manuals show."""

    asked: list[dict[str, str]] = []  # noqa: RUF012 - of this test's server

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        form = {k: v[0] for k, v in parse_qs(self.rfile.read(length).decode()).items()}
        self.asked.append(form)
        response = form.get("response", "")
        answer: Any = {"success": False, "error-codes": ["invalid-input-response"]}
        status = 200
        if form.get("secret") != "the-secret":
            answer = {"success": False, "error-codes": ["invalid-input-secret"]}
        elif response == "person":
            answer = {
                "success": True,
                "challenge_ts": "2026-11-30T07:00:00.000Z",
                "hostname": "shop.test",
                "error-codes": [],
                "action": "join",
                "cdata": "",
            }
        elif response == "again":
            answer = {"success": False, "error-codes": ["timeout-or-duplicate"]}
        elif response == "hcaptcha-again":
            answer = {"success": False, "error-codes": ["already-seen-response"]}
        elif response == "broken":
            status, answer = 500, {}
        elif response == "strange":
            answer = ["success"]
        elif response == "slow":
            threading.Event().wait(0.5)
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Silent."""


@pytest.fixture
def service() -> Iterator[str]:
    _Service.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Service)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/siteverify"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("name", sorted(CAPTCHAS))
async def test_each_service_is_asked_as_its_manual_says(name: str, service: str) -> None:
    verifier = CAPTCHAS[name]("the-site", "the-secret", url=service, timeout_s=0.2)
    wrong_secret = CAPTCHAS[name]("the-site", "another", url=service)
    away = CAPTCHAS[name]("the-site", "the-secret", url="http://127.0.0.1:1/siteverify")
    try:
        for response, result in (
            ("person", CaptchaResult.PASSED),
            ("robot", CaptchaResult.FAILED),
            ("again", CaptchaResult.FAILED),
            ("hcaptcha-again", CaptchaResult.FAILED),
            ("x" * 9_000, CaptchaResult.FAILED),
            ("", CaptchaResult.MISSING),
            ("broken", CaptchaResult.UNAVAILABLE),
            ("strange", CaptchaResult.UNAVAILABLE),
            ("slow", CaptchaResult.UNAVAILABLE),
        ):
            assert await verifier.verify(response, "203.0.113.7") is result, response
        assert await wrong_secret.verify("person", "") is CaptchaResult.UNAVAILABLE
        assert await away.verify("person", "") is CaptchaResult.UNAVAILABLE
    finally:
        for each in (verifier, wrong_secret, away):
            await each.close()
    first = _Service.asked[0]
    expected = {"secret": "the-secret", "response": "person", "remoteip": "203.0.113.7"}
    assert first == expected | ({"sitekey": "the-site"} if name == "hcaptcha" else {})


@pytest.mark.parametrize(("outage", "status"), [("allow", 200), ("refuse", 503)])
async def test_a_place_costs_a_captcha_and_an_outage_is_the_operators_choice(
    services: BackgroundServices,
    database_url: str,
    client: httpx.AsyncClient,
    service: str,
    outage: str,
    status: int,
) -> None:
    sale = await opened(client)
    async with site(
        services,
        database_url,
        captcha="always",
        captcha_site_key="the-site",
        captcha_secret=SecretStr("the-secret"),
        captcha_url=service,
        captcha_outage=outage,
    ) as (_, buyer):
        document = problem(await join(buyer, sale), 403, "captcha_required")
        assert (document["provider"], document["site_key"]) == ("turnstile", "the-site")
        assert document["reason"] == "missing"
        failed = await join(buyer, sale, fairdrop_captcha="robot")
        assert problem(failed, 403, "captcha_required")["reason"] == "failed"
        assert (await join(buyer, sale, fairdrop_captcha="person")).status_code == 200
        broken = await join(buyer, sale, fairdrop_captcha="broken")
        assert broken.status_code == status
        if status == 503:
            problem(broken, 503, "captcha_unavailable")
