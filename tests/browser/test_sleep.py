"""A page that sleeps while its visitor is called learns of it when it wakes (W7, W11)."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.error import HTTPError

import httpx
import psutil
import pytest
from playwright.async_api import Page, expect

from tests.browser.chromium import PATIENCE_MS
from tests.browser.test_client import CLIENT, broken, join, panel, until
from tests.running_site import RunningSite

pytestmark = pytest.mark.xdist_group("system")
expect.set_options(timeout=PATIENCE_MS)

NO_STREAMS = broken("WebSocket") + broken("EventSource")
# Whatever is waited for by chance takes minutes from now on: only waking brings news.
DROWSY = "Math.random = () => 200; window.clients.line.refresh(true)"


async def paused_sale(site: RunningSite, **fields: Any) -> str:
    slug = f"sleep-{secrets.token_hex(4)}"
    await asyncio.to_thread(site.create_sale, slug, **fields)
    async with asyncio.timeout(PATIENCE_MS / 1_000):
        while True:  # Refused until the sale has been found open.
            with suppress(HTTPError):
                await asyncio.to_thread(site.admin, "POST", f"/sales/{slug}/pause")
                return slug
            await asyncio.sleep(0.05)


async def until_public(site: RunningSite, slug: str, **figures: int) -> None:
    """Asked from outside the browser, which may be asleep."""
    async with asyncio.timeout(PATIENCE_MS / 1_000), httpx.AsyncClient(base_url=site.url) as client:
        while True:
            public = (await client.get(f"/v1/sales/{slug}")).json()
            if all(public[name] == value for name, value in figures.items()):
                return
            await asyncio.sleep(0.05)


@contextmanager
def asleep() -> Iterator[None]:
    """All of the browser but its front stands still, as on a laptop whose lid is shut.

    DevTools' way of freezing a page does nothing in a browser without a window.
    """
    stopped = [
        process
        for process in psutil.Process().children(recursive=True)
        if {"--type=renderer", "--type=utility"} & set(process.cmdline())
    ]
    assert stopped
    for process in stopped:
        process.suspend()
    try:
        yield
    finally:
        for process in stopped:
            process.resume()


async def wait_in_line(page: Page, site: RunningSite, slug: str) -> None:
    await join(page, site, slug)
    await page.evaluate(CLIENT, ["line", slug])
    await until(page, "window.clients.line.state === 'WAITING'")


@pytest.mark.parametrize("pushed", [True, False])
async def test_a_page_that_slept_through_its_call_learns_of_it_on_waking(
    running_site: RunningSite, page: Page, *, pushed: bool
) -> None:
    """With a stream and without; the window runs from the call on, not from waking."""
    if not pushed:
        await page.add_init_script(NO_STREAMS)
    slug = await paused_sale(running_site)
    await wait_in_line(page, running_site, slug)
    with asleep():
        await asyncio.to_thread(running_site.admin, "POST", f"/sales/{slug}/resume")
        await until_public(running_site, slug, called=1)
        called_by_ms = time.time() * 1_000
    woke = time.monotonic()
    await until(page, "window.clients.line.state === 'READY'")
    assert time.monotonic() - woke < 5
    claim_by_ms = await page.evaluate("window.clients.line.place.claim_by_ms")
    assert claim_by_ms <= called_by_ms + 60_000
    await expect(panel(page)).to_have_attribute("data-state", "ready")
    await page.get_by_role("button", name="Enter now").click()
    await expect(panel(page)).to_have_attribute("data-state", "basket")


@pytest.mark.parametrize("event", ["resume", "visibilitychange", "online", "pageshow"])
async def test_whatever_a_browser_says_on_waking_has_the_page_ask_at_once(
    running_site: RunningSite, page: Page, event: str
) -> None:
    await page.add_init_script(NO_STREAMS)
    slug = await paused_sale(running_site)
    await wait_in_line(page, running_site, slug)
    await page.evaluate(DROWSY)
    await asyncio.to_thread(running_site.admin, "POST", f"/sales/{slug}/resume")
    await until_public(running_site, slug, called=1)
    assert await page.evaluate("window.clients.line.state") == "WAITING"
    of = "document" if event in {"resume", "visibilitychange"} else "window"
    await page.evaluate(f"{of}.dispatchEvent(new Event('{event}'))")
    await until(page, "window.clients.line.state === 'READY'")


async def test_a_page_that_slept_through_its_claim_window_gets_its_old_place_back(
    running_site: RunningSite, page: Page
) -> None:
    """W11: it is told that the turn has passed, and the number stays."""
    slug = await paused_sale(running_site, claim_ttl_ms=1_500)
    await wait_in_line(page, running_site, slug)
    position = await page.evaluate("window.clients.line.place.position")
    with asleep():
        await asyncio.to_thread(running_site.admin, "POST", f"/sales/{slug}/resume")
        await until_public(running_site, slug, served=1, called=0)
    await until(page, "window.clients.line.state === 'MISSED'")
    refused = await page.evaluate("window.clients.line.claim()")
    assert refused["problem"]["code"] == "missed"
    await expect(panel(page)).to_have_attribute("data-state", "missed")
    await asyncio.to_thread(running_site.admin, "PATCH", f"/sales/{slug}", {"claim_ttl_ms": 60_000})
    await page.get_by_role("button", name=re.compile("place", re.IGNORECASE)).click()
    await until(page, "['WAITING', 'READY'].includes(window.clients.line.state)")
    assert await page.evaluate("window.clients.line.place.position") == position
