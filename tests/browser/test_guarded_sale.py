"""A guarded sale in the browser: the page solves the proof of work; a link is an invitation (W18, W19)."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.browser.chromium import PATIENCE_MS
from tests.running_site import site_up

pytestmark = pytest.mark.xdist_group("system")
expect.set_options(timeout=PATIENCE_MS)


async def test_a_person_joins_with_an_invitation_and_never_hears_of_the_proof(page: Page) -> None:
    with site_up(FAIRDROP_PROOF_OF_WORK="always", FAIRDROP_PROOF_MAX_NUMBER="20000") as site:
        site.create_sale("members", rate_per_s=50)
        site.admin("PUT", "/sales/members/access", {"entry": "invited"})
        codes = {"kind": "code", "values": ["MEMB-ERS2-CODE"], "tier": "invited"}
        site.admin("POST", "/sales/members/invites", codes)

        await page.goto(f"{site.url}/s/members")
        await page.get_by_role("button", name="Join").click()
        refusal = page.locator("#note")
        await expect(refusal).to_contain_text("for invited people")

        asked: list[bool] = []
        page.on(
            "request",
            lambda request: (
                asked.append("fairdrop-proof" in request.headers)
                if request.url.endswith("/join")
                else None
            ),
        )
        await page.goto(f"{site.url}/s/members?invite=memb-ers2-code")
        await page.get_by_role("button", name="Join").click()
        await page.get_by_role("button", name="Enter now").click()
        await expect(page.get_by_role("button", name="Reserve")).to_be_visible()
        # Refused once, solved, and let in.
        assert asked == [False, True]
