"""Whether the process can serve, and what monitoring sees (S5)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest
import structlog.testing
from prometheus_client.parser import text_string_to_metric_families

from fairdrop.app import Parts, open_parts
from fairdrop.embedded import BackgroundServices
from fairdrop.ids import new_id
from fairdrop.schema.migrate import migrate
from tests.integration.checkout.shop import Shop, new_database
from tests.integration.control_plane.own_parts import client_of, created, opened, settings_for

NewShop = Callable[..., Awaitable[Shop]]
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def metrics(client: httpx.AsyncClient) -> Samples:
    answer = await client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    return samples(answer.text)


def value(found: Samples, name: str, **labels: str) -> float:
    return found.get((name, frozenset(labels.items())), 0.0)


async def test_a_process_with_all_its_parts_is_ready(services: BackgroundServices) -> None:
    url = await new_database(services.database_url, f"health_{new_id()}")
    await migrate(url)
    async with open_parts(settings_for(services, url)) as parts, client_of(parts) as client:
        sale = await created(client)
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.json()["ready"]) == (200, True)
        assert set(ready.json()["checks"].values()) == {"ok"}

        # A sale that the store lost would refuse its buyers.
        await parts.store.redis.delete(f"fd:{{{sale['id']}}}:1:cfg")
        ready = await client.get("/readyz")
        assert ready.status_code == 503
        assert sale["slug"] in ready.json()["checks"]["sales"]
        known = await parts.catalog.sale(sale["id"])
        assert known is not None
        await parts.loader.keep_loaded(known)

        # A store that may throw keys away may throw places away (case 9).
        await parts.store.redis.config_set("maxmemory-policy", "allkeys-lru")
        try:
            ready = await client.get("/readyz")
            assert ready.status_code == 503
            assert "noeviction" in ready.json()["checks"]["store"]
            # Whoever starts a process now is told in its log.
            with structlog.testing.capture_logs() as logs:
                async with open_parts(parts.settings):
                    pass
            assert [(log["event"], log["policy"]) for log in logs] == [
                ("store_evicts_keys", "allkeys-lru")
            ]
        finally:
            await parts.store.redis.config_set("maxmemory-policy", "noeviction")
        assert (await client.get("/readyz")).status_code == 200


async def test_a_database_that_is_away_is_named(parts: Parts, client: httpx.AsyncClient) -> None:
    await parts.database.close()
    ready = await client.get("/readyz")
    assert (ready.status_code, ready.json()["checks"]["database"]) == (503, "does not answer")
    assert (await client.get("/livez")).json() == {"live": True}
    assert value(await metrics(client), "fairdrop_up", part="database") == 0


async def test_requests_are_counted_by_route_method_and_status(
    client: httpx.AsyncClient,
) -> None:
    before = await metrics(client)
    sale = await opened(client)
    for _ in range(3):
        await client.post(f"/v1/sales/{sale['slug']}/join", headers={"authorization": ""})
    await client.post("/v1/sales/none/join", headers={"authorization": ""})
    await client.get(f"/admin/v1/sales/{sale['id']}")
    await client.get("/admin/v1/sales", headers={"authorization": "Bearer wrong"})
    after = await metrics(client)

    def grown(route: str, method: str, status: str, what: str = "count") -> float:
        name = f"fairdrop_http_request_seconds_{what}"
        labels = {"route": route, "method": method, "status": status}
        return value(after, name, **labels) - value(before, name, **labels)

    join = "/v1/sales/{sale}/join"
    assert grown(join, "POST", "2xx") == 3
    assert grown(join, "POST", "404") == 1
    assert grown(join, "POST", "2xx", "sum") > 0
    assert grown("/admin/v1/sales", "POST", "2xx") == 1
    assert grown("/admin/v1/sales/{sale}", "GET", "2xx") == 1
    buckets = [
        count
        for (name, labels), count in after.items()
        if name == "fairdrop_http_request_seconds_bucket"
        and {("route", join), ("status", "2xx")} <= labels
    ]
    assert sorted(buckets) == sorted(buckets, key=float)
    assert max(buckets) == value(
        after, "fairdrop_http_request_seconds_count", route=join, method="POST", status="2xx"
    )


async def test_nothing_that_a_client_makes_up_becomes_a_label(client: httpx.AsyncClient) -> None:
    sale = await created(client)
    before = len(await metrics(client))
    for n in range(20):
        await client.get(f"/made-up-{n}")
        await client.post(f"/v1/sales/{sale['id']}/made-up-{n}")
        await client.request(f"MADE{n}", "/admin/v1/sales")
        await client.get(f"/v1/sales/made-up-{n}")
        await client.get(f"/admin/v1/made-up-{n}")
    text = (await client.get("/metrics")).text
    assert "made-up" not in text
    assert "MADE" not in text
    assert (
        value(
            samples(text),
            "fairdrop_http_request_seconds_count",
            route="unknown",
            method="GET",
            status="404",
        )
        >= 20
    )
    assert len(samples(text)) - before < 6 * 20


async def test_live_figures_and_queues_are_metrics(
    client: httpx.AsyncClient, sell: NewShop
) -> None:
    shop = await sell(9)
    order = await shop.pending(2)
    await shop.deliver(shop.gateway.take_money(order.id))
    found = await metrics(client)
    slug, variant = shop.sale.slug, shop.sale.variants[0].id
    assert value(found, "fairdrop_sale_mode", sale=slug, mode="open") == 1
    assert value(found, "fairdrop_sale_units", sale=slug, variant=variant, state="held") == 2
    assert value(found, "fairdrop_sale_units", sale=slug, variant=variant, state="free") == 7
    assert value(found, "fairdrop_sale_people", sale=slug, place="admitted") == 1
    assert value(found, "fairdrop_sale_passed_total", sale=slug, what="joined") == 1
    assert value(found, "fairdrop_sale_calls_per_second", sale=slug, kind="set") == 10_000
    assert value(found, "fairdrop_inbox") >= 1
    assert value(found, "fairdrop_inbox_oldest_seconds") > 0
    assert value(found, "fairdrop_payments_to_check") >= 1
    assert value(found, "fairdrop_outbox") >= 1
    assert value(found, "fairdrop_batch_items_total", batch="reserve") >= 1
    assert value(found, "fairdrop_batches_total", batch="orders.insert") >= 1
    assert ("fairdrop_batch_queue", frozenset({("batch", "join")})) in found
    await shop.settle()


async def test_a_scraper_that_asks_for_openmetrics_gets_it(client: httpx.AsyncClient) -> None:
    accept = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"
    answer = await client.get("/metrics", headers={"accept": accept})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.count("# EOF") == 1
    assert answer.text.endswith("# EOF\n")
    assert "fairdrop_up" in answer.text


WORKER = """
import asyncio, sys
from types import SimpleNamespace
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from prometheus_client import generate_latest
from fairdrop.web.meter import Meter

