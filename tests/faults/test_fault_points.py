"""A process dies at each dangerous moment of a purchase: nobody has paid for nothing (O8, case 17)."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import httpx
import psutil
import pytest
import pytest_asyncio

from fairdrop import faults
from fairdrop.audit import audit, figures
from fairdrop.faults import Point
from fairdrop.rehearsal.drop import Deadlines
from fairdrop.rehearsal.plan import Ending

from .whole_site import FaultySite, buyers, faulty_site

pytestmark = [
    pytest.mark.xdist_group("whole_sites"),
    pytest.mark.asyncio(loop_scope="module"),
]

BUYERS = 4
AMPLE = Deadlines(claim_ttl_ms=20_000, lease_ttl_ms=60_000, hold_ttl_ms=20_000)
TOLD_BY_THE_SWEEP = replace(AMPLE, hold_ttl_ms=2_500, payment_ttl_ms=1_500)
"""A store that was not told of a confirmed order hears of it when its hold's deadline has passed."""
SHORT = Deadlines(claim_ttl_ms=20_000, lease_ttl_ms=60_000, hold_ttl_ms=500, payment_ttl_ms=300)
DONE = {"CONFIRMED"}
DIES_AT: dict[Point, tuple[Ending, Deadlines, dict[str, Any], set[str]]] = {
    # point: (what the buyers do, deadlines, terms of the sale, the states in which their orders may end)
    Point.HELD: (Ending.BUYS, AMPLE, {}, DONE),
    Point.SETTLING: (Ending.BUYS, AMPLE, {}, DONE),
    Point.ORDER_WRITTEN: (Ending.BUYS, AMPLE, {}, DONE),
    Point.SETTLED: (Ending.BUYS, TOLD_BY_THE_SWEEP, {}, DONE),
    Point.INTENT_MADE: (Ending.BUYS, AMPLE, {}, DONE),
    Point.STORE_TOLD: (Ending.BUYS, AMPLE, {}, DONE),
    Point.WEBHOOK_STORED: (Ending.BUYS, AMPLE, {}, DONE),
    Point.LATE_UNITS_TAKEN: (Ending.PAYS_LATE, SHORT, {}, DONE),
    Point.CAPTURED: (Ending.BUYS, AMPLE, {"capture": "manual"}, DONE),
    Point.REFUND_MADE: (Ending.PAYS_LATE, SHORT, {"accept_late": False}, {"REFUNDED"}),
    Point.PUBLISHED: (Ending.BUYS, AMPLE, {}, DONE),
    Point.MAIL_SENT: (Ending.BUYS, AMPLE, {}, DONE),
    Point.EXPIRED: (Ending.FORGETS_ORDER, SHORT, {}, {"EXPIRED"}),
}
"""Web and worker in turn: a supervisor waits longer before each restart of the same child."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shop() -> AsyncIterator[FaultySite]:
    async with faulty_site() as running:
        yield running


async def test_every_point_has_a_test_that_dies_there() -> None:
    assert set(DIES_AT) == set(Point)


@pytest.mark.parametrize("point", DIES_AT)
async def test_whoever_dies_there_leaves_nobody_paid_and_without(
    shop: FaultySite, point: Point
) -> None:
    ending, deadlines, terms, ends = DIES_AT[point]
    faults.arm(shop.faults, point)
    sale, seen, left = await shop.sell(buyers(BUYERS, ending), deadlines, **terms)

    dead = faults.died(shop.faults, point)
    assert dead is not None, "nobody passed the point"
    assert not psutil.pid_exists(dead)
    assert not seen.complaints
    assert not any(left.values()), left
    assert await audit(shop.parts, sale) == []
    assert await states(shop, sale) <= ends
    found = await figures(shop.parts, sale)
    orders = (found.orders_confirmed, found.orders_refunded, found.orders_expired)
    assert sum(orders) >= BUYERS
    assert found.units_sold == (BUYERS if ends == DONE else 0)
    assert found.paid_without_order == found.duplicate_charges == found.oversold == 0


async def states(shop: FaultySite, sale: str) -> set[str]:
    async with shop.parts.database.connection() as connection:
        rows = await connection.fetch(
            "SELECT DISTINCT state FROM orders WHERE sale_id = $1", UUID(sale)
        )
    return {row["state"] for row in rows}


async def test_a_mail_that_nobody_noted_is_sent_again_as_the_same_mail(shop: FaultySite) -> None:
    """O13: as far as "once" goes over SMTP; each buyer has the mail, and a copy shows that it is one."""
    faults.arm(shop.faults, Point.MAIL_SENT, passing=2)
    sale, _, left = await shop.sell(buyers(BUYERS), AMPLE)
    assert not any(left.values()), left
    assert faults.died(shop.faults, Point.MAIL_SENT) is not None
    async with shop.parts.database.connection() as connection:
        rows = await connection.fetch("SELECT id FROM orders WHERE sale_id = $1", UUID(sale))
    async with httpx.AsyncClient() as client:
        mails = (await client.get(f"{shop.site.mail_url}/mails.json")).json()
    ids = [mail["message_id"].partition(".")[0].lstrip("<") for mail in mails]
    ours = [order for order in ids if order in {str(row["id"]) for row in rows}]
    assert len(set(ours)) == BUYERS
    assert len(ours) == BUYERS + 1, "the second mail was taken, and not noted"
