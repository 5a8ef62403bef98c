"""A CAPTCHA before joining, on our page and on a shop's (W18). The provider is a server of the test.

It plays Turnstile's part: a script that makes a widget in a frame of its own, whose button gives a
token, and the address that says whether a token is good.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Iterator
from itertools import count
from urllib.parse import parse_qs

import pytest
import uvicorn
from playwright.async_api import Page, expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from fairdrop.embedded import free_port
from tests.browser.chromium import PATIENCE_MS
from tests.browser.test_shop_page import example, shop_at
from tests.running_site import RunningSite, site_up

pytestmark = pytest.mark.xdist_group("system")
expect.set_options(timeout=PATIENCE_MS)

SCRIPT = """
const own = new URL(document.currentScript.src);
window.turnstile = {
  render(element, { sitekey, callback }) {
    element.innerHTML = `<iframe title="Check" src="${own.origin}/frame?sitekey=${sitekey}"></iframe>`;
    addEventListener("message", ({ data, origin }) => origin === own.origin && callback(data));
  },
};
window[own.searchParams.get("onload")]();
"""
FRAME = """<!doctype html><button>I am a person</button><script>
document.querySelector("button").onclick = async () =>
  parent.postMessage(await (await fetch("/token", { method: "POST" })).text(), "*");
</script>"""


class Provider:
    """Gives out tokens, of which the ``refused`` next ones will not count; a good one counts once."""

    def __init__(self) -> None:
        self.url = f"http://localhost:{free_port()}"
        self.refused = 0
        self._numbers = count(1)
        self._good: set[str] = set()
        self.app = Starlette(
            routes=[
                Route("/api.js", lambda _: Response(SCRIPT, media_type="text/javascript")),
                Route("/frame", lambda _: HTMLResponse(FRAME)),
                Route("/token", self._token, methods=["POST"]),
                Route("/siteverify", self._verify, methods=["POST"]),
            ]
        )

    def token(self) -> str:
        token = f"token-{next(self._numbers)}"
        if self.refused > 0:
            self.refused -= 1
        else:
            self._good.add(token)
        return token

    async def _token(self, _request: Request) -> Response:
        return Response(self.token(), media_type="text/plain")

    async def _verify(self, request: Request) -> Response:
        fields = parse_qs((await request.body()).decode())
        assert fields["secret"] == ["the-secret"]
        (token,) = fields["response"]
        if token in self._good:
            self._good.discard(token)
            return JSONResponse({"success": True, "error-codes": []})
        return JSONResponse({"success": False, "error-codes": ["invalid-input-response"]})


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    made = Provider()
    port = int(made.url.rpartition(":")[2])
    server = uvicorn.Server(
        uvicorn.Config(made.app, host="127.0.0.1", port=port, log_level="error", lifespan="off")
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server has ended"
        time.sleep(0.01)
    yield made
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def site(provider: Provider) -> Iterator[RunningSite]:
    """Joining takes a CAPTCHA and a proof of work: both count once, so both have to come at once."""
    with site_up(
        FAIRDROP_CAPTCHA="always",
        FAIRDROP_CAPTCHA_SITE_KEY="the-site",
        FAIRDROP_CAPTCHA_SECRET="the-secret",
        FAIRDROP_CAPTCHA_URL=f"{provider.url}/siteverify",
        FAIRDROP_CAPTCHA_SCRIPT_URL=f"{provider.url}/api.js",
        FAIRDROP_PROOF_OF_WORK="always",
        FAIRDROP_PROOF_MAX_NUMBER="2000",
    ) as running:
        yield running


async def open_sale(page: Page, site: RunningSite, slug: str) -> None:
    await asyncio.to_thread(site.create_sale, slug)
    await page.goto(f"{site.url}/s/{slug}")
    await page.get_by_role("button", name="Join").click()


async def test_a_person_does_what_the_widget_asks_and_is_in_the_line(
    site: RunningSite, page: Page, provider: Provider
) -> None:
    """A token that is refused is told, and the widget comes again."""
    provider.refused = 1
    await open_sale(page, site, "people")
    step = page.get_by_role("region", name="One more step")
    await expect(step.get_by_role("heading")).to_be_focused()
    person = step.frame_locator("iframe").get_by_role("button", name="I am a person")
    await person.click()
    await expect(step).to_contain_text("That was not accepted")
    await expect(page.locator("#announcer")).to_contain_text("That was not accepted")
    await person.click()
    await expect(page.locator("#panel")).to_have_attribute(
        "data-state", re.compile("waiting|ready")
    )
    await expect(step).to_have_count(0)


async def test_whoever_gives_up_is_told_that_they_have_not_joined(
    site: RunningSite, page: Page
) -> None:
    await open_sale(page, site, "given-up")
    step = page.get_by_role("region", name="One more step")
    await expect(step.frame_locator("iframe").get_by_role("button")).to_be_visible()
    await step.get_by_role("button", name="Cancel").click()
    await expect(page.locator("#note")).to_contain_text("You have not joined")
    await expect(page.get_by_role("button", name="Join")).to_be_enabled()


async def test_a_provider_that_is_out_of_reach_is_named(
    site: RunningSite, page: Page, provider: Provider
) -> None:
    """Many people block such scripts; they have to know what to allow."""
    await page.route(f"{provider.url}/**", lambda route: route.abort())
    await open_sale(page, site, "blocked")
    await expect(page.get_by_role("region", name="One more step")).to_contain_text(
        "could not be loaded from localhost:"
    )
    await expect(page.locator("#note")).to_contain_text("You have not joined")


async def test_a_page_of_a_shop_is_asked_for_the_token(
    site: RunningSite, page: Page, provider: Provider
) -> None:
    """fairdrop.js calls back with the problem, again after a refusal, and solves the proof itself."""
    await asyncio.to_thread(site.create_sale, "shops-own")
    provider.refused = 1
    tokens = [provider.token(), provider.token()]
    await page.expose_function("nextToken", lambda: tokens.pop(0))
    callback = (
        ", captcha: (problem) => { (window.asked ??= []).push(problem);"
        " return window.nextToken(); } "
    )
    async with shop_at(site.shop_origin, example(site, "shops-own", callback)) as address:
        await page.goto(address)
        await page.get_by_role("button", name="Join").click()
        await expect(page.locator("#place")).to_have_text("ADMITTED")
        asked = await page.evaluate("window.asked")
    assert [each["reason"] for each in asked] == ["missing", "failed"]
    assert {(each["provider"], each["site_key"]) for each in asked} == {("turnstile", "the-site")}
    assert asked[0]["script"] == f"{provider.url}/api.js"
