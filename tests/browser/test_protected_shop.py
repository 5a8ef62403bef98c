"""A person goes through the waiting room into a shop on another host, and comes out with an order (W20)."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, expect

from tests.browser.chromium import PATIENCE_MS
from tests.browser.serving import served
from tests.integration.integrations.shops import asgi_shop
from tests.running_site import RunningSite

pytestmark = pytest.mark.xdist_group("system")
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture
def slug() -> str:
    return f"protected-{uuid.uuid4().hex[:8]}"


@pytest.fixture
async def shop(running_site: RunningSite, slug: str) -> AsyncIterator[str]:
    """The shop's address: another host for the browser, so that no cookie is shared."""
    running_site.create_sale(slug, rate_per_s=100)
    app = asgi_shop(
        url=running_site.url, sale=slug, protect=["/checkout"], api_key=running_site.shop_key
    )
    async with served(app, running_site.shop_origin):
        yield running_site.shop_origin


async def test_a_person_is_led_through_the_waiting_room_into_the_shop(
    page: Page, shop: str, slug: str, running_site: RunningSite
) -> None:
    await page.goto(f"{shop}/checkout?size=m")
    assert page.url.startswith(f"{running_site.url}/enter/{slug}?return=")
    await page.get_by_role("button", name="Join").click()
    await page.get_by_role("button", name="Enter now").click()
    await page.wait_for_url(f"{shop}/checkout?size=m")
    assert "token" not in page.url
    cookies = await page.context.cookies(shop)
    (kept,) = [cookie for cookie in cookies if cookie["name"] == f"fairdrop_admission_{slug}"]
    assert kept["httpOnly"]
    # Coming back later needs no waiting room while the lease lasts.
    await page.goto(f"{shop}/checkout")
    assert page.url == f"{shop}/checkout"


async def test_nobody_is_handed_over_to_a_shop_that_the_operator_did_not_name(
    page: Page, shop: str, slug: str, running_site: RunningSite
) -> None:
    await page.goto(f"{running_site.url}/enter/{slug}?return=http%3A%2F%2Fevil.test%2Fcheckout")
    await page.get_by_role("button", name="Join").click()
    await page.get_by_role("button", name="Enter now").click()
    await expect(
        page.get_by_role("region").get_by_text("Go back to the shop's page")
    ).to_be_visible()
    assert await page.locator("form").count() == 0
