"""The adaptive pace on real parts: measured by web workers, decided once, seen by everybody (W10)."""

from __future__ import annotations

import asyncio

import httpx

from fairdrop.app import Parts
from fairdrop.waiting_room.pacing import next_step
from tests.driven_sale import DrivenSale
from tests.integration.control_plane.own_parts import (
    client,
    client_of,
    database_url,
    opened,
    parts,
)

__all__ = ["client", "database_url", "parts"]


async def step(sale: DrivenSale, requests: int, slow: int = 0, failed: int = 0) -> str:
    """One interval with these measures; the reason of the step."""
    await sale.scripts.observe(sale.ref, [requests, slow, failed])
    sale.pass_ms(5_000)
    seen = await sale.scripts.measures(sale.ref, [5_000], now_ms=sale.now_ms)
    assert (seen.requests, seen.slow, seen.failed) == (requests, slow, failed)
    taken = next_step(seen, lowest_milli=2_000, highest_milli=52_000, cap=1_000)
    batch = [seen.step, 5_000, taken.rate_milli, taken.reason, requests, slow, failed]
    adapted = await sale.scripts.adapt(sale.ref, batch, now_ms=sale.now_ms)
    assert adapted.status == "ADAPTED"
    await sale.tick()
    return (await sale.figures()).pace.step_reason


async def test_the_pace_follows_the_checkout_within_the_bounds(sale: DrivenSale) -> None:
    await sale.load(
        rate_milli=10_000, adaptive=1, cap=1_000, rate_min_milli=2_000, rate_max_milli=52_000
    )
    await sale.join(*(f"v{n}" for n in range(2_000)))

    async def pace() -> int:
        return (await sale.figures()).pace.pace_milli

    assert await step(sale, 100) == "up:healthy"
    assert await pace() == 11_000
    assert await step(sale, 100, failed=50) == "down:failing"
    assert await pace() == 5_500
    assert await step(sale, 100, slow=50) == "down:slow"
    assert await pace() == 4_400
    for _ in range(5):
        await step(sale, 100, failed=100)
    assert await pace() == 2_000
    # The operator moves a bound: it counts at once, before any step.
    await sale.load(rate_min_milli=7_000)
    await sale.tick()
    assert await pace() == 7_000
    # And another change of the sale does not set the pace back.
    await sale.load(cap=900)
    await sale.tick()
    assert await pace() == 7_000
    await sale.load(adaptive=0)
    await sale.tick()
    assert await pace() == 10_000
    figures = await sale.figures()
    assert (figures.pace.steps_up, figures.pace.steps_down) == (1, 7)


async def test_what_comes_between_measuring_and_deciding_is_not_lost(sale: DrivenSale) -> None:
    await sale.load(rate_milli=10_000, adaptive=1, rate_min_milli=2_000, rate_max_milli=52_000)
    await sale.scripts.observe(sale.ref, [10, 1, 2])
    seen = await sale.scripts.measures(sale.ref, [5_000], now_ms=sale.now_ms)
    await sale.scripts.observe(sale.ref, [5, 1, 0])
    batch = [seen.step, 5_000, 9_000, "down:slow", seen.requests, seen.slow, seen.failed]
    await sale.scripts.adapt(sale.ref, batch, now_ms=sale.now_ms)
    sale.pass_ms(5_000)
    left = await sale.scripts.measures(sale.ref, [5_000], now_ms=sale.now_ms)
    assert (left.requests, left.slow, left.failed) == (5, 1, 0)


async def test_completed_orders_are_counted_between_steps(sale: DrivenSale) -> None:
    await sale.load(
        rate_milli=10_000, adaptive=1, cap=100, rate_min_milli=2_000, rate_max_milli=52_000
    )
    people = [f"v{n}" for n in range(10)]
    await sale.admit(*people)
    await step(sale, 10)
    for visitor in people[:4]:
        await sale.complete(visitor)
    sale.pass_ms(5_000)
    seen = await sale.scripts.measures(sale.ref, [5_000], now_ms=sale.now_ms)
    assert (seen.completed, seen.inside) == (4, 6)


async def test_answers_of_the_checkout_reach_the_figures_and_the_metrics(
    parts: Parts, client: httpx.AsyncClient
) -> None:
    """From a buyer's failing request to a lower pace, through two web workers' applications."""
    sale = await opened(client, adaptive=True, rate_per_s=40, rate_min_per_s=5, rate_max_per_s=105)
    found = await parts.catalog.sale(sale["id"])
    assert found is not None
    async with client_of(parts, key=None) as one, client_of(parts, key=None) as two:
        for anybody in (one, two):
            joined = (await anybody.post(f"/v1/sales/{sale['slug']}/join")).json()
            await parts.waiting_room.tick(found.ref)
            bearer = {"authorization": f"Bearer {joined['visitor_token']}"}
            claimed = await anybody.post(f"/v1/sales/{sale['slug']}/claim", headers=bearer)
            held = await anybody.post(
                f"/v1/sales/{sale['slug']}/reservations",
                headers={
                    **bearer,
                    "fairdrop-admission": claimed.json()["token"],
                    "idempotency-key": "k",
                },
                json={"lines": [{"variant": sale["variants"][0]["id"], "quantity": 1}]},
            )
            order = await anybody.post(
                f"/v1/sales/{sale['slug']}/orders",
                headers=bearer,
                json={"reservation": held.json()["id"]},
            )
            assert order.status_code == 201, order.text
            # Nothing answers at the gateway's address.
            for _ in range(2):
                paid = await anybody.post(f"/v1/orders/{order.json()['id']}/pay", headers=bearer)
                assert paid.status_code == 503
            anybody.cookies.clear()
    step = None
    async with asyncio.timeout(20):
        while step is None or step.reason.value != "down:failing":
            await asyncio.sleep(0.05)
            step = await parts.waiting_room.adapt(
                found.ref, 1, lowest_milli=5_000, highest_milli=105_000, cap=found.cap
            )
    await parts.waiting_room.tick(found.ref)
    figures = (await client.get(f"/admin/v1/sales/{sale['id']}/figures")).json()
    assert figures["pace_per_s"] < 40
    assert figures["pace_reason"] == "down:failing"
    assert figures["pace_steps"]["down"] == 1
    metrics = (await client.get("/metrics")).text
    assert f'fairdrop_sale_pace_steps_total{{sale="{sale["slug"]}",step="down"}} 1.0' in metrics
