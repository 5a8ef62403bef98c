"""A person buys a ticket in Chromium, with the mouse and without, and the operator sees it.

``live_site`` is a whole Fairdrop that runs for the test: web worker, worker, sandbox gateway and an
open sale (``base_url``, ``sale_slug``, ``admin_key``).
"""

import asyncio
import re
import time

from playwright.async_api import Locator, Page, expect

from tests.browser.chromium import PATIENCE_MS
from tests.browser.site import LiveSite

expect.set_options(timeout=PATIENCE_MS)


async def open_sale(page: Page, site: LiveSite) -> None:
    await page.goto(f"{site.base_url}/s/{site.sale_slug}")
    await expect(page.get_by_role("button", name=re.compile("^Join"))).to_be_visible()


async def enter(page: Page, site: LiveSite) -> None:
    """From the sale's address to the inside, through the line."""
    await open_sale(page, site)
    await page.get_by_role("button", name=re.compile("^Join")).click()
    await page.get_by_role("button", name="Enter now").click()
    await expect(page.get_by_role("button", name="Reserve")).to_be_visible()


async def reserve_one(page: Page) -> None:
    await page.get_by_role("button", name=re.compile("^One more")).first.click()
    await page.get_by_role("button", name="Reserve").click()
    await page.wait_for_url("**/orders/**")


async def buy_one(page: Page, site: LiveSite) -> None:
    await enter(page, site)
    await reserve_one(page)
    order_address = page.url.partition("?")[0]
    await page.get_by_label(re.compile("^E-mail")).fill("ada@example.org")
    await page.get_by_role("button", name=re.compile("^Pay ")).click()
    # The sandbox's own page: the card that succeeds is chosen already.
    await page.wait_for_url(lambda url: not url.startswith(f"{site.base_url}/orders/"))
    await page.get_by_role("button", name=re.compile("^Pay")).click()
    await page.wait_for_url(lambda url: url.startswith(order_address))
    await expect(page.get_by_role("heading", level=1)).to_have_text("Paid. It is yours!")


async def units_sold(page: Page, site: LiveSite) -> int:
    response = await page.request.get(f"{site.base_url}/v1/sales/{site.sale_slug}")
    return sum(variant["sold"] for variant in (await response.json())["variants"])


async def tab_to(page: Page, target: Locator) -> None:
    """Presses Tab until the target has the focus, as a person without a mouse would."""
    await expect(target).to_be_visible()
    for _ in range(60):
        if await target.evaluate("element => element === document.activeElement"):
            outline = await target.evaluate("element => getComputedStyle(element).outlineStyle")
            assert outline != "none", "the focus cannot be seen"
            return
        await page.keyboard.press("Tab")
    raise AssertionError(f"Tab never reaches {target}")


async def test_a_person_joins_waits_pays_and_gets_a_serial_number(
    live_site: LiveSite, page: Page
) -> None:
    """W5, W6, O1: the whole way through the pages."""
    before = await units_sold(page, live_site)
    await buy_one(page, live_site)
    ticket = page.get_by_role("list", name="Your units").get_by_role("listitem")
    await expect(ticket).to_have_count(1)
    await expect(ticket).to_have_text(re.compile(r"No\. \d+$"))
    assert await units_sold(page, live_site) > before

    # The confirmation is still there for somebody who comes back later, without the hint.
    await page.goto(page.url.partition("?")[0])
    await expect(ticket).to_have_count(1)


async def test_a_reload_keeps_the_place_the_admission_and_the_reservation(
    live_site: LiveSite, page: Page
) -> None:
    """W1, H3."""
    await enter(page, live_site)
    await page.reload()
    await expect(page.get_by_role("button", name="Reserve")).to_be_visible()
    await reserve_one(page)
    await page.reload()
    await expect(page.get_by_role("button", name=re.compile("^Pay "))).to_be_visible()

    # Giving it back frees the units at once, and nobody is left in the dark about it.
    await page.get_by_role("button", name="Cancel the order").click()
    await page.get_by_role("dialog").get_by_role("button", name="Cancel the order").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("The order is cancelled")


async def test_a_cookie_of_another_installation_locks_nobody_out(
    live_site: LiveSite, page: Page
) -> None:
    """S2: no script can remove the cookie, so joining has to replace one that we never gave out."""
    await page.context.add_cookies(
        [
            {
                "name": "fairdrop_visitor",
                "value": "fdv1.c3RyYW5nZXI.AAAA",
                "url": live_site.base_url,
            }
        ]
    )
    await enter(page, live_site)


async def test_the_keyboard_alone_reaches_the_reservation(live_site: LiveSite, page: Page) -> None:
    await open_sale(page, live_site)
    await tab_to(page, page.get_by_role("button", name=re.compile("^Join")))
    await page.keyboard.press("Enter")
    await tab_to(page, page.get_by_role("button", name="Enter now"))
    await page.keyboard.press("Enter")
    quantity = page.get_by_role("spinbutton").first
    await tab_to(page, quantity)
    await page.keyboard.press("ArrowUp")
    await expect(quantity).to_have_value("1")
    await tab_to(page, page.get_by_role("button", name="Reserve"))
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/orders/**")
    await expect(page.get_by_role("heading", level=1)).to_have_text("It is yours for now")


async def test_the_console_shows_what_is_sold(live_site: LiveSite, page: Page) -> None:
    await buy_one(page, live_site)
    await page.goto(f"{live_site.base_url}/console")
    await page.get_by_label("API key").fill("not the key")
    await page.get_by_role("button", name="Continue").click()
    await expect(page.get_by_role("alert").filter(has_text="does not open")).to_be_visible()
    await page.get_by_label("API key").fill(live_site.admin_key)
    await page.get_by_role("button", name="Continue").click()
    await choose_sale(page, live_site)

    shown = page.locator('[data-figure="sold"]')
    deadline = time.monotonic() + PATIENCE_MS / 1_000
    while True:
        # Other tests may buy in the same sale, so the figure is compared with the one of its moment.
        before, text = await units_sold(page, live_site), await shown.inner_text()
        if before > 0 and text == f"{before:,}":
            return
        assert time.monotonic() < deadline, f"the console says {text}, {before} are sold"
        await asyncio.sleep(0.1)


async def choose_sale(page: Page, site: LiveSite) -> None:
    response = await page.request.get(f"{site.base_url}/v1/sales/{site.sale_slug}")
    await page.get_by_role("combobox", name="Sale").select_option((await response.json())["id"])


async def test_no_page_needs_sideways_scrolling_on_the_smallest_phone(
    live_site: LiveSite, page: Page
) -> None:
    await page.set_viewport_size({"width": 320, "height": 568})
    await page.goto(live_site.base_url)
    await expect(page.locator(".card").first).to_be_visible()
    assert await sideways(page) == 0
    await enter(page, live_site)
    assert await sideways(page) == 0
    await reserve_one(page)
    await expect(page.get_by_role("button", name=re.compile("^Pay "))).to_be_visible()
    assert await sideways(page) == 0


async def sideways(page: Page) -> int:
    """Pixels by which the page is wider than the screen."""
    return int(
        await page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
    )
