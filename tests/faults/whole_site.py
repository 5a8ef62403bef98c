"""A whole site on real processes whose fault points can be armed, and crowds that buy from it."""

import secrets
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fairdrop.app import Parts, open_parts
from fairdrop.embedded import remove_data
from fairdrop.payments.sandbox.mischief import NO_MISCHIEF
from fairdrop.rehearsal.client import Client
from fairdrop.rehearsal.control import Control
from fairdrop.rehearsal.crowd import Crowd, CrowdReport
from fairdrop.rehearsal.drop import Deadlines, Drop
from fairdrop.rehearsal.ending import wait_for_the_end
from fairdrop.rehearsal.plan import GOOD_CARD, BuyerPlan, Ending, Manners, draw_plan
from fairdrop.settings import Settings
from fairdrop.site import Site

UNITS = 20
TIME_LIMIT_S = 40
END_LIMIT_S = 30


@dataclass(frozen=True)
class FaultySite:
    """The site, what this process sees of it, and where its faults are armed."""

    site: Site
    parts: Parts
    faults: Path

    async def sell(
        self, plans: Sequence[BuyerPlan], deadlines: Deadlines, **fields: Any
    ) -> tuple[str, CrowdReport, dict[str, int]]:
        """Hold a sale for these buyers; its id, what they saw, and what was left under way."""
        drop = Drop(
            slug=f"fault-{secrets.token_hex(4)}",
            name="Fault",
            units=UNITS,
            rate_per_s=500.0,
            deadlines=deadlines,
        )
        async with Control(self.site.url, self.site.admin_key) as control, Client() as client:
            sale = await control.create({**drop.body(time.time() - 1), **fields})
            report = await Crowd(client, plans, self.site.url, sale).run(0, TIME_LIMIT_S)
        return sale, report, await wait_for_the_end(self.parts, sale, END_LIMIT_S)


@asynccontextmanager
async def faulty_site() -> AsyncIterator[FaultySite]:
    """Everything of one machine, with quick periodic steps."""
    data = Path(tempfile.mkdtemp(prefix="fd-", dir="/tmp"))
    faults = data / "faults"
    faults.mkdir()
    settings = Settings(
        data_dir=data / "site",
        store_url=None,
        database_url=None,
        port=0,
        sweep_interval_ms=100,
        reconcile_interval_ms=100,
        payment_check_after_ms=500,
    )
    async with Site(settings, faults=faults) as site, open_parts(site.settings) as parts:
        yield FaultySite(site, parts, faults)
    remove_data(data)


def buyers(count: int, ending: Ending = Ending.BUYS) -> list[BuyerPlan]:
    """People who come at once, think of nothing, and all do the same."""
    drawn = (draw_plan(1, n, variants=4, span_ms=1, manners=Manners()) for n in range(count))
    return [
        replace(
            plan,
            arrives_ms=0,
            joins_again=0,
            looks_early=False,
            leaves_line_after_ms=None,
            misses_call=False,
            quantity=1,
            takes_fewer=True,
            thinks_ms=0,
            double_clicks=False,
            ending=ending,
            hesitates=False,
            says_goodbye=False,
            cards=(GOOD_CARD,),
            mischief=NO_MISCHIEF,
        )
        for plan in drawn
    ]
