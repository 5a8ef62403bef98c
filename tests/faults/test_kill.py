"""Any one process of a running sale is killed in its middle: every promise still holds."""

import asyncio
import os
import secrets
import signal
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import psutil
import pytest
import pytest_asyncio

from fairdrop.app import Parts, open_parts
from fairdrop.audit import audit, figures
from fairdrop.embedded import remove_data
from fairdrop.rehearsal.control import Control
from fairdrop.rehearsal.drop import Deadlines, Drop
from fairdrop.rehearsal.rehearse import Snapshot, Wanted, rehearse
from fairdrop.rehearsal.report import Report, make_report
from fairdrop.settings import Settings
from fairdrop.site import Site

pytestmark = [
    pytest.mark.xdist_group("whole_sites"),
    pytest.mark.asyncio(loop_scope="module"),
]

BUYERS, UNITS, RATE = 140, 36, 80.0
DEADLINES = Deadlines(
    claim_ttl_ms=2_000, lease_ttl_ms=8_000, hold_ttl_ms=2_000, payment_ttl_ms=1_500
)
KILLED_AFTER_SOLD = 5
"""The sale is in its middle: some units are sold, others are held, being paid, or still free."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site() -> AsyncIterator[Site]:
    data = Path(tempfile.mkdtemp(prefix="fd-", dir="/tmp"))
    settings = Settings(
        data_dir=data,
        store_url=None,
        database_url=None,
        port=0,
        sweep_interval_ms=250,
        reconcile_interval_ms=250,
        payment_check_after_ms=250,
    )
    async with Site(settings) as running:
        yield running
    remove_data(data)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def parts(site: Site) -> AsyncIterator[Parts]:
    async with open_parts(site.settings) as opened:
        yield opened


class Killer:
    """Watches a sale and kills a process with SIGKILL once the sale is in its middle."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.sold_at_kill: int | None = None

    def __call__(self, snapshot: Snapshot) -> None:
        if self.sold_at_kill is None and snapshot.figures.units.sold >= KILLED_AFTER_SOLD:
            self.sold_at_kill = snapshot.figures.units.sold
            os.kill(self.pid, signal.SIGKILL)


async def rehearse_and_kill(site: Site, parts: Parts, pid: int) -> tuple[Report, Killer]:
    wanted = Wanted(
        drop=Drop(
            slug=f"kill-{secrets.token_hex(4)}",
            name="Kill",
            units=UNITS,
            rate_per_s=RATE,
            deadlines=DEADLINES,
        ),
        buyers=BUYERS,
        seed=secrets.randbelow(1_000_000),
    )
    killer = Killer(pid)
    rehearsed = await rehearse(
        wanted,
        parts,
        url=site.url,
        admin_key=site.admin_key,
        watch=killer,
        opens_in_s=0.3,
        observe_every_s=0.1,
    )
    return (
        make_report(
            wanted,
            rehearsed,
            await figures(parts, rehearsed.sale_id),
            await audit(parts, rehearsed.sale_id),
            workers=1,
            command_s=0,
        ),
        killer,
    )


def assert_all_promises_held(report: Report, killer: Killer) -> None:
    assert killer.sold_at_kill is not None, "the sale never came to its middle"
    assert killer.sold_at_kill < UNITS, "the sale was over before anything was killed"
    found = report.document()
    broken = [each for each in found["invariants"] if not each["holds"]]
    assert not broken, (broken, found["differences"], found["crowd"], report.wanted.seed)
    assert found["units_sold"] == UNITS
    assert found["oversold"] == found["paid_without_order"] == found["duplicate_charges"] == 0
    assert found["ledger_variance_minor"] == 0


@pytest.mark.parametrize("name", ["valkey", "postgres", "gateway", "web", "push", "worker"])
async def test_a_process_that_is_killed_comes_back_and_every_promise_holds(
    site: Site, parts: Parts, name: str
) -> None:
    pid, restarts = site.supervisor.pid_of(name), site.supervisor.restarts(name)
    assert pid is not None
    report, killer = await rehearse_and_kill(site, parts, pid)
    assert_all_promises_held(report, killer)
    async with asyncio.timeout(30):
        while site.supervisor.restarts(name) == restarts:
            await asyncio.sleep(0.05)
        await site.supervisor.wait_ready(name)
    assert not psutil.pid_exists(pid)


async def test_a_web_worker_that_is_killed_comes_back_and_every_promise_holds(
    site: Site, parts: Parts
) -> None:
    """The process that serves, below the one that the supervisor started."""
    server = site.supervisor.pid_of("web")
    assert server is not None
    (worker,) = (
        child
        for child in psutil.Process(server).children()
        if "resource_tracker" not in _line(child)
    )
    report, killer = await rehearse_and_kill(site, parts, worker.pid)
    assert_all_promises_held(report, killer)
    assert site.supervisor.pid_of("web") == server
    assert worker.pid not in {child.pid for child in psutil.Process(server).children()}


def _line(process: psutil.Process) -> str:
    return " ".join(process.cmdline())


async def test_whoever_listens_when_the_push_process_is_killed_misses_no_turn(
    site: Site, parts: Parts
) -> None:
    """W7: the streams hold nothing that the store does not; who comes back is told the present."""
    async with Control(site.url, site.admin_key) as control:
        drop = Drop(slug=f"push-{secrets.token_hex(4)}", name="Push", units=5, rate_per_s=1.0)
        sale_id = await control.create(drop.body(time.time() - 1))
    sale = await parts.catalog.sale(sale_id)
    assert sale is not None
    visitor, token = parts.visitors.new()
    url = f"{site.settings.push_url}/v1/sales/{sale.id}/stream"
    async with (
        aiohttp.ClientSession(cookies={"fairdrop_visitor": token}) as session,
        asyncio.timeout(40),
    ):
        async with session.get(url) as stream:
            assert await _heard(stream, b'"state":"NOT_ENTERED"')
            assert await _heard(stream, b'"mode":"open"')
            pid = site.supervisor.pid_of("push")
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            # Called while nobody could be told.
            await parts.waiting_room.join(sale.ref, visitor)
            assert not await _heard(stream, b"nothing any more")
        while True:
            try:
                stream = await session.get(url)
                break
            except aiohttp.ClientError:
                await asyncio.sleep(0.05)
        assert await _heard(stream, b'"state":"READY"')
        stream.close()


async def _heard(stream: aiohttp.ClientResponse, text: bytes) -> bool:
    """Whether a line with this text comes before the stream ends."""
    try:
        async for line in stream.content:
            if text in line:
                return True
    except aiohttp.ClientError:
        pass
    return False