async def answer(request):
    return PlainTextResponse("x")

async def main():
    nobody = SimpleNamespace()
    parts = SimpleNamespace(waiting_room=nobody, inventory=nobody, checkout=nobody, inbox=nobody)
    meter = Meter(Starlette(routes=[Route("/x/{id}", answer)]), parts)
    async def receive():
        return {"type": "http.request"}
    async def send(message):
        pass
    scope = {"type": "http", "method": "GET", "path": "/x/1", "headers": [], "query_string": b""}
    for _ in range(int(sys.argv[1])):
        await meter(dict(scope), receive, send)
    if sys.argv[2] == "show":
        meter.hand_over()
        print(generate_latest(meter.registry).decode())
    else:
        # Nobody asks this worker: it hands over by itself.
        await asyncio.sleep(float(sys.argv[2]))

asyncio.run(main())
"""


def test_whichever_worker_is_asked_knows_of_the_requests_of_all(tmp_path: Path) -> None:
    def worker(requests: int, then: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", WORKER, str(requests), then],
            env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    worker(5, "1.2")
    found = samples(worker(2, "show"))
    labels = {"route": "/x/{id}", "method": "GET", "status": "2xx"}
    assert value(found, "fairdrop_http_request_seconds_count", **labels) == 7


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics"])
async def test_health_needs_no_key_and_is_kept_by_no_cache(parts: Parts, path: str) -> None:
    async with client_of(parts, key=None) as client:
        answer = await client.get(path)
    assert answer.status_code in (200, 503)
    assert answer.headers["cache-control"] == "no-store"
