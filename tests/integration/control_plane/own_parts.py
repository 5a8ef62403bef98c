"""The parts of one process, and the web application in front of them.

Tests share a database and a store with those of their process; each has sales of its own.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import httpx
import pytest
from pydantic import SecretStr

from fairdrop.app import Parts, open_parts
from fairdrop.embedded import BackgroundServices
from fairdrop.ids import new_id
from fairdrop.schema.migrate import migrate
from fairdrop.settings import Settings
from fairdrop.waiting_room import new_signing_key
from fairdrop.web.meter import Meter
from fairdrop.web.server import build
from tests.integration.checkout.shop import new_database

ADMIN_KEY = "admin-key-of-the-tests"
SIGNING_KEY = new_signing_key()

Json: TypeAlias = Any
"""What json.loads gives."""


_databases: dict[str, str] = {}


@pytest.fixture
async def database_url(services: BackgroundServices) -> str:
    """The migrated database that this process's tests of the control plane share."""
    if services.database_url not in _databases:
        url = await new_database(services.database_url, f"control_{new_id()}")
        await migrate(url)
        _databases[services.database_url] = url
    return _databases[services.database_url]


def settings_for(services: BackgroundServices, database_url: str, **more: Any) -> Settings:
    return Settings(
        **{
            "store_url": services.store_url,
            "database_url": database_url,
            "visitor_key": SecretStr("v" * 40),
            "signing_keys": SecretStr(SIGNING_KEY),
            "admin_key": SecretStr(ADMIN_KEY),
            "gateway_url": "http://127.0.0.1:1",
            "gateway_secret_key": SecretStr("sk_" + "x" * 20),
            "gateway_webhook_secret": SecretStr("whsec_" + "x" * 20),
            "store_timeout_ms": 30_000,
            **more,
        }
    )


@pytest.fixture
async def parts(services: BackgroundServices, database_url: str) -> AsyncIterator[Parts]:
    async with open_parts(settings_for(services, database_url)) as parts:
        yield parts


def client_of(parts: Parts, key: str | None = ADMIN_KEY) -> httpx.AsyncClient:
    app = Meter(build(parts), parts)
    headers = {"authorization": f"Bearer {key}"} if key else {}
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app, raise_app_exceptions=False),
        base_url="http://shop.test",
        headers=headers,
    )


@pytest.fixture
async def client(parts: Parts) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(parts) as client:
        yield client


def problem(answer: httpx.Response, status: int, code: str) -> Json:
    """The problem document of the answer, after checking that it is one, and this one."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    document = answer.json()
    assert (answer.status_code, document["code"]) == (status, code), document
    assert document["status"] == status
    assert document["type"].endswith(f"/{code}")
    assert document["title"]
    assert document["detail"]
    return document


def a_sale(**more: Json) -> dict[str, Json]:
    """The body that creates a sale which opens in an hour."""
    opens_at = datetime.now(UTC) + timedelta(hours=1)
    return {
        "slug": f"sale-{uuid.uuid4().hex[:12]}",
        "name": "The Drop",
        "opens_at": opens_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "currency": "EUR",
        "variants": [
            {"product": "Ticket", "name": "Standing", "price_minor": 4_500, "quantity": 10},
            {"product": "Ticket", "name": "Seat", "price_minor": 8_000, "quantity": 5},
        ],
        **more,
    }


async def created(client: httpx.AsyncClient, **more: Json) -> Json:
    """A new sale, as the API shows it."""
    answer = await client.post("/admin/v1/sales", json=a_sale(**more))
    assert answer.status_code == 201, answer.text
    return answer.json()


async def opened(client: httpx.AsyncClient, **more: Json) -> Json:
    """A new sale that is open."""
    sale = await created(client, **more)
    answer = await client.post(f"/admin/v1/sales/{sale['id']}/open")
    assert answer.status_code == 200, answer.text
    return answer.json()
