"""One suite for all four doors, against a real site (W12, W13, W14, W20; cases 3, 5, 10, 36, 38)."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from fairdrop.integrations import Door
from tests.integration.integrations.relay import Relay
from tests.integration.integrations.shops import SHOPS, Ask, Buyer, asking
from tests.running_site import RunningSite

pytestmark = pytest.mark.xdist_group("system")

HTML = "text/html,application/xhtml+xml"


_shared: dict[str, str] = {}


def _new_sale(site: RunningSite, **fields: Any) -> str:
    slug = f"door-{uuid.uuid4().hex[:12]}"
    site.create_sale(slug, rate_per_s=1_000, lease_ttl_ms=60_000, **fields)
    return slug


def _shared_sale(site: RunningSite) -> str:
    """Most tests share one sale: each has buyers of its own."""
    if site.url not in _shared:
        _shared[site.url] = _new_sale(site)
    return _shared[site.url]


class Shop:
    """A shop of one kind, in front of the shared sale, or of one of its own (``own``)."""

    def __init__(self, kind: str, site: RunningSite, **door: Any) -> None:
        self.site = site
        own: dict[str, Any] | None = door.pop("own", None)
        self.slug = _shared_sale(site) if own is None else _new_sale(site, **own)
        self.settings: dict[str, Any] = {
            "url": site.url,
            "sale": self.slug,
            "protect": ["/checkout"],
            "api_key": site.shop_key,
            **door,
        }
        self.kind = kind
        self.ask: Ask = asking(kind, SHOPS[kind](**self.settings))
        self.cookie = f"fairdrop_admission_{self.slug}"

    def buyer(self) -> Buyer:
        return Buyer(self.site.url, self.slug)

    async def until_refused(self, token: str, reason: str) -> None:
        """The list of revoked tokens is a second or two old at the most."""
        async with asyncio.timeout(10):
            while True:
                answer = await self.ask("GET", "/checkout", fairdrop_admission=token)
                if answer.status_code != 200:
                    break
                await asyncio.sleep(0.05)
        refused(answer, 403, reason)


def refused(answer: httpx.Response, status: int, code: str) -> Any:
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    document = answer.json()
    assert (answer.status_code, document["code"], document["status"]) == (status, code, status)
    assert answer.headers["cache-control"] == "no-store"
    if status != 503:
        assert answer.headers["fairdrop-reason"] == code
    return document


@pytest.fixture(params=sorted(SHOPS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def shop(kind: str, running_site: RunningSite) -> Shop:
    return Shop(kind, running_site)


async def test_what_is_not_protected_is_for_everybody(shop: Shop) -> None:
    assert (await shop.ask("GET", "/")).status_code == 200


async def test_a_person_without_admission_is_sent_to_the_waiting_room_and_back(shop: Shop) -> None:
    answer = await shop.ask("GET", "/checkout?size=m", accept=HTML)
    assert answer.status_code == 303
    assert answer.headers["location"] == (
        f"{shop.site.url}/enter/{shop.slug}?return=http%3A%2F%2Fshop.test%2Fcheckout%3Fsize%3Dm"
    )
    assert answer.headers["cache-control"] == "no-store"


async def test_a_program_without_admission_is_told_what_is_missing(shop: Shop) -> None:
    for answer in (
        await shop.ask("GET", "/checkout", accept="application/json"),
        await shop.ask("POST", "/checkout", accept=HTML),
        await shop.ask("GET", "/checkout", accept=HTML, sec_fetch_mode="cors"),
    ):
        document = refused(answer, 401, "admission_required")
        assert document["waiting_room"].endswith(f"/enter/{shop.slug}")


async def test_other_spellings_of_a_protected_path_are_protected(shop: Shop) -> None:
    for path in ("/checkout/", "//checkout", "/checkout/pay", "/%63heckout", "///checkout/"):
        answer = await shop.ask("GET", f"http://shop.test{path}", accept="application/json")
        refused(answer, 401, "admission_required")


def test_a_path_is_protected_with_all_below_it_and_nothing_beside_it() -> None:
    door = Door("http://127.0.0.1", "sale", protect=["/checkout", "/pay/"])
    for path in ("/checkout", "/checkout/a", "//checkout", "/./checkout", "/a/../checkout", "/pay"):
        assert door.concerns(path), path
    for path in ("/", "/checkouts", "/a/checkout", "/check"):
        assert not door.concerns(path), path
    assert Door("http://127.0.0.1", "sale").concerns("/anything")


async def test_the_admitted_come_in_by_header_and_by_cookie(shop: Shop) -> None:
    buyer = shop.buyer()
    token = await buyer.admitted()
    for headers in (
        {"fairdrop_admission": token},
        {"cookie": f"theme=dark; {shop.cookie}={token}"},
    ):
        answer = await shop.ask("GET", "/checkout", **headers)
        assert answer.status_code == 200, answer.text
        assert buyer.visitor in answer.text


async def test_a_token_in_the_address_counts_for_nothing(shop: Shop) -> None:
    token = await shop.buyer().admitted()
    answer = await shop.ask("GET", f"/checkout?fairdrop-admission={token}&token={token}")
    refused(answer, 401, "admission_required")


async def test_forgeries_and_tokens_of_other_sales_are_refused_by_name(shop: Shop) -> None:
    token = await shop.buyer().admitted()
    elsewhere = await Buyer(shop.site.url, _new_sale(shop.site)).admitted()
    here = asking(shop.kind, SHOPS[shop.kind](**shop.settings))
    for shown, reason in (
        (token[:-6] + "AAAAAA", "admission_forged"),
        ("a.b.c", "admission_forged"),
        (elsewhere, "admission_other_sale"),
    ):
        refused(await here("GET", "/checkout", cookie=f"{shop.cookie}={shown}"), 403, reason)


async def test_whose_turn_it_is_enters_by_coming(shop: Shop) -> None:
    """READY becomes ADMITTED at the shop's door, on the same host, without another page."""
    buyer = shop.buyer()
    await buyer.until("READY")
    cookie = f"fairdrop_visitor={buyer.visitor_token}"
    answer = await shop.ask("GET", "/checkout", accept=HTML, cookie=cookie)
    assert answer.status_code == 200, answer.headers
    assert buyer.visitor in answer.text
    kept = answer.headers["set-cookie"].strip()
    assert kept.startswith(f"{shop.cookie}=")
    assert "HttpOnly" in kept
    assert "SameSite=Lax" in kept
    token = kept.partition("=")[2].partition(";")[0]
    assert (await shop.ask("GET", "/checkout", fairdrop_admission=token)).status_code == 200


