"""The browser solves what the server's own library asks, also on a page of a shop (W18)."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from altcha.v1 import create_challenge, verify_solution
from playwright.async_api import Page

import fairdrop

SCRIPT = Path(fairdrop.__file__).parent / "web" / "static" / "js" / "proof.js"


async def open_page_with_the_solver(page: Page) -> None:
    await page.route(
        "**/proof.js",
        lambda route: route.fulfill(body=SCRIPT.read_text("utf-8"), content_type="text/javascript"),
    )
    await page.route(
        "**/", lambda route: route.fulfill(body="<!doctype html>", content_type="text/html")
    )
    await page.goto("http://shop.test/")


async def test_the_browser_finds_what_the_library_hid(page: Page) -> None:
    """For salts of every length around the ends of a block, and every number of digits."""
    await open_page_with_the_solver(page)
    cases = [
        (length, number)
        for length in (8, 50, 53, 54, 55, 56, 62, 63, 64, 118, 130)
        for number in (0, 9, 10, 1_234)
    ]
    challenges = [
        create_challenge(
            algorithm="SHA-256",
            max_number=2_000,
            salt_length=12,
            hmac_key=b"key",
            salt="s" * length,
            number=number,
            expires=None,
            params={"sale": "x"},
        )
        for length, number in cases
    ]
    solutions = await page.evaluate(
        """async (challenges) => {
            const { solve } = await import("/proof.js");
            const found = [];
            for (const challenge of challenges) found.push(await solve(challenge));
            return found;
        }""",
        [
            {
                "algorithm": each.algorithm,
                "challenge": each.challenge,
                "maxnumber": each.max_number,
                "salt": each.salt,
                "signature": each.signature,
            }
            for each in challenges
        ],
    )
    for (_, number), solution in zip(cases, solutions, strict=True):
        assert json.loads(base64.b64decode(solution))["number"] == number
        assert verify_solution(solution, b"key") == (True, None)


async def test_an_impossible_challenge_ends_and_a_running_one_can_be_stopped(page: Page) -> None:
    await open_page_with_the_solver(page)
    told = await page.evaluate(
        """async () => {
            const { solve } = await import("/proof.js");
            const none = "0".repeat(64);
            const challenge = { algorithm: "SHA-256", challenge: none, salt: "s&", signature: "" };
            const reason = (promise) => promise.then(() => "", (error) => String(error.message));
            const stop = new AbortController();
            const onProgress = () => stop.abort(new Error("stopped"));
            const options = { signal: stop.signal, onProgress };
            const running = solve({ ...challenge, maxnumber: 1e9 }, options);
            return [
                await reason(solve({ ...challenge, maxnumber: 100 })),
                await reason(running),
                await reason(solve({ ...challenge, algorithm: "MD5", maxnumber: 1 })),
            ];
        }"""
    )
    assert told == ["the challenge has no solution", "stopped", "unknown algorithm MD5"]
