"""The Stripe of the tests in a process of its own, and how its buyers pay."""

from __future__ import annotations

import subprocess
import sys

import aiohttp

from fairdrop.payments.stripe import StripeGateway
from tests.integration.payments.stripe_front import KEY

WEBHOOK_SECRET = "whsec_of_the_tests"
SUCCEEDS = "4242424242424242"
DECLINED = "4000000000000341"
"""localstripe declines this one when it is charged; the others only when it is kept."""


class RunningStripe:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.integration.payments.stripe_front"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("ready "), line
        self.url = line.split()[1]

    def adapter(self, *, total_timeout_s: float = 30) -> StripeGateway:
        return StripeGateway(KEY, WEBHOOK_SECRET, api_url=self.url, total_timeout_s=total_timeout_s)

    async def pay(self, session: str, card: str = SUCCEEDS) -> int:
        """As Stripe's page does it; the status of the answer."""
        async with (
            aiohttp.ClientSession() as client,
            client.post(f"{self.url}/_buyer/{session}", json={"card": card}) as answer,
        ):
            return answer.status

    def stop(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()
