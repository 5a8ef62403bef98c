"""fairdrop.js in Chromium, against a whole running Fairdrop: a place survives what browsers do (W6).

The page is the sale's own, which uses the module; states are read off its panel.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from playwright.async_api import Page, expect

import fairdrop
from tests.browser.chromium import PATIENCE_MS
from tests.running_site import RunningSite

expect.set_options(timeout=PATIENCE_MS)

STATIC = Path(fairdrop.__file__).parent / "web/static"
CLIENT = """async ([name, slug]) => {
  const { watchLine } = await import("/fairdrop.js");
  const line = watchLine({ sale: slug, onChange: () => {} }).start();
  window.clients = { ...window.clients, [name]: line };
}"""


def broken(kind: str) -> str:
    """A script in which every stream of this kind fails."""
    return (
        f"window.{kind} = class extends EventTarget {{ constructor() {{ super();"
        " setTimeout(() => this.dispatchEvent(new Event('error'))); } close() {} };"
    )


async def standing_sale(site: RunningSite, **fields: Any) -> str:
    """A sale whose line does not move: one person may be inside, and one is invited."""
    slug = f"client-{secrets.token_hex(4)}"
    site.create_sale(slug, **{"cap": 1, "claim_ttl_ms": 300_000, **fields})
    jar = aiohttp.CookieJar(unsafe=True)  # Unsafe: of an address instead of a name.
    async with aiohttp.ClientSession(f"{site.url}/v1/sales/{slug}/", cookie_jar=jar) as first:
        async with asyncio.timeout(PATIENCE_MS / 1_000):
            state = ""
            while state != "READY":
                async with first.post("join") as answer:
                    state = (await answer.json()).get("state", "")
                await asyncio.sleep(0.05)
    return slug


async def until(page: Page, expression: str) -> None:
    """Wait until the page says so; our policy forbids Playwright's own way, which needs eval."""
    async with asyncio.timeout(PATIENCE_MS / 1_000):
        while not await page.evaluate(expression):
            await asyncio.sleep(0.05)


async def join(page: Page, site: RunningSite, slug: str) -> None:
    await page.goto(f"{site.url}/s/{slug}")
    await page.get_by_role("button", name=re.compile("^Join")).click()
    await expect(panel(page)).to_have_attribute("data-state", "waiting")


def panel(page: Page) -> Any:
    return page.locator("#panel")


async def position(page: Page) -> str:
    text = await page.get_by_text(re.compile("Your number is")).text_content()
    found = re.search(r"Your number is (\d+)", text or "")
    assert found, text
    return found[1]


def test_the_module_is_small_and_stands_alone() -> None:
    """A shop drops one file in: no build, nothing to import but the proof of work, when asked for."""
    source = (STATIC / "fairdrop.js").read_text()
    assert len(source.encode()) < 12_000
    assert not re.findall(r"^import\b", source, re.MULTILINE)


def test_the_types_name_exactly_what_the_module_exports() -> None:
    def exported(name: str, words: str) -> set[str]:
        source = (STATIC / name).read_text()
        return set(re.findall(rf"^export (?:async )?(?:{words}) (\w+)", source, re.MULTILINE))

    assert exported("fairdrop.d.ts", "function|const") == exported(
        "fairdrop.js", "function|const|class"
    )


async def test_the_line_object_has_what_its_type_promises(
    running_site: RunningSite, page: Page
) -> None:
    slug = await standing_sale(running_site)
    await page.goto(f"{running_site.url}/s/{slug}")
    await page.evaluate(CLIENT, ["line", slug])
    members = await page.evaluate("Object.keys(window.clients.line).sort()")
    types = (STATIC / "fairdrop.d.ts").read_text()
    declared = types.partition("export interface Line {")[2].partition("\n}")[0]
    assert members == sorted(re.findall(r"^  (?:readonly )?(\w+)[:(]", declared, re.MULTILINE))


async def test_a_reload_keeps_the_place(running_site: RunningSite, page: Page) -> None:
    """W1."""
    slug = await standing_sale(running_site)
    await join(page, running_site, slug)
    before = await position(page)
    await page.reload()
    await expect(panel(page)).to_have_attribute("data-state", "waiting")
    assert await position(page) == before


async def test_it_listens_to_the_push_process_and_hears_its_turn(
    running_site: RunningSite, page: Page
) -> None:
    """W7."""
    slug = await standing_sale(running_site)
    await join(page, running_site, slug)
    await page.evaluate(CLIENT, ["line", slug])
    await until(page, "window.clients.line.pushed")
    sale = await page.evaluate("window.clients.line.sale")
    running_site.admin("PATCH", f"/sales/{sale['id']}", {"cap": 10})
    await until(page, "window.clients.line.state === 'READY'")
    await expect(panel(page)).to_have_attribute("data-state", "ready")
    assert await page.evaluate("window.clients.line.pushed")


