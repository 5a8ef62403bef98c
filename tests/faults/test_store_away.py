"""The store is away: buyers are told within a second, over HTTP, and it recovers by itself (W14, case 38)."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from fairdrop.app import Parts, open_parts
from fairdrop.embedded import BackgroundServices, Durability, EmbeddedServices
from tests.integration.control_plane.own_parts import (
    client_of,
    database_url,
    opened,
    problem,
    settings_for,
)

__all__ = ["database_url"]


@pytest.fixture
async def parts(
    services: BackgroundServices, database_url: str, tmp_path: Path
) -> AsyncIterator[tuple[Parts, int]]:
    """Parts with the product's own patience, on a store of this test alone, and its process id."""
    async with EmbeddedServices(
        tmp_path / "data",
        durability=Durability.PROCESS_DEATH,
        external_database_url="postgresql://not-needed",
    ) as own:
        settings = settings_for(
            services, database_url, store_url=own.store_url, store_timeout_ms=400
        )
        async with open_parts(settings) as made:
            info = await made.store.redis.info("server")
            yield made, int(info["process_id"])


async def timed(call: object) -> tuple[httpx.Response, float]:
    began = time.monotonic()
    answer: httpx.Response = await call  # type: ignore[misc]
    return answer, time.monotonic() - began


async def test_a_store_that_hangs_is_told_within_a_second_at_every_step(
    parts: tuple[Parts, int],
) -> None:
    made, pid = parts
    async with client_of(made) as operator, client_of(made, key=None) as anybody:
        sale = await opened(operator)
        path = f"/v1/sales/{sale['id']}"
        joined = (await anybody.post(f"{path}/join")).json()
        bearer = {"authorization": f"Bearer {joined['visitor_token']}"}
        anybody.cookies.clear()
        await made.waiting_room.tick((await made.catalog.sale(sale["id"])).ref)  # type: ignore[union-attr]
        claimed = (await anybody.post(f"{path}/claim", headers=bearer)).json()
        admitted = {**bearer, "fairdrop-admission": claimed["token"], "idempotency-key": "k"}
        line = {"variant": sale["variants"][0]["id"], "quantity": 1}
        held = await anybody.post(f"{path}/reservations", headers=admitted, json={"lines": [line]})
        reservation = f"{path}/reservations/{held.json()['id']}"
        shown = {"receipt": joined["receipt"]}
        os.kill(pid, signal.SIGSTOP)
        try:
            answers = await asyncio.gather(
                timed(anybody.post(f"{path}/join", headers=bearer)),
                timed(anybody.get(f"{path}/me", headers=bearer)),
                timed(anybody.post(f"{path}/claim", headers=bearer)),
                timed(anybody.delete(f"{path}/me", headers=bearer)),
                timed(
                    anybody.post(f"{path}/reservations", headers=admitted, json={"lines": [line]})
                ),
                timed(anybody.patch(reservation, headers=admitted, json={"lines": [line]})),
                timed(anybody.delete(reservation, headers=bearer)),
                timed(
                    anybody.post(
                        f"{path}/orders",
                        headers=bearer,
                        json={"reservation": held.json()["id"]},
                    )
                ),
            )
        finally:
            os.kill(pid, signal.SIGCONT)
        for answer, seconds in answers:
            problem(answer, 503, "store_unavailable")
            assert int(answer.headers["retry-after"]) >= 1
            assert seconds < 1
        async with asyncio.timeout(20):
            while (await anybody.get(f"{path}/me", headers=bearer)).status_code != 200:
                await asyncio.sleep(0.05)
        back = await anybody.post(f"{path}/restore", headers=bearer, json=shown)
        assert back.status_code == 200
