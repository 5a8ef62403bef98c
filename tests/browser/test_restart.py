"""Servers die and come back while people wait: browsers keep their place and come back by turns (W7, S6)."""

from __future__ import annotations

import asyncio
import secrets
from itertools import pairwise

import psutil
import pytest
from playwright.async_api import Page, expect

from tests.browser.chromium import PATIENCE_MS
from tests.browser.test_client import CLIENT, broken, join, panel, position, standing_sale, until
from tests.running_site import RunningSite

pytestmark = pytest.mark.xdist_group("system")
expect.set_options(timeout=PATIENCE_MS)

ATTEMPTS = (
    broken("WebSocket")
    + broken("EventSource")
    + """
  window.attempts = [];
  const real = window.fetch;
  window.fetch = (url, options) => {
    if (options.method === "GET") window.attempts.push(performance.now());
    return window.outage ? Promise.reject(new TypeError("no network")) : real(url, options);
  };
"""
)


def kill(site: RunningSite, *names: str) -> None:
    """SIGKILL to these processes of the site, whose supervisor starts them again."""
    found = []
    for process in psutil.process_iter():
        try:
            ours = process.environ().get("FAIRDROP_DATA_DIR") == str(site.data_dir)
            if ours and process.cmdline()[-2:] in [["fairdrop", name] for name in names]:
                found.append(process)
        except psutil.Error:
            continue
    assert len(found) >= len(names)
    for process in found:
        process.kill()


@pytest.mark.parametrize("names", [("push",), ("web", "push")])
async def test_a_browser_keeps_its_place_over_a_restart_and_is_called(
    running_site: RunningSite, page: Page, names: tuple[str, ...]
) -> None:
    slug = await standing_sale(running_site)
    await join(page, running_site, slug)
    before = await position(page)
    await page.evaluate(CLIENT, ["line", slug])
    await until(page, "window.clients.line.pushed")
    sale = await page.evaluate("window.clients.line.sale.id")
    await asyncio.to_thread(kill, running_site, *names)
    await until(page, "!window.clients.line.pushed")
    await expect(panel(page)).to_have_attribute("data-state", "waiting")
    await until(page, "window.clients.line.pushed && !window.clients.line.trouble")
    assert await position(page) == before
    await asyncio.to_thread(running_site.admin, "PATCH", f"/sales/{sale}", {"cap": 10})
    await expect(panel(page)).to_have_attribute("data-state", "ready")


async def test_an_outage_is_asked_about_ever_more_rarely_and_not_in_step(
    running_site: RunningSite, page: Page
) -> None:
    """Two visitors, a minute without any answer, by a clock that the test drives."""
    slug = f"outage-{secrets.token_hex(4)}"
    await asyncio.to_thread(running_site.create_sale, slug)
    pages = [page, await page.context.new_page()]
    times: list[list[float]] = []
    for each in pages:
        await each.clock.install()
        await each.add_init_script(ATTEMPTS)
        await each.goto(f"{running_site.url}/s/{slug}")
        await expect(panel(each)).to_have_attribute("data-state", "join")
        await each.evaluate("window.outage = true; window.attempts.length = 0")
        for _ in range(120):
            await each.clock.run_for(500)
            await each.evaluate("0")
        times.append(await each.evaluate("window.attempts"))
    await pages[1].close()
    for attempts in times:
        gaps = [later - earlier for earlier, later in pairwise(attempts)]
        # After the first failure 1 s, then 2, 4, 8 and 16 s, each +-50 % (and the test's half second).
        for gap, base_s in zip(gaps, (1, 2, 4, 8, 16), strict=False):
            assert 500 * base_s <= gap <= 1_500 * base_s + 1_000, gaps
        assert 5 <= len(attempts) <= 12
    assert times[0][:4] != times[1][:4]