async def test_offline_and_back_keeps_the_place_and_goes_on(
    running_site: RunningSite, page: Page
) -> None:
    slug = await standing_sale(running_site)
    await join(page, running_site, slug)
    before = await position(page)
    await page.context.set_offline(True)
    await page.evaluate("dispatchEvent(new Event('online'))")
    await expect(page.locator("#trouble")).to_be_visible()
    await expect(panel(page)).to_have_attribute("data-state", "waiting")
    await page.context.set_offline(False)
    await expect(page.locator("#trouble")).to_be_hidden()
    assert await position(page) == before


async def test_two_tabs_of_one_browser_are_one_visitor_and_know_of_each_other(
    running_site: RunningSite, page: Page
) -> None:
    """W1: also when both join for the first time."""
    slug = await standing_sale(running_site)
    await page.goto(f"{running_site.url}/s/{slug}")
    other = await page.context.new_page()
    await other.goto(f"{running_site.url}/s/{slug}")
    await expect(other.get_by_role("button", name=re.compile("^Join"))).to_be_visible()
    await page.get_by_role("button", name=re.compile("^Join")).click()
    for tab in (page, other):
        await expect(panel(tab)).to_have_attribute("data-state", "waiting")
    assert await position(page) == await position(other)
    await other.get_by_role("button", name="Leave the line").click()
    await other.get_by_role("dialog").get_by_role("button", name="Leave the line").click()
    for tab in (other, page):
        await expect(panel(tab)).to_have_attribute("data-state", "join")
    await other.close()


async def test_a_receipt_is_presented_when_the_line_is_of_another_epoch(
    running_site: RunningSite, page: Page
) -> None:
    """W15: the server decides what it proves; here the place is there, and is told again."""
    slug = await standing_sale(running_site)
    await join(page, running_site, slug)
    before = await position(page)
    # From a page where nothing of ours runs that could keep the place meanwhile.
    await page.goto(f"{running_site.url}/console")
    await page.evaluate(
        """(slug) => {
          const shelf = `fairdrop.line.${slug}`;
          const kept = JSON.parse(localStorage.getItem(shelf));
          localStorage.setItem(shelf, JSON.stringify({ ...kept, epoch: kept.epoch + 7 }));
        }""",
        slug,
    )
    async with page.expect_request(lambda request: request.url.endswith("/restore")):
        await page.goto(f"{running_site.url}/s/{slug}")
    await expect(panel(page)).to_have_attribute("data-state", "waiting")
    assert await position(page) == before


async def test_news_of_a_lost_line_does_not_make_the_page_forget_its_receipt(
    running_site: RunningSite, page: Page
) -> None:
    """W15: that the new line has no such place yet may be told before the receipt was presented."""
    await page.add_init_script(
        "window.WebSocket = window.EventSource = class extends EventTarget {"
        " constructor() { super(); window.socket = this; } close() {} };"
    )
    slug = await standing_sale(running_site)
    await page.goto(f"{running_site.url}/console")
    await page.evaluate(CLIENT, ["line", slug])
    await page.evaluate("window.clients.line.join()")
    await until(page, "window.clients.line.state === 'WAITING' && window.clients.line.pushed")
    before = await page.evaluate("window.clients.line.place.position")
    async with page.expect_request("**/restore", timeout=PATIENCE_MS):
        await page.evaluate(
            """() => {
              const { sale, place } = window.clients.line;
              const epoch = sale.epoch + 1;
              const tell = (type, data) => window.socket.dispatchEvent(
                new MessageEvent("message", { data: JSON.stringify({ type, data }) }));
              tell("sale", { ...sale, epoch });
              tell("place", { ...place, state: "NOT_ENTERED", position: 0, epoch });
            }"""
        )
    await until(page, "window.clients.line.state === 'WAITING'")
    assert await page.evaluate("window.clients.line.place.position") == before


async def test_a_hidden_tab_asks_less_often(running_site: RunningSite, page: Page) -> None:
    """W6; the pace itself is tested in test_scripts.py. A hidden tab opens no stream either."""
    slug = await standing_sale(running_site)
    await page.add_init_script(
        "Object.defineProperty(document, 'hidden', { get: () => window.isHidden ?? true })"
    )
    await page.goto(f"{running_site.url}/s/{slug}")
    await expect(panel(page)).to_have_attribute("data-state", "join")
    await page.evaluate(CLIENT, ["line", slug])
    await until(page, "window.clients.line.sale !== null")
    assert not await page.evaluate("window.clients.line.pushed")
    await page.evaluate(
        "window.isHidden = false; document.dispatchEvent(new Event('visibilitychange'))"
    )
    await until(page, "window.clients.line.pushed")


@pytest.mark.parametrize("kind", ["socket", "stream"])
async def test_without_one_form_of_stream_it_takes_the_other_and_without_both_it_asks(
    running_site: RunningSite, page: Page, kind: str
) -> None:
    slug = await standing_sale(running_site)
    await page.add_init_script(broken({"socket": "WebSocket", "stream": "EventSource"}[kind]))
    await join(page, running_site, slug)
    await page.evaluate(CLIENT, ["line", slug])
    await until(page, "window.clients.line.pushed && window.clients.line.state === 'WAITING'")
