"""A browser gets its place back by itself after the store has lost the line (W15)."""

import asyncio
import re

import pytest
from playwright.async_api import Page, expect
from redis.asyncio import Redis

from tests.browser.chromium import PATIENCE_MS
from tests.running_site import RunningSite

expect.set_options(timeout=PATIENCE_MS)


@pytest.mark.xdist_group("system")
async def test_the_page_shows_its_receipt_without_being_asked(
    running_site: RunningSite, page: Page
) -> None:
    sale = await asyncio.to_thread(
        running_site.create_sale, "lost-and-found", rate_per_s=0.001, cap=1
    )
    address = f"{running_site.url}/v1/sales/{sale['id']}/join"
    for _ in range(3):  # the first is called, two wait
        answer = await page.request.post(address)
        assert answer.ok, await answer.text()
        await page.context.clear_cookies()
    await page.goto(f"{running_site.url}/s/lost-and-found")
    await page.get_by_role("button", name=re.compile("^Join")).click()
    number = page.get_by_text(re.compile("Your number is 4"))
    await expect(number).to_be_visible()
    async with Redis.from_url(running_site.store_url) as redis:
        keys = [key async for key in redis.scan_iter(match=f"fd:{{{sale['id']}}}:*")]
        await redis.delete(*keys)
    await expect(page.get_by_text(re.compile("getting their place back"))).to_be_visible()
    await expect(number).to_be_visible()
    # Nobody else came back yet, so this is the front; whoever does stands ahead again. The page may
    # tell that places are given back before it has shown its receipt.
    path = f"/sales/{sale['id']}/restoration"
    restored: dict[str, int] = {}
    async with asyncio.timeout(PATIENCE_MS / 1_000):
        while (restored.get("restored"), restored.get("waiting")) != (1, 1):
            restored = await asyncio.to_thread(running_site.admin, "GET", path)
            await asyncio.sleep(0.05)
