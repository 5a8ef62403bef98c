"""Stock while a sale runs: each change once, whoever dies in between, and what a warehouse says (H9)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from aiohttp import web

from fairdrop.app import Parts
from fairdrop.catalog import Sale
from fairdrop.checkout import StockOutcome, Warehouse
from fairdrop.checkout.stock_loading import StockLoading
from fairdrop.errors import DatabaseUnavailable
from tests.integration.checkout.conftest import NewShop
from tests.integration.checkout.shop import Shop
from tests.integration.checkout.test_rebuilding import lose_the_sale, rebuild

CHANGED, REPEATED = StockOutcome.CHANGED, StockOutcome.REPEATED


async def refresh(shop: Shop) -> Sale:
    """The store has what the database says."""
    await rebuild(shop)
    return shop.sale


async def audit_of(shop: Shop) -> list[tuple[str, str, Any]]:
    rows = await shop.fetch(
        "SELECT actor, action, detail FROM operator_audit WHERE sale_id = $1"
        " AND action LIKE '%stock%' ORDER BY id",
        UUID(shop.sale.id),
    )
    return [(row["actor"], row["action"], row["detail"]) for row in rows]


@pytest.mark.parametrize("delta", [3, -3])
async def test_a_change_with_a_key_is_made_once_also_at_the_same_instant(
    shop: Shop, other_parts: Parts, delta: int
) -> None:
    variant = shop.sale.variants[0].id
    answers = await asyncio.gather(
        *(
            parts.stock.change(shop.sale, variant, delta, "ann", key="k")
            for parts in (shop.parts, other_parts) * 3
        )
    )
    assert sorted(answer.outcome for answer in answers) == [CHANGED, *[REPEATED] * 5]
    await refresh(shop)
    assert (await shop.stock())[0] == 5 + delta
    other = await shop.parts.stock.change(shop.sale, variant, 1, "ann", key="k")
    assert other.outcome is StockOutcome.KEY_REUSED
    assert len(await audit_of(shop)) == 1


async def test_a_reduction_whose_process_died_before_writing_it_down_is_finished_by_its_repetition(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    variant = shop.sale.variants[0].id

    async def die(*_: object) -> None:
        raise DatabaseUnavailable("dead")

    monkeypatch.setattr(shop.parts.stock, "_note", die)
    with pytest.raises(DatabaseUnavailable):
        await shop.parts.stock.change(shop.sale, variant, -2, "ann", key="k")
    monkeypatch.undo()
    assert (await shop.stock())[0] == 3  # the store has taken them out; no row says so yet
    answer = await shop.parts.stock.change(shop.sale, variant, -2, "ann", key="k")
    assert answer.outcome is CHANGED
    assert (await shop.stock())[0] == 3
    (row,) = await shop.fetch(
        "SELECT quantity, cardinality(retired) AS retired FROM variants WHERE id = $1",
        UUID(variant),
    )
    assert (row["quantity"], row["retired"]) == (3, 2)
    await lose_the_sale(shop)
    await rebuild(shop)
    assert await shop.stock() == (3, 0, 0)


async def test_a_rebuild_beside_a_reduction_sees_all_of_it_or_none(
    shop: Shop, other_parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is lost between its answer and the row: the new epoch waits for the row."""
    variant = shop.sale.variants[0].id
    reduce = shop.parts.inventory.reduce
    other = Shop(other_parts, shop.gateway, shop.sale, admissions=shop.admissions)
    rebuilding: list[asyncio.Task[None]] = []

    async def reduce_and_lose(*args: Any) -> Any:
        reduced = await reduce(*args)
        await lose_the_sale(shop)
        rebuilding.append(asyncio.create_task(rebuild(other)))
        async with asyncio.timeout(30):
            while not await shop.fetch(
                "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            ):
                await asyncio.sleep(0.005)
        return reduced

    monkeypatch.setattr(shop.parts.inventory, "reduce", reduce_and_lose)
    assert (await shop.parts.stock.change(shop.sale, variant, -2, "ann")).outcome is CHANGED
    await rebuilding[0]
    assert await other.stock() == (3, 0, 0)


async def test_exactly_so_many_units_counts_those_that_are_held_and_sold(sell: NewShop) -> None:
    shop = await sell(5, 5)
    await shop.paid(2)
    await shop.order(1)
    first, second = (variant.id for variant in shop.sale.variants)
    stock = shop.parts.stock
    for _ in range(2):
        answers = await stock.set_units(shop.sale, {first: 4, second: 9}, "ann", "file x")
        assert {answer.outcome for answer in answers.values()} == {CHANGED}
        await refresh(shop)
        assert await shop.stock() == (1, 1, 2)
        assert await shop.stock(1) == (9, 0, 0)
    refused = await stock.set_units(shop.sale, {first: 2}, "ann", "file x")
    assert (refused[first].outcome, refused[first].free) == (StockOutcome.TOO_FEW_FREE, 1)
    assert await shop.stock() == (1, 1, 2)
    assert [
        (action, detail["units"], detail["source"]) for _, action, detail in await audit_of(shop)
    ] == [
        ("reduce_stock", 1, "file x"),
        ("add_stock", 4, "file x"),
    ]


# ---------------------------------------------------------------- the warehouse


@dataclass
class RunningWarehouse:
    """A real HTTP server that answers as the test says."""

    url: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)
    status: int = 200
    body: Any = None
    hangs: bool = False

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.asked.append((request.path, request.headers.get("authorization", "")))
        if self.hangs:
            await asyncio.sleep(60)
        if isinstance(self.body, str):
            return web.Response(text=self.body, status=self.status)
        return web.json_response(self.body, status=self.status)


