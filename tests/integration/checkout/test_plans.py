"""What a settlement costs does not depend on how many units were sold before it (case 40)."""

from __future__ import annotations

import pytest

from fairdrop.checkout import records, settle
from tests.integration.checkout.shop import Shop


@pytest.mark.parametrize(
    "statement",
    [settle.SQL["sell_units"], records.SQL["delete_units"]],
    ids=["sell_units", "delete_units"],
)
async def test_the_units_of_an_order_are_found_by_the_order(shop: Shop, statement: str) -> None:
    """Also in a plan that was made for any batch, with a table that nobody has analysed yet.

    Found by variant, with all of its units read for each order, 100 orders took 150 ms among 10,000
    units and 2 ms of that were needed.
    """
    await shop.execute(
        "INSERT INTO units (variant_id, serial, order_id, state)"
        " SELECT $1::text::uuid, n, uuidv7(), 'SOLD' FROM generate_series(100, 5000) AS n",
        shop.sale.variants[0].id,
    )
    async with shop.parts.database.connection() as connection:
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        await connection.execute(f"PREPARE asked (uuid[]) AS {statement}")
        rows = await connection.fetch("EXPLAIN EXECUTE asked (ARRAY[uuidv7()])")
        await connection.execute("DEALLOCATE asked; RESET plan_cache_mode")
    plan = "\n".join(row[0] for row in rows)
    assert "units_by_order" in plan, plan
    assert "Seq Scan" not in plan, plan