async def test_whose_turn_it_is_not_goes_to_the_waiting_room(running_site: RunningSite) -> None:
    shop = Shop("wsgi", running_site, own={"cap": 1})
    first, second = shop.buyer(), shop.buyer()
    await first.admitted()
    cookie = f"fairdrop_visitor={second.visitor_token}"
    for _ in range(3):
        answer = await shop.ask("GET", "/checkout", accept=HTML, cookie=cookie)
        assert answer.status_code == 303


async def test_an_order_frees_the_place_and_ends_the_token_and_there_is_one(shop: Shop) -> None:
    """Two simultaneous uses of one token: one order (W13; cases 5, 10)."""
    buyer = shop.buyer()
    token = await buyer.admitted()
    answers = await asyncio.gather(
        *(shop.ask("POST", "/checkout", fairdrop_admission=token) for _ in range(4))
    )
    # The example names an order by its admission: a repetition is the same order.
    statuses = {answer.status_code for answer in answers}
    assert 201 in statuses
    assert statuses <= {201, 403}
    assert len({answer.text for answer in answers if answer.status_code == 201}) == 1
    await shop.until_refused(token, "admission_revoked")
    place = await asyncio.to_thread(buyer.call, "GET", "/me")
    assert place["state"] == "NOT_ENTERED"


async def test_leaving_ends_the_token_too(running_site: RunningSite) -> None:
    shop = Shop("asgi", running_site)
    buyer = shop.buyer()
    token = await buyer.admitted()
    assert (await shop.ask("GET", "/checkout", fairdrop_admission=token)).status_code == 200
    await asyncio.to_thread(buyer.call, "DELETE", "/me")
    await shop.until_refused(token, "admission_revoked")


async def test_a_token_is_refused_when_its_lease_ends(kind: str, running_site: RunningSite) -> None:
    """And its cookie lives no longer (case 36)."""
    shop = Shop(kind, running_site, own={})
    shop.site.admin("PATCH", f"/sales/{shop.slug}", {"lease_ttl_ms": 1_500})
    buyer = shop.buyer()
    await buyer.until("READY")
    cookie = f"fairdrop_visitor={buyer.visitor_token}"
    answer = await shop.ask("GET", "/checkout", cookie=cookie)
    kept = dict(p.strip().partition("=")[::2] for p in answer.headers["set-cookie"].split(";"))
    assert int(kept["Max-Age"]) <= 1
    await shop.until_refused(kept[shop.cookie], "admission_expired")


