"""Who gets in, and how everything that goes wrong is told (S1, S3)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr

from fairdrop.app import Parts, open_parts
from fairdrop.embedded import BackgroundServices, Durability, start_services
from fairdrop.schema.migrate import migrate
from fairdrop.web.control_plane.gate import BODY_LIMIT
from tests.integration.control_plane.own_parts import (
    ADMIN_KEY,
    a_sale,
    client_of,
    created,
    problem,
    settings_for,
)

SALES = "/admin/v1/sales"


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        "Bearer wrong",
        f"Bearer {ADMIN_KEY}x",
        f"Bearer {ADMIN_KEY[:-1]}",
        f"Basic {ADMIN_KEY}",
        ADMIN_KEY,
    ],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", SALES),
        ("POST", SALES),
        ("POST", f"{SALES}/x/open"),
        ("GET", "/admin/v1/no/such/address"),
        ("DELETE", SALES),
    ],
)
async def test_without_the_key_nobody_gets_in_and_nothing_is_told_of_what_is_inside(
    parts: Parts, authorization: str | None, method: str, path: str
) -> None:
    headers = {} if authorization is None else {"authorization": authorization}
    async with client_of(parts, key=None) as client:
        answer = await client.request(method, path, headers=headers, content=b"{not json")
    problem(answer, 401, "api_key_required")
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_without_a_key_in_the_settings_the_control_plane_is_closed(
    services: BackgroundServices, database_url: str
) -> None:
    for empty in (None, SecretStr("")):
        async with open_parts(settings_for(services, database_url, admin_key=empty)) as parts:
            for key in (None, "", ADMIN_KEY):
                async with client_of(parts, key=key) as client:
                    problem(await client.get(SALES), 503, "control_plane_disabled")


async def test_no_cache_keeps_what_operators_see(client: httpx.AsyncClient) -> None:
    for answer in (await client.get(SALES), await client.get(f"{SALES}/none")):
        assert answer.headers["cache-control"] == "no-store"


async def test_an_address_that_is_not_there_is_a_problem_document(
    client: httpx.AsyncClient,
) -> None:
    problem(await client.get("/admin/v1/none"), 404, "not_found")
    problem(await client.get(f"{SALES}/"), 404, "not_found")


@pytest.mark.parametrize("name", ["none", "x" * 64, "No-Such", "%00", "a%2Fb", "ü", "None"])
async def test_a_sale_that_is_not_there_is_a_problem_document(
    client: httpx.AsyncClient, name: str
) -> None:
    for path in ("", "/figures", "/orders"):
        answer = await client.get(f"{SALES}/{name}{path}")
        assert answer.status_code == 404
        assert answer.json()["code"] in ("no_such_sale", "not_found")
    problem(await client.get(f"{SALES}/{'x' * 65}"), 422, "invalid_request")


async def test_a_method_that_an_address_does_not_take_is_told_which_ones_it_takes(
    client: httpx.AsyncClient,
) -> None:
    answer = await client.delete(SALES)
    problem(answer, 405, "method_not_allowed")
    assert {"GET", "POST"} & set(answer.headers["allow"].split(", "))


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"nonsense", b'{"a":1,}'])
async def test_a_body_that_is_no_json_is_told_so(client: httpx.AsyncClient, body: bytes) -> None:
    answer = await client.post(SALES, content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) in (
        (400, "malformed_json"),
        (422, "invalid_request"),  # an empty body is no body
    )
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_body_beyond_the_limit_is_refused_while_it_comes(
    client: httpx.AsyncClient,
) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 65_536
            yield b" " * 65_536

    answer = await client.post(SALES, content=endless())
    problem(answer, 413, "body_too_large")
    assert sent <= 2 * BODY_LIMIT


async def test_every_mistake_of_a_body_is_named(client: httpx.AsyncClient) -> None:
    body = {**a_sale(), "cap": 0, "currency": "?", "extra": 1}
    document = problem(await client.post(SALES, json=body), 422, "invalid_request")
    assert {error["field"] for error in document["errors"]} == {
        "body.cap",
        "body.currency",
        "body.extra",
    }


async def test_what_was_sent_is_not_sent_back(client: httpx.AsyncClient) -> None:
    answer = await client.post(SALES, json=a_sale(currency="<script>"))
    assert "<script>" not in answer.text


async def test_an_unexpected_error_is_a_problem_document_without_its_details(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_limit: int) -> None:
        raise RuntimeError("with a secret in it")

    monkeypatch.setattr(type(parts.catalog), "sales", lambda _self, limit: broken(limit))
    async with client_of(parts) as client:
        answer = await client.get(SALES)
    problem(answer, 500, "internal_error")
    assert "secret" not in answer.text


@pytest.fixture
def own_services(tmp_path: Path) -> object:
    with start_services(tmp_path / "data", durability=Durability.PROCESS_DEATH) as services:
        yield services


async def test_parts_that_hang_are_told_within_seconds_and_what_was_created_is_loaded_later(
    own_services: BackgroundServices,
) -> None:
    await migrate(own_services.database_url)
    settings = settings_for(own_services, own_services.database_url, store_timeout_ms=450)
    async with open_parts(settings) as parts, client_of(parts) as client:
        sale = await created(client)
        pid = own_services.pid_of("valkey")
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            answer = await client.get(f"{SALES}/{sale['id']}/figures")
            problem(answer, 503, "store_unavailable")
            assert answer.headers["retry-after"]
            ready = await client.get("/readyz")
            assert (ready.status_code, ready.json()["checks"]["store"]) == (503, "does not answer")
            made = await client.post(SALES, json=a_sale())
            assert (made.status_code, made.json()["loaded"]) == (201, False)
            assert (await client.get("/livez")).status_code == 200
            metrics = (await client.get("/metrics")).text
            assert 'fairdrop_up{part="store"} 0.0' in metrics
        finally:
            os.kill(pid, signal.SIGCONT)
        known = await parts.catalog.sale(made.json()["id"])
        assert known is not None
        await parts.loader.keep_loaded(known)
        assert (await client.get(f"{SALES}/{made.json()['id']}")).json()["loaded"] is True


async def test_many_requests_at_once_are_all_answered(client: httpx.AsyncClient) -> None:
    sale = await created(client)
    paths = [f"{SALES}/{sale['id']}/figures", f"{SALES}/{sale['id']}", SALES] * 20
    answers = await asyncio.gather(*map(client.get, paths))
    assert {answer.status_code for answer in answers} == {200}
