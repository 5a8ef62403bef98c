"""The line knows the stock: its length, its forecast, its end and its return (W16)."""

from __future__ import annotations

import httpx

from fairdrop.app import Parts
from fairdrop.waiting_room import Forecast, State, prospects, read_outlook
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


async def test_the_line_takes_three_people_for_each_unit_that_is_not_sold(sale: DrivenSale) -> None:
    await sale.load({"seat": 4, "box": 1}, cap=0, line_cap_milli=3_000)
    told = await sale.join(*(f"v{n}" for n in range(20)))
    assert [place.state for place in told] == [State.WAITING] * 15 + [State.LINE_FULL] * 5
    # Whoever has a place keeps it, and joins again as often as they like.
    assert (await sale.join("v3"))[0].position == 4
    await sale.leave("v0")
    assert (await sale.join("v19"))[0].state is State.WAITING
    assert (await sale.join("v18"))[0].state is State.LINE_FULL
    await assert_everybody_is_counted_once(sale)


async def test_sold_units_make_the_line_shorter_and_new_ones_longer(sale: DrivenSale) -> None:
    await sale.load({"seat": 4}, line_cap_milli=1_000)
    await sale.admit("a")
    await sale.reserve("a", ["seat", 2], hold="h")
    await sale.tick()
    assert (await sale.figures()).pace.line_cap == 4  # what is held may come back
    await sale.commit("h")
    await sale.tick()
    assert (await sale.figures()).pace.line_cap == 2
    await sale.load({"seat": 10}, line_cap_milli=1_000)
    await sale.tick()
    assert (await sale.figures()).pace.line_cap == 8


async def test_without_a_factor_the_line_takes_everybody(sale: DrivenSale) -> None:
    await sale.load({"seat": 1}, cap=0, line_cap_milli=0)
    await sale.tick()
    told = await sale.join(*(f"v{n}" for n in range(50)))
    assert {place.state for place in told} == {State.WAITING}


async def test_a_sale_that_keeps_no_stock_has_a_line_like_any_other(sale: DrivenSale) -> None:
    """A waiting room before a checkout of the shop's own (W20)."""
    await sale.load({"seat": 0}, line_cap_milli=3_000)
    await sale.tick()
    line = await sale.join_line(*(f"v{n}" for n in range(50)))
    assert {place.state for place in line.places} == {State.WAITING}
    assert (await sale.tick()).called == 50
    assert read_outlook((await sale.status_line("v0")).outlook) is None


async def test_at_sell_out_nobody_is_called_until_units_come_back(sale: DrivenSale) -> None:
    await sale.load({"seat": 2}, cap=1, line_cap_milli=100_000)
    await sale.admit("a")
    await sale.join("b", "c")
    await sale.reserve("a", ["seat", 2], hold="h")
    await sale.commit("h")
    await sale.complete("a")
    sale.pass_ms(1_000)
    assert (await sale.tick()).called == 0
    outlook = (await sale.status_line("b")).outlook
    assert prospects(outlook, 4).of(0) is Forecast.SOLD_OUT
    assert [place.rank for place in await sale.status("b", "c")] == [0, 1]  # their places are kept
    await sale.load({"seat": 3})
    assert (await sale.tick()).called == 1
    assert (await sale.status("b"))[0].state is State.READY


async def test_units_that_are_only_held_may_come_back(sale: DrivenSale) -> None:
    await sale.load({"seat": 1}, line_cap_milli=100_000)
    await sale.admit("a")
    await sale.join("b")
    await sale.reserve("a", ["seat", 1])
    await sale.load(cap=1)
    await sale.tick()
    outlook = (await sale.status_line("b")).outlook
    assert prospects(outlook, 4).of(0) is Forecast.SOLD_OUT_MAY_RETURN
    sale.pass_ms(600_000)
    await sale.expire()
    await sale.tick()
    assert (await sale.status("b"))[0].state is State.READY


async def test_a_safety_buffer_is_no_reason_to_wait(sale: DrivenSale) -> None:
    """Ten units, a tenth of them never sold (H9): nine sold is sold out."""
    await sale.load(
        {"seat": 10}, buffer_percent=10, cap=1, line_cap_milli=2_000, order_limit=9, buyer_limit=9
    )
    assert (await sale.figures()).pace.line_cap == 18
    await sale.admit("a")
    await sale.join("b")
    await sale.reserve("a", ["seat", 9], hold="h")
    await sale.commit("h")
    await sale.complete("a")
    sale.pass_ms(1_000)
    assert (await sale.tick()).called == 0
    assert (await sale.figures()).pace.line_cap == 0


async def test_forecast_and_full_line_are_told_to_everybody(
    client: httpx.AsyncClient, parts: Parts
) -> None:
    variants = [{"product": "T", "name": "S", "price_minor": 100, "quantity": 4}]
    sale = await opened(client, rate_per_s=0.001, line_cap_factor=1.5, variants=variants)
    path = f"/v1/sales/{sale['id']}"
    found = await parts.catalog.sale(sale["id"])
    assert found is not None
    await parts.waiting_room.tick(found.ref)
    async with client_of(parts, key=None) as anybody:
        forecasts = []
        for _ in range(6):
            joined = await anybody.post(f"{path}/join")
            anybody.cookies.clear()
            forecasts.append(joined.json().get("forecast"))
        full = problem(await anybody.post(f"{path}/join"), 409, "line_full")
        assert "units" in full["detail"]
        public = (await anybody.get(path)).json()
        assert public["line_full"] is True
    # Four units, and two or three each as long as nothing is known: one person surely finds some.
    assert forecasts == ["likely"] + ["unlikely"] * 5