# ---------------------------------------------------------------- handed over by the waiting room


async def test_the_waiting_room_hands_over_by_a_form(shop: Shop) -> None:
    token = await shop.buyer().admitted()
    body = str(httpx.QueryParams({"token": token, "next": "/checkout?size=m"}))
    answer = await shop.ask("POST", "/.fairdrop/enter", body, base="https://shop.test")
    assert answer.status_code == 303, answer.text
    assert answer.headers["location"] == "/checkout?size=m"
    assert answer.headers["set-cookie"].startswith(f"{shop.cookie}={token}; Path=/; Max-Age=")
    assert answer.headers["set-cookie"].endswith("; HttpOnly; SameSite=Lax; Secure")


async def test_nobody_is_sent_elsewhere_by_the_form(shop: Shop) -> None:
    token = await shop.buyer().admitted()
    for elsewhere in (
        "https://evil.test/",
        "//evil.test",
        "/\\evil.test",
        "javascript:alert(1)",
        "/\t/evil.test",
    ):
        body = str(httpx.QueryParams({"token": token, "next": elsewhere}))
        answer = await shop.ask("POST", "/.fairdrop/enter", body)
        assert answer.headers["location"] == "/"


async def test_a_form_without_a_good_token_leads_back_to_the_waiting_room(shop: Shop) -> None:
    for body in ("", "token=", "token=a.b.c", "x" * 20_000, "token=%ff", "&" * 99):
        answer = await shop.ask("POST", "/.fairdrop/enter", body)
        assert answer.status_code == 303
        assert answer.headers["location"].startswith(f"{shop.site.url}/enter/{shop.slug}?return=")
        assert "set-cookie" not in answer.headers


# ---------------------------------------------------------------- fail closed


@pytest.fixture
async def relay(running_site: RunningSite) -> AsyncIterator[Relay]:
    async with Relay(running_site.url) as relay:
        yield relay


async def test_nobody_enters_while_fairdrop_is_away_and_it_recovers_by_itself(
    kind: str, running_site: RunningSite, relay: Relay
) -> None:
    """W14, case 38: an answer within a second, and what was known serves only for a moment."""
    shop = Shop(kind, running_site, url=relay.url, stale_s=0.5)
    token = await shop.buyer().admitted()
    assert (await shop.ask("GET", "/checkout", fairdrop_admission=token)).status_code == 200
    await relay.stop()
    async with asyncio.timeout(10):
        while True:
            began = time.monotonic()
            answer = await shop.ask("GET", "/checkout", fairdrop_admission=token)
            if answer.status_code != 200:
                break
            await asyncio.sleep(0.05)
    assert time.monotonic() - began < 1
    refused(answer, 503, "store_unavailable")
    assert answer.headers["retry-after"] == "1"
    assert (await shop.ask("GET", "/")).status_code == 200
    await relay.start()
    async with asyncio.timeout(10):
        while (await shop.ask("GET", "/checkout", fairdrop_admission=token)).status_code != 200:
            await asyncio.sleep(0.05)


async def test_a_request_is_decided_without_a_call(running_site: RunningSite, relay: Relay) -> None:
    """What is known decides; a call a second refreshes it, however many requests there are."""
    shop = Shop("asgi", running_site, url=relay.url)
    token = await shop.buyer().admitted()
    await shop.ask("GET", "/checkout", fairdrop_admission=token)
    before, began = relay.connections, time.monotonic()
    for _ in range(200):
        answer = await shop.ask("GET", "/checkout", fairdrop_admission=token)
        assert answer.status_code == 200
    assert relay.connections - before <= 2 * (time.monotonic() - began) + 2


async def test_unknown_keys_do_not_make_a_shop_ask_and_ask(
    running_site: RunningSite, relay: Relay
) -> None:
    shop = Shop("wsgi", running_site, url=relay.url)
    token = await shop.buyer().admitted()
    await shop.ask("GET", "/checkout", fairdrop_admission=token)
    before = relay.connections
    for n in range(30):
        header = json.dumps({"alg": "EdDSA", "kid": f"k{n}"}).encode().hex()
        await shop.ask("GET", "/checkout", fairdrop_admission=f"{header}.e30.AAAA")
    assert relay.connections - before <= 4


def test_an_address_that_is_none_is_told_at_the_start() -> None:
    for url in ("", "tickets.example.org", "ftp://tickets.example.org", "http://"):
        with pytest.raises(ValueError, match="no address"):
            Door(url, "sale")
