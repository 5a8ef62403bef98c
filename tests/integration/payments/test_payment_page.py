"""The payment page: plain, right, and of no use to anybody without the client secret (SPEC O4, S4)."""

from __future__ import annotations

import asyncio
import html
import re
import shutil
from collections.abc import AsyncIterator, Mapping

import aiohttp
import msgspec
import pytest
from playwright.async_api import Page, Route, async_playwright

from fairdrop.payments import IntentStatus, SandboxGateway
from tests.integration.payments.running_gateway import (
    DECLINED,
    Buyer,
    RunningGateway,
    a_request,
    all_charges,
    an_intent,
    new_reference,
)


@pytest.fixture
def address(gateway: RunningGateway) -> str:
    return gateway.base_url


async def get(session: aiohttp.ClientSession, url: str) -> tuple[int, str, Mapping[str, str]]:
    async with session.get(url) as answer:
        return answer.status, await answer.text(), answer.headers


@pytest.mark.parametrize(
    ("amount_minor", "currency", "shown"),
    [(1_995, "EUR", "19.95 EUR"), (80, "JPY", "80 JPY"), (1_500, "KWD", "1.500 KWD")],
)
async def test_it_shows_the_amount_in_the_currencys_own_decimals(
    adapter: SandboxGateway,
    session: aiohttp.ClientSession,
    amount_minor: int,
    currency: str,
    shown: str,
) -> None:
    intent = await adapter.create(a_request(new_reference(), amount_minor, currency))
    status, page, _ = await get(session, intent.pay_url)
    assert status == 200
    assert f"<h1>Pay {shown}</h1>" in page
    assert f">Pay {shown}</button>" in page
    assert "This is a sandbox: no real money" in page


async def test_the_page_holds_no_secret_and_allows_nothing_foreign(
    adapter: SandboxGateway, session: aiohttp.ClientSession
) -> None:
    intent = await an_intent(adapter)
    _, page, headers = await get(session, intent.pay_url)
    assert intent.client_secret not in page
    assert "?" not in intent.pay_url
    policy = headers["Content-Security-Policy"]
    for rule in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"):
        assert rule in policy
    assert "unsafe" not in policy
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert not re.search(r"<script(?![^>]*\ssrc=)|\son\w+=|\sstyle=", page)


async def test_the_files_of_the_page_are_served(
    address: str, session: aiohttp.ClientSession
) -> None:
    for name, media_type in (("payment.js", "text/javascript"), ("payment.css", "text/css")):
        status, _, headers = await get(session, f"{address}/pay/assets/{name}")
        assert status == 200
        assert headers["Content-Type"].startswith(media_type)
        assert headers["X-Content-Type-Options"] == "nosniff"
    status, _, _ = await get(session, f"{address}/pay/assets/payment.html")
    assert status == 404


async def test_what_a_shop_names_cannot_become_markup(
    adapter: SandboxGateway, session: aiohttp.ClientSession
) -> None:
    request = msgspec.structs.replace(
        a_request(new_reference()),
        reference='"><script>alert(1)</script>$title',
        return_url="https://shop.example/?a=1&b='\"><script>",
    )
    _, page, _ = await get(session, (await adapter.create(request)).pay_url)
    assert page.count("<script") == 1
    assert html.escape(request.reference) in page
    assert f'href="{html.escape(str(request.return_url))}"' in page


async def test_it_says_when_there_is_nothing_to_pay(
    adapter: SandboxGateway, buyer: Buyer, session: aiohttp.ClientSession, address: str
) -> None:
    paid, cancelled = await an_intent(adapter), await an_intent(adapter)
    await buyer.pay(paid)
    await adapter.cancel(cancelled.id)
    for intent, says in ((paid, "This is paid"), (cancelled, "has cancelled this payment")):
        status, page, _ = await get(session, intent.pay_url)
        assert status == 200
        assert says in page
        assert "<form" not in page
    status, page, _ = await get(session, f"{address}/pay/pi_unknown")
    assert status == 404
    assert "No such payment" in page


