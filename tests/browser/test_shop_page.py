"""fairdrop.js in the page of a shop on another origin: the example of docs/client.md, run (W7, W20)."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Page, expect
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from fairdrop.embedded import free_port
from tests.browser.chromium import PATIENCE_MS
from tests.browser.serving import served
from tests.browser.test_client import standing_sale, until
from tests.running_site import RunningSite

pytestmark = pytest.mark.xdist_group("system")
expect.set_options(timeout=PATIENCE_MS)

DOCS = Path(__file__).parents[2] / "docs/client.md"


def example(site: RunningSite, slug: str, more: str = "") -> str:
    """The page that the documentation shows, for this sale; it keeps its line and its token."""
    found = re.search(r"```html\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    assert found is not None
    html = found[1].replace("onChange: show }", f"onChange: show {more}}}")
    html = html.replace("https://drop.example.org", site.url).replace("midnight-drop", slug)
    kept = "const enterCheckout = (token) => { window.token = token; };\n  window.line = line;\n"
    return f"<!doctype html><title>Shop</title>{html.replace('</script>', kept + '</script>')}"


@asynccontextmanager
async def shop_at(origin: str, html: str) -> AsyncIterator[str]:
    """A shop of one page on this origin."""

    async def page(_request: object) -> HTMLResponse:
        return HTMLResponse(html)

    async with served(Starlette(routes=[Route("/", page)]), origin):
        yield f"{origin}/"


async def test_a_page_of_another_origin_joins_hears_its_turn_and_claims(
    running_site: RunningSite, page: Page
) -> None:
    """No cookie of Fairdrop's is sent or kept: a token names the visitor, a ticket the listener."""
    slug = await standing_sale(running_site)
    async with shop_at(running_site.shop_origin, example(running_site, slug)) as address:
        await page.goto(address)
        await page.get_by_role("button", name="Join").click()
        place = page.locator("#place")
        await expect(place).to_have_text(re.compile("^[01] ahead of you$"))
        await until(page, "window.line.pushed")
        kept = await page.evaluate("Object.values(localStorage).map(JSON.parse)[0]")
        assert kept["token"].startswith("fdv1.")
        assert await page.context.cookies(running_site.url) == []
        position = await page.evaluate("window.line.place.position")
        await page.reload()
        await expect(place).to_have_text(re.compile("^[01] ahead of you$"))
        assert await page.evaluate("window.line.place.position") == position
        sale = await page.evaluate("window.line.sale.id")
        await asyncio.to_thread(running_site.admin, "PATCH", f"/sales/{sale}", {"cap": 10})
        await expect(place).to_have_text("ADMITTED")
        token = await page.evaluate("window.token")
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert sale in claims.values()


async def test_a_page_of_an_origin_that_is_not_listed_gets_nothing(
    running_site: RunningSite, page: Page
) -> None:
    """The near miss: the same page on another port. Its join never reaches the line."""
    slug = f"stranger-{secrets.token_hex(4)}"
    sale = await asyncio.to_thread(running_site.create_sale, slug)
    async with shop_at(f"http://localhost:{free_port()}", example(running_site, slug)) as address:
        await page.goto(address)
        await page.get_by_role("button", name="Join").click()
        await until(page, "window.line.trouble?.status === 0")
        assert await page.evaluate("[window.line.state, window.line.sale]") == ["NOT_ENTERED", None]
        answer = await page.request.get(f"{running_site.url}/v1/sales/{slug}")
        public = await answer.json()
        assert (public["waiting"], public["tail"]) == (0, 0)
        told = await page.evaluate(
            """(address) => new Promise((resolve) => {
              const socket = new WebSocket(address);
              for (const type of ["open", "error"]) socket.addEventListener(type, () => resolve(type));
            })""",
            f"{public['push_url'].replace('http', 'ws', 1)}/v1/sales/{sale['id']}/socket",
        )
        assert told == "error"
