"""A sandbox gateway in a process of its own, and what talks to it in tests."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import aiohttp

from fairdrop.payments import Intent, PaymentRequest, SandboxGateway

SUCCEEDS = "4242424242424242"
DECLINED = "4000000000000002"
INSUFFICIENT_FUNDS = "4000000000009995"
SLOW = "4000000000000259"

Json: TypeAlias = Any
"""What json.loads gives."""

START_WITHIN_S = 30
EVENTUALLY_S = 30


async def eventually(
    condition: Callable[[], object | Awaitable[object]], within_s: float = EVENTUALLY_S
) -> None:
    """Return once the condition holds; fails the test when the deadline passes."""
    deadline = time.monotonic() + within_s
    while True:
        value = condition()
        if isinstance(value, Awaitable):
            value = await value
        if value:
            return
        assert time.monotonic() < deadline, f"not within {within_s} s"
        await asyncio.sleep(0.01)


class RunningGateway:
    """One gateway process on a free port. It can be killed and started again on the same data."""

    def __init__(self, data_dir: Path, webhook_url: str, *options: str) -> None:
        self.data_dir = data_dir
        self.webhook_url = webhook_url
        self.options = options
        self.secret_key = f"sk_{secrets.token_hex(16)}"
        self.webhook_secret = f"whsec_{secrets.token_hex(16)}"
        self.port = 0
        self.log_path = data_dir.with_suffix(".log")
        self._process: subprocess.Popen[str] | None = None

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "FAIRDROP_GATEWAY_SECRET_KEY": self.secret_key,
            "FAIRDROP_GATEWAY_WEBHOOK_SECRET": self.webhook_secret,
        }

    def command(self) -> list[str]:
        return [
            *(sys.executable, "-m", "fairdrop.payments.sandbox"),
            *("--port", str(self.port)),
            *("--data-dir", str(self.data_dir)),
            *("--webhook-url", self.webhook_url),
            *self.options,
        ]

    def start(self) -> RunningGateway:
        with self.log_path.open("a") as log:
            self._process = subprocess.Popen(
                self.command(),
                env=self.environment(),
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()  # ends with the process, if it fails to start
        assert line.startswith("ready "), self.log_path.read_text()
        self.port = int(line.rsplit(":", 1)[1])
        return self

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Kill -9, and wait until it is gone."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Stop as a supervisor does; the exit status."""
        return self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(number)
        status = process.wait(timeout=START_WITHIN_S)
        assert process.stdout is not None
        process.stdout.close()
        return status


Connect = Callable[[RunningGateway], SandboxGateway]


class Buyer:
    """Calls a gateway as browsers and shops do, without our adapter in between."""

    def __init__(self, gateway: RunningGateway, session: aiohttp.ClientSession) -> None:
        self._gateway = gateway
        self._session = session

    async def call(
        self,
        method: str,
        path: str,
        *,
        json: Json = None,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> tuple[int, Json]:
        """Status and decoded answer of one request, without any credentials but those given."""
        url = self._gateway.base_url + path
        async with self._session.request(
            method, url, json=json, data=body, headers=headers
        ) as answer:
            document = await answer.json(content_type=None)
            if answer.status >= 400:
                assert answer.content_type == "application/problem+json"
                assert document["status"] == answer.status
            return answer.status, document

    async def as_shop(
        self, method: str, path: str, json: Json = None, key: str | None = None
    ) -> tuple[int, Json]:
        """The same with the secret key."""
        headers = {"Authorization": f"Bearer {self._gateway.secret_key}"}
        if key is not None:
            headers["Idempotency-Key"] = key
        return await self.call(method, path, json=json, headers=headers)

    async def pay(self, intent: Intent, card: str = SUCCEEDS, **mischief: Json) -> tuple[int, Json]:
        """Pay as the payment page does, with mischief for this payment if any."""
        body: dict[str, Json] = {"client_secret": intent.client_secret, "card": card}
        if mischief:
            body["mischief"] = mischief
        return await self.call("POST", f"/v1/intents/{intent.id}/pay", json=body)

    async def pending(self) -> int:
        """How many webhooks the gateway has yet to see accepted."""
        _, figures = await self.as_shop("GET", "/v1/deliveries")
        return int(figures["pending"])


def new_reference() -> str:
    return f"order-{secrets.token_hex(8)}"


def a_request(reference: str, amount_minor: int = 2_500, currency: str = "EUR") -> PaymentRequest:
    return PaymentRequest(
        reference=reference,
        amount_minor=amount_minor,
        currency=currency,
        idempotency_key=f"pay-{reference}",
        return_url="https://shop.example/orders/1",
    )


async def an_intent(adapter: SandboxGateway, amount_minor: int = 2_500) -> Intent:
    """A fresh intent of a reference nobody else has."""
    return await adapter.create(a_request(new_reference(), amount_minor))


async def all_charges(adapter: SandboxGateway, intent_id: str) -> list[int]:
    """The amounts of every charge of the intent in the gateway's whole record."""
    amounts = []
    after: str | None = None
    while True:
        page = await adapter.charges(after, limit=1_000)
        amounts += [charge.amount_minor for charge in page.data if charge.intent == intent_id]
        if page.next is None:
            return amounts
        after = page.next