@pytest.fixture
async def browser_page() -> AsyncIterator[Page]:
    """A page of Debian's Chromium, the size of a phone; errors on its console fail the test."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no Chromium is installed")
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = await browser.new_page(viewport={"width": 360, "height": 740})
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda said: errors.extend([said.text] * (said.type == "error")))
        yield page
        await browser.close()
        assert errors == []


async def test_a_buyer_is_declined_then_pays_once_with_a_double_click_and_is_sent_back(
    adapter: SandboxGateway, gateway: RunningGateway, browser_page: Page
) -> None:
    page = browser_page
    # Any page will do for the shop's; this one has an icon, for which browsers ask every site.
    bystander = await an_intent(adapter)
    await adapter.cancel(bystander.id)
    shop = f"{gateway.base_url}/pay/{bystander.id}"
    request = msgspec.structs.replace(a_request(new_reference(), 1_995), return_url=shop)
    intent = await adapter.create(request)
    asked: list[str] = []
    page.on("request", lambda sent: asked.append(sent.url))

    await page.goto(intent.pay_url)
    width = await page.evaluate("document.documentElement.scrollWidth")
    assert width <= 360  # nothing sticks out on a phone
    await page.get_by_role("radio", name="Declined 4000 0000 0000 0002").check()
    await page.get_by_role("button", name="Pay 19.95 EUR").click()
    await page.get_by_text("The card was declined").wait_for()
    await page.get_by_role("radio", name="4242 4242 4242 4242").check()
    answer_may_come = asyncio.Event()

    async def hold_back(route: Route) -> None:
        await answer_may_come.wait()
        await route.continue_()

    await page.route("**/pay", hold_back)
    await page.get_by_role("button", name="Pay 19.95 EUR").dblclick()
    assert await page.get_by_role("button").is_disabled()
    await page.evaluate("document.getElementById('form').requestSubmit()")  # or Enter, meanwhile
    answer_may_come.set()
    await page.wait_for_url(shop)

    assert await all_charges(adapter, intent.id) == [1_995]
    assert (await adapter.fetch(intent.id)).last_decline == "card_declined"
    assert sum(url.endswith("/pay") for url in asked) == 2
    with_secret = [url for url in asked if intent.client_secret in url.partition("#")[0]]
    assert with_secret == []


async def test_a_buyer_waits_for_a_slow_bank(adapter: SandboxGateway, browser_page: Page) -> None:
    page = browser_page
    request = msgspec.structs.replace(a_request(new_reference()), return_url=None)
    intent = await adapter.create(request)
    await page.goto(intent.pay_url)
    await page.get_by_role("radio", name="Slow: succeeds").check()
    await page.keyboard.press("Enter")
    await page.get_by_text("Your bank is thinking").wait_for()
    await page.reload()  # what is under way goes on
    await page.get_by_text("Paid. You can close this page.").wait_for()
    assert (await adapter.fetch(intent.id)).status is IntentStatus.SUCCEEDED


async def test_an_address_without_its_secret_pays_nothing(
    adapter: SandboxGateway, browser_page: Page
) -> None:
    page = browser_page
    intent = await an_intent(adapter)
    await page.goto(intent.pay_url.partition("#")[0])
    await page.get_by_text("This address is not complete").wait_for()
    assert await page.get_by_role("button").is_disabled()
    assert (await adapter.fetch(intent.id)).status is IntentStatus.REQUIRES_PAYMENT


async def test_two_tabs_pay_once(adapter: SandboxGateway, buyer: Buyer, browser_page: Page) -> None:
    page = browser_page
    request = msgspec.structs.replace(a_request(new_reference()), return_url=None)
    intent = await adapter.create(request)
    await buyer.pay(intent, DECLINED)
    await page.goto(intent.pay_url)
    await buyer.pay(intent)  # the other tab is quicker
    await page.get_by_role("button").click()
    await page.get_by_text("Paid. You can close this page.").wait_for()
    assert await all_charges(adapter, intent.id) == [2_500]
