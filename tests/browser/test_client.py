"""fairdrop.js in Chromium, against a whole running Fairdrop: a place survives what browsers do (W6).

The page is the sale's own, which uses the module; states are read off its panel.
"""

from __future__ import annotations

import re
import secrets
from pathlib import Path
from typing import Any

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


def standing_sale(site: RunningSite, **fields: Any) -> str:
    """A sale whose line does not move: nobody is let in."""
    slug = f"client-{secrets.token_hex(4)}"
    site.create_sale(slug, **{"rate_per_s": 1, "cap": 0, **fields})
    return slug


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
    slug = standing_sale(running_site)
    await page.goto(f"{running_site.url}/s/{slug}")
    await page.evaluate(CLIENT, ["line", slug])
    members = await page.evaluate("Object.keys(window.clients.line).sort()")
    types = (STATIC / "fairdrop.d.ts").read_text()
    declared = types.partition("export interface Line {")[2].partition("\n}")[0]
    assert members == sorted(re.findall(r"^  (?:readonly )?(\w+)[:(]", declared, re.MULTILINE))


async def test_a_reload_keeps_the_place(running_site: RunningSite, page: Page) -> None:
    """W1."""
    slug = standing_sale(running_site)
    await join(page, running_site, slug)
    before = await position(page)
    await page.reload()
    await expect(panel(page)).to_have_attribute("data-state", "waiting")
    assert await position(page) == before


async def test_it_listens_to_the_push_process_and_hears_its_turn(
    running_site: RunningSite, page: Page
) -> None:
    """W7: no request is needed to learn of the turn."""
    slug = standing_sale(running_site)
    await join(page, running_site, slug)
    await page.evaluate(CLIENT, ["line", slug])
    await page.wait_for_function("window.clients.line.pushed")
    sale = await page.evaluate("window.clients.line.sale")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    running_site.admin("PATCH", f"/sales/{sale['id']}", {"cap": 10, "rate_per_s": 50})
    await page.wait_for_function("window.clients.line.state === 'READY'")
    await expect(panel(page)).to_have_attribute("data-state", "ready")
    assert not [url for url in asked if url.endswith("/me")]


async def test_offline_and_back_keeps_the_place_and_goes_on(
    running_site: RunningSite, page: Page
) -> None:
    slug = standing_sale(running_site)
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
    slug = standing_sale(running_site)
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


async def test_a_line_begun_anew_forgets_the_place_and_a_kept_one_never_counts(
    running_site: RunningSite, page: Page
) -> None:
    """Case 3: what this browser kept from another epoch is no place."""
    slug = standing_sale(running_site)
    await join(page, running_site, slug)
    await page.evaluate(
        """(slug) => {
          const shelf = `fairdrop.line.${slug}`;
          const kept = JSON.parse(localStorage.getItem(shelf));
          localStorage.setItem(shelf, JSON.stringify({ ...kept, epoch: kept.epoch + 7, receipt: undefined }));
        }""",
        slug,
    )
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.reload()
    await expect(panel(page)).to_have_attribute("data-state", "join")
    assert not [url for url in asked if url.endswith("/restore")]


async def test_a_receipt_is_presented_when_the_line_is_of_another_epoch(
    running_site: RunningSite, page: Page
) -> None:
    """W15: the server decides what it proves; here the place is there, and is told again."""
    slug = standing_sale(running_site)
    await join(page, running_site, slug)
    before = await position(page)
    await page.evaluate(
        """(slug) => {
          const shelf = `fairdrop.line.${slug}`;
          const kept = JSON.parse(localStorage.getItem(shelf));
          localStorage.setItem(shelf, JSON.stringify({ ...kept, epoch: kept.epoch + 7 }));
        }""",
        slug,
    )
    async with page.expect_request(re.compile("/restore$")):
        await page.reload()
    await expect(panel(page)).to_have_attribute("data-state", "waiting")
    assert await position(page) == before


async def test_a_hidden_tab_asks_less_often(running_site: RunningSite, page: Page) -> None:
    """W6; the pace itself is tested in test_scripts.py. A hidden tab opens no stream either."""
    slug = standing_sale(running_site)
    await page.add_init_script(
        "Object.defineProperty(document, 'hidden', { get: () => window.isHidden ?? true })"
    )
    await page.goto(f"{running_site.url}/s/{slug}")
    await expect(panel(page)).to_have_attribute("data-state", "join")
    await page.evaluate(CLIENT, ["line", slug])
    await page.wait_for_function("window.clients.line.sale !== null")
    assert not await page.evaluate("window.clients.line.pushed")
    await page.evaluate(
        "window.isHidden = false; document.dispatchEvent(new Event('visibilitychange'))"
    )
    await page.wait_for_function("window.clients.line.pushed")


@pytest.mark.parametrize("kind", ["socket", "stream"])
async def test_without_one_form_of_stream_it_takes_the_other_and_without_both_it_asks(
    running_site: RunningSite, page: Page, kind: str
) -> None:
    slug = standing_sale(running_site)
    broken = {"socket": "WebSocket", "stream": "EventSource"}[kind]
    await page.add_init_script(
        f"window.{broken} = class extends EventTarget {{ constructor() {{ super();"
        " setTimeout(() => this.dispatchEvent(new Event('error'))); } close() {} };"
    )
    await join(page, running_site, slug)
    await page.evaluate(CLIENT, ["line", slug])
    await page.wait_for_function(
        "window.clients.line.pushed && window.clients.line.state === 'WAITING'"
    )


async def test_a_shop_of_another_origin_uses_it_without_cookies(
    running_site: RunningSite, page: Page
) -> None:
    """W20: the visitor token is kept by the shop's page, streams are opened with a ticket."""
    slug = standing_sale(running_site)
    shop = running_site.shop_origin

    async def answer(route: Any) -> None:
        await route.fulfill(status=200, content_type="text/html", body="<!doctype html><p>Shop")

    await page.route(f"{shop}/**", answer)
    await page.goto(f"{shop}/drop")
    await page.evaluate(
        """async ([base, slug]) => {
          const { watchLine } = await import(`${base}/fairdrop.js`);
          window.line = watchLine({ base, sale: slug }).start();
          await window.line.join();
        }""",
        [running_site.url, slug],
    )
    await page.wait_for_function("window.line.state === 'WAITING' && window.line.pushed")
    number = await page.evaluate("window.line.place.position")
    assert not [each for each in await page.context.cookies() if "visitor" in each["name"]]
    await page.reload()
    await page.evaluate(
        """async ([base, slug]) => {
          const { watchLine } = await import(`${base}/fairdrop.js`);
          window.line = watchLine({ base, sale: slug }).start();
        }""",
        [running_site.url, slug],
    )
    await page.wait_for_function("window.line.state === 'WAITING'")
    assert await page.evaluate("window.line.place.position") == number
