"""Chromium, as a person would sit before it: a page for each test, which must not break our policy."""

import shutil
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE_MS = 30_000
"""How long a test waits for something to appear: the machine may be busy with other tests."""


def find_chromium() -> str:
    """The browser's path. Skips the test where there is none."""
    for name in NAMES:
        path = shutil.which(name)
        if path:
            return path
    pytest.skip(f"no Chromium on the path ({', '.join(NAMES)}): nothing can be clicked")


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    path = find_chromium()
    async with async_playwright() as playwright:
        # Root has no sandbox; small containers have little shared memory.
        browser = await playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        await browser.close()


@pytest.fixture
async def page(browser: Browser) -> AsyncIterator[Page]:
    """A phone's page. The test fails when a script of ours does, or breaks our own policy."""
    context = await browser.new_context(
        viewport={"width": 390, "height": 844}, locale="en-GB", timezone_id="Asia/Tokyo"
    )
    context.set_default_timeout(PATIENCE_MS)
    page = await context.new_page()
    broken: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text or "Trusted" in message.text:
            broken.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: broken.append(str(error)))
    yield page
    await context.close()
    assert broken == []