@pytest.fixture
async def warehouse() -> AsyncIterator[RunningWarehouse]:
    running = RunningWarehouse()
    app = web.Application()
    app.router.add_get("/{path:.*}", running.serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None
    port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
    running.url = f"http://127.0.0.1:{port}"
    yield running
    await runner.cleanup()


def loading(parts: Parts, warehouse: RunningWarehouse, timeout_s: float = 5) -> StockLoading:
    source = Warehouse(warehouse.url + "/stock/{sale}", "secret", timeout_s=timeout_s)
    return StockLoading(
        parts.database, parts.catalog, parts.stock, source, lead_ms=60_000, retry_ms=1
    )


@pytest.fixture
async def waiting(sell: NewShop) -> Shop:
    """A sale of 5 and 3 units whose stock the warehouse knows, and which opens in an hour."""
    shop = await sell(5, 3)
    await shop.execute(
        "UPDATE sales SET mode = 'scheduled', opens_at = $2, stock_source = 'warehouse',"
        " version = version + 1 WHERE id = $1",
        UUID(shop.sale.id),
        datetime.now(UTC) + timedelta(hours=1),
    )
    await lose_the_sale(shop)
    await refresh(shop)
    return shop


def named(*units: int) -> dict[str, Any]:
    return {
        "stock": [
            {"variant": f"Ticket, Category {number}", "units": count}
            for number, count in enumerate(units)
        ]
    }


async def test_the_warehouse_is_asked_a_minute_before_the_opening_and_once(
    waiting: Shop, other_parts: Parts, warehouse: RunningWarehouse
) -> None:
    sale, opens_at = waiting.sale, waiting.sale.opens_at
    warehouse.body = named(8, 1)
    loads = [loading(waiting.parts, warehouse), loading(other_parts, warehouse)]
    assert not await loads[0].load_due(sale, opens_at - timedelta(seconds=61))
    assert warehouse.asked == []
    due = opens_at - timedelta(seconds=60)
    await loads[0].load_due(sale, due)
    for load in loads * 2:
        assert not await load.load_due(sale, due)
    assert warehouse.asked == [(f"/stock/{sale.slug}", "Bearer secret")]
    await refresh(waiting)
    assert (await waiting.stock(), await waiting.stock(1)) == ((8, 0, 0), (1, 0, 0))
    state = await loads[1].state_of(sale)
    assert state is not None
    assert (state.state, state.units, state.message) == ("loaded", 9, "")
    audit = await audit_of(waiting)
    assert [(actor, action) for actor, action, _ in audit] == [
        ("warehouse", "add_stock"),
        ("warehouse", "reduce_stock"),
        ("warehouse", "load_stock"),
    ]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"status": 503}, "status 503"),
    ({"hangs": True}, "no answer within"),
    ({"body": "<html>"}, "no stock"),
    ({"body": {"stock": [{"variant": "x", "units": -1}]}}, "no stock"),
    ({"body": named(1, 2, 3)}, "no variant is called"),
    ({"body": {"stock": named(1)["stock"] * 2}}, "comes twice"),
    ({"body": "x" * 1_000_001}, "more than 1000000 bytes"),
]


