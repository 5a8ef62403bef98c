"""The gateway protocol (O4, O5), kept by every adapter against a gateway that really runs."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import aiohttp
import msgspec
import pytest

from fairdrop.payments import (
    CaptureMode,
    Gateway,
    GatewayRefused,
    GatewayUnavailable,
    Intent,
    IntentStatus,
    SandboxGateway,
)
from fairdrop.payments.stripe import StripeGateway
from tests.integration.payments import running_stripe
from tests.integration.payments.running_gateway import (
    DECLINED,
    SUCCEEDS,
    Buyer,
    RunningGateway,
    a_request,
    new_reference,
)
from tests.integration.payments.running_stripe import RunningStripe

S = IntentStatus


class Bank(Protocol):
    """A gateway, and its buyers."""

    gateway: Gateway

    async def pay(self, intent: Intent, *, declined: bool = False) -> bool:
        """The buyer pays; False when the gateway does not let them any more."""


@dataclass
class SandboxBank:
    gateway: Gateway
    buyer: Buyer

    async def pay(self, intent: Intent, *, declined: bool = False) -> bool:
        status, _ = await self.buyer.pay(intent, DECLINED if declined else SUCCEEDS)
        return status == 200


@dataclass
class StripeBank:
    gateway: Gateway
    stripe: RunningStripe

    async def pay(self, intent: Intent, *, declined: bool = False) -> bool:
        card = running_stripe.DECLINED if declined else running_stripe.SUCCEEDS
        return await self.stripe.pay(intent.id, card) == 200


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    nobody = "http://127.0.0.1:9/hook"
    running = RunningGateway(tmp_path_factory.mktemp("gateway") / "data", nobody).start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def stripe_server() -> Iterator[RunningStripe]:
    running = RunningStripe()
    yield running
    running.stop()


@pytest.fixture(params=["sandbox", "stripe"])
async def bank(request: pytest.FixtureRequest) -> AsyncIterator[Bank]:
    if request.param == "sandbox":
        running: RunningGateway = request.getfixturevalue("sandbox")
        async with (
            aiohttp.ClientSession() as session,
            SandboxGateway(
                running.base_url, running.secret_key, running.webhook_secret, total_timeout_s=30
            ) as adapter,
        ):
            yield SandboxBank(adapter, Buyer(running, session))
        return
    server: RunningStripe = request.getfixturevalue("stripe_server")
    async with server.adapter() as stripe_adapter:
        yield StripeBank(stripe_adapter, server)


async def an_intent(
    bank: Bank, amount_minor: int = 2_500, currency: str = "EUR", *, manual: bool = False
) -> Intent:
    request = a_request(new_reference(), amount_minor, currency)
    capture = CaptureMode.MANUAL if manual else CaptureMode.AUTOMATIC
    return await bank.gateway.create(msgspec.structs.replace(request, capture=capture))


async def charged(bank: Bank, reference: str) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    after = None
    while True:
        page = await bank.gateway.charges(after, 1_000)
        found += [
            (one.amount_minor, one.currency) for one in page.data if one.reference == reference
        ]
        if page.next is None:
            return found
        after = page.next


# ---------------------------------------------------------------- create, find, fetch


async def test_one_key_is_one_intent_with_one_page(bank: Bank) -> None:
    """O5: also when many ask at once."""
    request = a_request(new_reference())
    first = await bank.gateway.create(request)
    again = await asyncio.gather(*(bank.gateway.create(request) for _ in range(3)))
    assert {(one.id, one.pay_url) for one in again} == {(first.id, first.pay_url)}
    assert (first.status, first.amount_minor, first.currency, first.reference) == (
        S.REQUIRES_PAYMENT,
        2_500,
        "EUR",
        request.reference,
    )
    assert first.pay_url.startswith("http")
    assert first.client_secret not in repr(first) or not first.client_secret


async def test_the_same_key_for_another_amount_is_refused(bank: Bank) -> None:
    request = a_request(new_reference())
    await bank.gateway.create(request)
    with pytest.raises(GatewayRefused, match="idempotency_key_reused"):
        await bank.gateway.create(msgspec.structs.replace(request, amount_minor=2_501))


@pytest.mark.parametrize("call", ["fetch", "cancel", "capture"])
async def test_an_intent_that_there_is_not_is_refused(bank: Bank, call: str) -> None:
    prefix = "cs_test_" if bank.gateway.name == "stripe" else "pi_"
    arguments = (1,) if call == "capture" else ()
    with pytest.raises(GatewayRefused, match="unknown_intent"):
        await getattr(bank.gateway, call)(prefix + "nothing", *arguments)


@pytest.mark.parametrize(
    ("amount", "currency"), [(80, "JPY"), (8_000, "EUR"), (1_990, "KWD"), (500, "ISK")]
)
async def test_what_is_charged_is_what_was_asked_for(
    bank: Bank, amount: int, currency: str
) -> None:
    """Case 23: 80 yen are 80 at the gateway, in its own record too."""
    intent = await an_intent(bank, amount, currency)
    assert await bank.pay(intent)
    paid = await bank.gateway.fetch(intent.id)
    assert (paid.status, paid.amount_received_minor, paid.currency) == (
        S.SUCCEEDED,
        amount,
        currency,
    )
    assert await charged(bank, intent.reference) == [(amount, currency)]


async def test_a_payment_is_found_by_its_reference(bank: Bank) -> None:
    """O8: whoever died between making it and writing it down finds it again."""
    intent = await an_intent(bank)
    await bank.pay(intent)
    found = await bank.gateway.find(intent.reference)
    assert found is not None
    assert (found.status, found.amount_received_minor, found.reference) == (
        S.SUCCEEDED,
        2_500,
        intent.reference,
    )
    assert await bank.gateway.find(new_reference()) is None


async def test_a_declined_attempt_leaves_the_payment_open(bank: Bank) -> None:
    intent = await an_intent(bank)
    await bank.pay(intent, declined=True)
    declined = await bank.gateway.fetch(intent.id)
    assert (declined.status, declined.last_decline) == (S.REQUIRES_PAYMENT, "card_declined")
    assert await bank.pay(intent)
    assert (await bank.gateway.fetch(intent.id)).status is S.SUCCEEDED
    assert len(await charged(bank, intent.reference)) == 1


# ---------------------------------------------------------------- cancel, capture


async def test_what_is_cancelled_can_never_be_paid(bank: Bank) -> None:
    intent = await an_intent(bank)
    for _ in range(2):
        assert (await bank.gateway.cancel(intent.id)).status is S.CANCELED
    assert not await bank.pay(intent)
    assert await charged(bank, intent.reference) == []


async def test_what_was_taken_is_not_cancelled(bank: Bank) -> None:
    intent = await an_intent(bank)
    await bank.pay(intent)
    with pytest.raises(GatewayRefused, match="intent_succeeded"):
        await bank.gateway.cancel(intent.id)
    assert (await bank.gateway.fetch(intent.id)).status is S.SUCCEEDED


async def test_money_that_is_set_aside_is_taken_once(bank: Bank) -> None:
    """O4, case 22: a repeated capture takes nothing more."""
    intent = await an_intent(bank, manual=True)
    await bank.pay(intent)
    held = await bank.gateway.fetch(intent.id)
    assert (held.status, held.amount_received_minor) == (S.REQUIRES_CAPTURE, 0)
    assert await charged(bank, intent.reference) == []
    for _ in range(2):
        taken = await bank.gateway.capture(intent.id, 2_500)
        assert (taken.id, taken.status, taken.amount_received_minor) == (
            intent.id,
            S.SUCCEEDED,
            2_500,
        )
    assert await charged(bank, intent.reference) == [(2_500, "EUR")]


async def test_money_that_is_set_aside_can_be_let_go(bank: Bank) -> None:
    intent = await an_intent(bank, manual=True)
    await bank.pay(intent)
    for _ in range(2):
        assert (await bank.gateway.cancel(intent.id)).status is S.CANCELED
    with pytest.raises(GatewayRefused, match="not_capturable"):
        await bank.gateway.capture(intent.id, 2_500)
    assert await charged(bank, intent.reference) == []


@pytest.mark.parametrize("paid", [False, True])
async def test_capture_takes_only_what_is_set_aside(bank: Bank, paid: bool) -> None:
    """With automatic capture there is nothing left to take: a repeat says so."""
    intent = await an_intent(bank)
    if paid:
        await bank.pay(intent)
        assert (await bank.gateway.capture(intent.id, 2_500)).amount_received_minor == 2_500
    with pytest.raises(GatewayRefused, match="not_capturable"):
        await bank.gateway.capture(intent.id, 2_499)


# ---------------------------------------------------------------- refunds


async def test_a_refund_is_made_once_however_often_it_is_asked_for(bank: Bank) -> None:
    intent = await an_intent(bank)
    await bank.pay(intent)
    refund_id = new_reference()
    refunds = [await bank.gateway.refund(intent.id, 1_000, refund_id) for _ in range(3)]
    assert {(one.id, one.status, one.reference, one.amount_minor) for one in refunds} == {
        (refunds[0].id, "succeeded", refund_id, 1_000)
    }
    assert (await bank.gateway.fetch(intent.id)).amount_refunded_minor == 1_000
    page = await bank.gateway.refunds()
    assert [one.amount_minor for one in page.data if one.reference == refund_id] == [1_000]


async def test_refunds_never_exceed_what_was_taken(bank: Bank) -> None:
    """O9, at the gateway: the last line of defence."""
    intent = await an_intent(bank)
    with pytest.raises(GatewayRefused, match="over_refund"):
        await bank.gateway.refund(intent.id, 1, new_reference())
    await bank.pay(intent)
    await bank.gateway.refund(intent.id, 1_000, new_reference())
    with pytest.raises(GatewayRefused, match="over_refund"):
        await bank.gateway.refund(intent.id, 1_501, new_reference())
    await bank.gateway.refund(intent.id, 1_500, new_reference())
    assert (await bank.gateway.fetch(intent.id)).amount_refunded_minor == 2_500


# ---------------------------------------------------------------- a gateway that is away


def _adapter(name: str, url: str, timeout_s: float) -> SandboxGateway | StripeGateway:
    if name == "sandbox":
        return SandboxGateway(url, "sk", "whsec", total_timeout_s=timeout_s)
    return StripeGateway("sk", "whsec", api_url=url, total_timeout_s=timeout_s)


@contextmanager
def _silent_server() -> Iterator[str]:
    """Takes connections, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


CALLS = [
    ("create", (a_request("order-1"),)),
    ("find", ("order-1",)),
    ("fetch", ("pi_1",)),
    ("cancel", ("pi_1",)),
    ("capture", ("pi_1", 100)),
    ("refund", ("pi_1", 100, "refund-1")),
    ("charges", ()),
    ("refunds", ()),
]


@pytest.mark.parametrize("name", ["sandbox", "stripe"])
async def test_a_gateway_that_hangs_is_unavailable_within_the_time_limit(name: str) -> None:
    with _silent_server() as url:
        async with _adapter(name, url, 0.2) as adapter:
            began = time.monotonic()
            answers = await asyncio.gather(
                *(getattr(adapter, call)(*arguments) for call, arguments in CALLS),
                return_exceptions=True,
            )
    assert [type(one) for one in answers] == [GatewayUnavailable] * len(CALLS), answers
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("name", ["sandbox", "stripe"])
async def test_a_gateway_that_refuses_connections_is_unavailable(name: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        async with _adapter(name, url, 5) as adapter:
            for call, arguments in CALLS:
                with pytest.raises(GatewayUnavailable):
                    await getattr(adapter, call)(*arguments)
