"""Pause, resume, drain, rate and cap while a sale runs: at once, and in the audit (W17)."""

from __future__ import annotations

from typing import Any

import httpx

from fairdrop.app import Parts
from tests.integration.control_plane.own_parts import client, database_url, opened, parts, problem

__all__ = ["client", "database_url", "parts"]


async def test_every_change_counts_with_the_next_tick_and_is_audited(
    parts: Parts, client: httpx.AsyncClient
) -> None:
    sale = await opened(client, rate_per_s=1_000, cap=10, line_cap_factor=0, burst_ms=1_000)
    path = f"/admin/v1/sales/{sale['id']}"

    async def called() -> int:
        found = await parts.catalog.sale(sale["id"])
        assert found is not None
        return (await parts.waiting_room.tick(found.ref)).called

    async def change(**fields: Any) -> None:
        changed = await client.patch(path, json=fields)
        assert changed.status_code == 200, changed.text

    found = await parts.catalog.sale(sale["id"])
    assert found is not None
    for number in range(100):
        await parts.waiting_room.join(found.ref, f"v{number}")
    assert (await client.post(f"{path}/pause")).json()["mode"] == "paused"
    assert await called() == 0
    await client.post(f"{path}/resume")
    assert await called() == 10
    await change(cap=25)
    assert await called() == 15
    await change(cap=5)
    assert await called() == 0
    await change(cap=1_000, rate_per_s=3, burst_ms=0)
    assert await called() <= 1
    await change(rate_per_s=100_000, burst_ms=1_000)
    await client.post(f"{path}/drain")
    assert (await parts.waiting_room.join(found.ref, "late")).place.state == "CLOSED"
    problem(
        await client.patch(path, json={"rate_min_per_s": 9, "rate_max_per_s": 8}),
        422,
        "invalid_request",
    )
    async with parts.database.connection() as connection:
        rows = await connection.fetch(
            "SELECT action, detail FROM operator_audit WHERE sale_id = $1 ORDER BY id", sale["id"]
        )
    done = [(row["action"], row["detail"]) for row in rows]
    assert done[2:] == [
        ("pause", {}),
        ("resume", {}),
        ("change", {"cap": "25"}),
        ("change", {"cap": "5"}),
        ("change", {"cap": "1000", "rate_per_s": "3.0", "burst_ms": "0"}),
        ("change", {"rate_per_s": "100000.0", "burst_ms": "1000"}),
        ("drain", {}),
    ]