@pytest.mark.parametrize(("wrong", "reason"), WRONG)
async def test_a_warehouse_that_fails_changes_nothing_and_is_asked_again(
    waiting: Shop, warehouse: RunningWarehouse, wrong: dict[str, Any], reason: str
) -> None:
    for name, value in wrong.items():
        setattr(warehouse, name, value)
    load = loading(waiting.parts, warehouse, timeout_s=0.2 if warehouse.hangs else 5)
    due = waiting.sale.opens_at - timedelta(seconds=30)
    assert not await load.load_due(waiting.sale, due)
    state = await load.state_of(waiting.sale)
    assert state is not None
    assert state.state == "failing"
    assert reason in state.message
    assert "until the sale opens" in state.message
    assert (await waiting.stock(), await waiting.stock(1)) == ((5, 0, 0), (3, 0, 0))
    warehouse.status, warehouse.hangs, warehouse.body = 200, False, named(7)
    async with asyncio.timeout(30):
        while not await load.load_due(waiting.sale, due):
            await asyncio.sleep(0.01)
    await refresh(waiting)
    assert (await waiting.stock(), await waiting.stock(1)) == ((7, 0, 0), (3, 0, 0))


async def test_a_sale_that_opens_without_its_warehouse_sells_the_catalogues_stock_and_says_so(
    waiting: Shop, warehouse: RunningWarehouse
) -> None:
    warehouse.status = 500
    load, sale = loading(waiting.parts, warehouse), waiting.sale
    await load.load_due(sale, sale.opens_at - timedelta(seconds=1))
    for _ in range(2):
        assert not await load.load_due(sale, sale.opens_at)
    warehouse.status, warehouse.body = 200, named(1)
    assert not await load.load_due(sale, sale.opens_at + timedelta(seconds=1))
    assert len(warehouse.asked) == 1
    state = await load.state_of(sale)
    assert state is not None
    assert state.state == "failed"
    assert "catalogue's stock" in state.message
    assert "status 500" in state.message
    assert (await waiting.stock())[0] == 5
    ((actor, action, detail),) = await audit_of(waiting)
    assert (actor, action, detail["attempts"]) == ("warehouse", "load_stock_failed", 1)


async def test_a_new_opening_time_is_loaded_anew(
    waiting: Shop, warehouse: RunningWarehouse
) -> None:
    warehouse.body = named(8)
    load = loading(waiting.parts, warehouse)
    await load.load_due(waiting.sale, waiting.sale.opens_at)
    later = waiting.sale.opens_at + timedelta(hours=2)
    await waiting.execute(
        "UPDATE sales SET opens_at = $2 WHERE id = $1", UUID(waiting.sale.id), later
    )
    sale = await refresh(waiting)
    state = await load.state_of(sale)
    assert state is not None
    assert state.state == "waiting"
    assert await load.load_due(sale, later - timedelta(seconds=5))
