"""The draw in the browser: a buyer's way through the lobby, and the page that believes nothing (W3, W4)."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from fairdrop.draw import verify, verify_entry
from fairdrop.waiting_room import EntryReceipt, PositionReceipt, Receipts
from tests.browser.chromium import PATIENCE_MS
from tests.browser.test_scripts import call
from tests.running_site import RunningSite
from tests.unit.cli.command import run
from tests.unit.draw.made_draws import SALE, TAMPERINGS, packed, proof_of, right, short_cases

expect.set_options(timeout=PATIENCE_MS)
VECTORS = json.loads(
    (Path(__file__).parents[1] / "vectors" / "draw-v1.json").read_text(encoding="utf-8")
)["draws"]


@pytest.fixture
async def scripts(running_site: RunningSite, page: Page) -> Page:
    """A page of the running site: Web Crypto is there only for secure addresses, like this one."""
    await page.goto(f"{running_site.url}/console")
    return page


async def test_the_frozen_vectors_hold_in_the_browser(scripts: Page) -> None:
    for vector in VECTORS:
        root = await call(scripts, "lottery", "merkleRoot", vector["entries"])
        key = await call(
            scripts, "lottery", "drawKey", vector["seed"], vector["sale"], root, vector["beacon"]
        )
        assert (root, key) == (vector["root"], vector["key"])
        assert await call(scripts, "lottery", "commitment", vector["seed"]) == vector["commitment"]
        drawn = await call(scripts, "lottery", "numbers", key, vector["entries"])
        assert drawn == vector["numbers"]


async def judged(page: Page, files: Any, receipt: str | None = None) -> Any:
    texts = packed(files)
    given = {
        "parameters": texts.parameters.decode(),
        "entries": texts.entries.decode(),
        "order": (texts.order or b"").decode(),
    }
    return await call(page, "verify", "verify", given, receipt)


async def test_the_browser_finds_what_the_command_finds_in_the_same_words(scripts: Page) -> None:
    for _, tamper in TAMPERINGS.values():
        files = right()
        tamper(files)
        expected = [
            {"fault": finding.fault.value, "message": finding.message}
            for finding in verify(packed(files)).findings
        ]
        assert (await judged(scripts, files))["findings"] == expected


async def test_the_browser_reads_receipts_as_the_command_does(scripts: Page) -> None:
    files = right()
    entry = files["entries"][4]
    good = proof_of(files, entry)
    head, body, signature = good.split(".")
    seal = Receipts(b"s" * 32)
    receipts = [
        good,
        f"{head}.{body}.{('A' if signature[0] != 'A' else 'B') + signature[1:]}",
        proof_of(files, "x" * 22),
        proof_of(files, entry, sale="another"),
        proof_of(files, entry, commitment="ab" * 32),
        seal.issue(EntryReceipt(SALE, "v" * 300, 70_000, entry)),
        seal.issue(EntryReceipt("another", "v", 1, entry)),
        seal.issue(PositionReceipt(SALE, "v", 300, 2**40)),
        "fdr1.hello",
        "hello",
    ]
    for receipt in receipts:
        ours, theirs = verify(packed(files), receipt), await judged(scripts, files, receipt)
        assert [finding.message for finding in ours.findings] == [
            finding["message"] for finding in theirs["findings"]
        ]
        assert (ours.place, ours.number) == (theirs["place"], theirs["number"])


async def test_the_browser_judges_short_proofs_as_the_command_does(scripts: Page) -> None:
    for _, parameters, proof, receipt in short_cases():
        ours = verify_entry(parameters, proof, receipt)
        theirs = await scripts.evaluate(
            """async ([parameters, proof, receipt]) => {
              const script = document.querySelector('script[type="module"]').src;
              const { verifyEntry } = await import(new URL("verify.js", script).href);
              return verifyEntry(parameters, receipt, async () => proof);
            }""",
            [parameters.decode(), None if proof is None else proof.decode(), receipt],
        )
        if parameters == b"{}":  # Each tells in its own words what is no JSON of ours.
            assert theirs["findings"][0]["fault"] == ours.findings[0].fault.value
            continue
        assert [finding.message for finding in ours.findings] == [
            finding["message"] for finding in theirs["findings"]
        ]
        assert (ours.entry, ours.number, ours.entries) == (
            theirs["entry"],
            theirs["number"],
            theirs["entries"],
        )


async def test_a_buyer_waits_in_the_lobby_and_checks_the_draw(
    running_site: RunningSite, page: Page, tmp_path: Path
) -> None:
    """On a phone: join before the opening, be drawn, see the own place computed by the browser."""
    opens_at = (datetime.now(UTC) + timedelta(seconds=6)).isoformat()
    sale = running_site.create_sale("lobby-drop", opens_at=opens_at, rate_per_s=50)
    await page.goto(f"{running_site.url}/s/lobby-drop")
    await page.get_by_role("button", name="Join").click()
    await expect(page.get_by_role("heading", name="You are in the lobby")).to_be_visible()
    await expect(page.get_by_text("1 person is here.")).to_be_visible()
    await expect(page.get_by_role("button", name="Enter now")).to_be_visible()

    await page.get_by_role("link", name="How the order is drawn").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("The draw of Midnight Drop")
    await expect(page.get_by_text(sale["commitment"])).to_be_visible()
    await page.get_by_role("button", name="Check the draw").click()
    result = page.locator("#result")
    await expect(result).to_contain_text("The draw is right.")
    await expect(result).to_contain_text("is your place")
    async with page.expect_download() as waiting:
        await page.get_by_role("button", name="Get a signed receipt").click()
    receipt = json.loads(Path(await (await waiting.value).path()).read_text(encoding="utf-8"))
    await page.get_by_label("Your receipt").fill(receipt["proof"])
    await page.get_by_role("button", name="Check the draw").click()
    await expect(result).to_contain_text(f"Your entry {receipt['entry']}")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.rpartition("/draw/")[2]))
    await page.get_by_role("button", name="Check only my entry").click()
    await expect(result).to_contain_text("Your entry is in the list of 1 that was drawn from")
    assert asked == ["draw.json", f"entries/{receipt['entry']}"]
    kept = tmp_path / "receipt.json"
    kept.write_text(json.dumps(receipt), encoding="utf-8")
    address = f"{running_site.url}/v1/sales/lobby-drop/draw"
    short = await asyncio.to_thread(run, "verify-draw", address, "--receipt", str(kept), "--short")
    assert (short.status, "is in the list of 1 that was" in short.output) == (0, True)
    width = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert await page.evaluate(width) == 0

    async def tampered(route: Route) -> None:
        answer = await route.fetch()
        body = (await answer.json()) | {"seed": "00" * 32}
        await route.fulfill(response=answer, json=body)

    await page.route("**/draw/draw.json", tampered)
    await page.get_by_role("button", name="Check the draw").click()
    await expect(result).to_contain_text("the seed was changed")
    await page.unroute_all(behavior="wait")
