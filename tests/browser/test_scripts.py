"""The pages' modules, called one by one in the browser that will run them. No API, no server."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import Page, Route
from starlette.applications import Starlette

from fairdrop.catalog import STEERING
from fairdrop.money import fee_minor
from fairdrop.waiting_room import poll_after_ms, wait_range_s
from fairdrop.web.pages import routes
from tests.unit.web.pages.asking import ask

SITE = "http://shop.test"
CALL = """async ([module, name, args]) => {
  const script = document.querySelector('script[type="module"]').src;
  const found = await import(new URL(`${module}.js`, script).href);
  return await found[name](...args);
}"""


@pytest.fixture
async def scripts(page: Page) -> AsyncIterator[Page]:
    """A page whose modules can be imported; every request is answered in this process."""
    app = Starlette(routes=routes())

    async def answer(route: Route) -> None:
        found = await ask(app, route.request.url)
        await route.fulfill(status=found.status, headers=found.headers, body=found.body)

    await page.route("**/*", answer)
    await page.goto(f"{SITE}/console")
    yield page
    await page.unroute_all(behavior="wait")


async def call(page: Page, module: str, name: str, *args: Any) -> Any:
    return await page.evaluate(CALL, [module, name, list(args)])


async def test_money_is_shown_with_the_decimals_of_its_currency(scripts: Page) -> None:
    """O10."""
    expected = {
        (1995, "EUR", 2): "€19.95",
        (80, "JPY", 0): "¥80",
        (1_234_567, "KWD", 3): "KWD\xa01,234.567",
        (0, "USD", 2): "$0.00",
    }
    shown = {key: await call(scripts, "money", "formatMoney", *key, ["en-US"]) for key in expected}
    assert shown == expected


async def test_the_fee_shown_is_the_fee_charged(scripts: Page) -> None:
    cases = [
        (amount, fee_bps, step)
        for amount in (0, 1, 4, 5, 15, 1_995, 999_999, 123_456_789)
        for fee_bps in (0, 1, 333, 1_000, 9_999)
        for step in (1, 10, 100)
    ]
    shown = {case: await call(scripts, "money", "feeMinor", *case) for case in cases}
    assert shown == {case: fee_minor(*case) for case in cases}


LINE = {"mode": "open", "served": 40, "tail": 900, "rate_per_s": 50, "outflow_per_s": 25}


async def test_a_place_is_told_by_subtraction(scripts: Page) -> None:
    """W6."""
    expected = {
        (41, 0): 0,  # the next one
        (240, 240): 199,  # by subtraction
        (240, 120): 120,  # people left since: the exact count was lower
        (12, 7): 7,  # back after a missed turn: only the exact count says anything
    }
    shown = {}
    for position, rank in expected:
        place = {"state": "WAITING", "position": position, "rank": rank}
        shown[position, rank] = await call(scripts, "../fairdrop", "peopleAhead", place, LINE)
    assert shown == expected


async def test_the_personal_status_is_asked_for_only_near_the_front(scripts: Page) -> None:
    """W6: 100 ahead ask the public document alone, 99 ahead ask for themselves."""
    expected = [
        ({"state": "WAITING", "position": 141, "rank": 500}, False),
        ({"state": "WAITING", "position": 140, "rank": 500}, True),
        ({"state": "WAITING", "position": 40, "rank": 3}, True),
        ({"state": "READY", "position": 40, "rank": 0, "claim_by_ms": 2_000}, False),
        ({"state": "READY", "position": 40, "rank": 0, "claim_by_ms": 1_000}, True),
        ({"state": "ADMITTED", "position": 40, "rank": 0, "token_expires_ms": 2_000}, False),
        ({"state": "ADMITTED", "position": 40, "rank": 0, "token_expires_ms": 1_000}, True),
        ({"state": "MISSED", "position": 40, "rank": 0}, False),
    ]
    for place, asks in expected:
        assert await call(scripts, "../fairdrop", "asksPersonally", place, LINE, 1_000) is asks, (
            place
        )


async def test_a_page_asks_at_the_pace_the_server_suggests(scripts: Page) -> None:
    """W6, and hidden tabs slow down."""
    for ahead in (0, 99, 100, 999, 1_000, 500_000):
        for chance in (0.0, 0.5, 1.0):
            shown = await call(scripts, "../fairdrop", "pollDelayMs", ahead, chance, False)
            assert abs(shown - poll_after_ms(ahead, chance)) <= 1
            hidden = await call(scripts, "../fairdrop", "pollDelayMs", ahead, chance, True)
            assert hidden >= 3 * shown


async def test_after_failures_a_page_tries_ever_more_rarely_and_never_before_the_server_said(
    scripts: Page,
) -> None:
    expected = {
        (0, 0.0, 0): 500,
        (0, 0.5, 0): 1_000,
        (3, 0.5, 0): 8_000,
        (4, 1.0, 0): 24_000,
        (30, 1.0, 0): 24_000,
        (0, 0.0, 5_000): 5_500,
    }
    shown = {case: await call(scripts, "../fairdrop", "backOffMs", *case) for case in expected}
    assert shown == expected


async def test_the_wait_is_reckoned_as_the_server_does(scripts: Page) -> None:
    """W5."""
    for ahead in (0, 10, 5_000):
        shown = await call(scripts, "../fairdrop", "waitRange", ahead, LINE)
        assert tuple(shown) == wait_range_s(ahead, 25_000, 50_000)


async def test_no_wait_is_promised_while_nothing_moves(scripts: Page) -> None:
    still = [{**LINE, "mode": "paused"}, {**LINE, "rate_per_s": 0, "outflow_per_s": 0}]
    assert [await call(scripts, "../fairdrop", "waitRange", 5, line) for line in still] == [
        None,
        None,
    ]


async def test_a_wait_is_told_no_more_exactly_than_it_is_known(scripts: Page) -> None:
    expected = {
        (0, 5): "a few seconds",
        (20, 50): "less than a minute",
        (40, 100): "up to 2 minutes",
        (185, 290): "about 3 to 5 minutes",
        (7_300, 12_000): "about 2 to 4 hours",
    }
    shown = {wait: await call(scripts, "time", "waitWords", list(wait)) for wait in expected}
    assert shown == expected


async def test_a_length_of_time_is_read_at_a_glance(scripts: Page) -> None:
    shown = [
        await call(scripts, "time", "formatLength", ms)
        for ms in (-5, 0, 59_001, 245_000, 3_729_000, 86_400_000, 172_800_000)
    ]
    assert shown == ["0:00", "0:00", "1:00", "4:05", "1:02:09", "24:00:00", "2 days"]


async def test_the_console_offers_what_the_server_lets_an_operator_do(scripts: Page) -> None:
    """W17."""
    offered = await scripts.evaluate(
        """async () => {
          const script = document.querySelector('script[type="module"]').src;
          return (await import(new URL("modes.js", script).href)).STEERING;
        }"""
    )
    assert offered == {steer.value: list(modes) for steer, (_, modes) in STEERING.items()}


async def test_one_request_keeps_its_key_and_another_request_gets_another(scripts: Page) -> None:
    """H3: what a reload or a second click sends is the same request."""
    lines = {"lines": [{"variant": "floor", "quantity": 1}]}
    first = await call(scripts, "memory", "keyFor", "reserve.sale", lines)
    await scripts.reload()
    assert await call(scripts, "memory", "keyFor", "reserve.sale", lines) == first
    other = await call(scripts, "memory", "keyFor", "reserve.sale", {"lines": []})
    assert other != first
    await call(scripts, "memory", "settleKey", "reserve.sale")
    assert await call(scripts, "memory", "keyFor", "reserve.sale", {"lines": []}) != other


async def test_a_kept_answer_never_sets_the_clock_back(scripts: Page) -> None:
    """An answer from a cache carries an older time than the server has by now."""
    now = int(await call(scripts, "clock", "serverNow"))
    fresh = now + 3_600_000
    await call(scripts, "clock", "observe", fresh)
    await call(scripts, "clock", "observe", fresh - 5_000)
    shown = await call(scripts, "clock", "serverNow")
    assert fresh <= shown < fresh + 60_000


async def test_a_busy_answer_is_asked_again_and_a_refusal_is_not(scripts: Page) -> None:
    """W14: 503 keeps the request going, with the same key, until there is a real answer."""
    seen: list[str] = []
    answers = [503, 503, 409]

    async def answer(route: Route) -> None:
        seen.append(route.request.headers["idempotency-key"])
        status = answers[len(seen) - 1]
        await route.fulfill(status=status, json={"code": "sold_out", "status": status})

    await scripts.route("**/v1/**", answer)
    got = await scripts.evaluate(
        """async () => {
          const script = document.querySelector('script[type="module"]').src;
          const { call, insist } = await import(new URL("api.js", script).href);
          let busy = 0;
          const answer = await insist(
            () => call("POST", "/v1/sales/x/reservations", { body: {}, key: "one" }),
            () => (busy += 1),
          );
          return { status: answer.status, code: answer.problem.code, busy };
        }"""
    )
    assert got == {"status": 409, "code": "sold_out", "busy": 2}
    assert seen == ["one"] * 3
