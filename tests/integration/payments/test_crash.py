"""Kill -9 at any moment: what was answered is in the record, what was not told is told (SPEC O8)."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from fairdrop.payments import GatewayUnavailable, Intent, IntentStatus, SandboxGateway
from tests.integration.payments.running_gateway import (
    Buyer,
    Connect,
    RunningGateway,
    a_request,
    all_charges,
    an_intent,
    eventually,
    new_reference,
)
from tests.integration.payments.webhook_receiver import WebhookReceiver


@pytest.mark.parametrize("kill_after_payments", [1, 40, 160])
async def test_killed_under_load_it_keeps_every_charge_it_answered_and_tells_of_each(
    own_gateway: RunningGateway,
    own_receiver: WebhookReceiver,
    connect: Connect,
    session: aiohttp.ClientSession,
    kill_after_payments: int,
) -> None:
    adapter, buyer = connect(own_gateway), Buyer(own_gateway, session)
    created: list[Intent] = []
    answered: list[Intent] = []
    gone = asyncio.Event()

    async def shop() -> None:
        while not gone.is_set():
            try:
                intent = await an_intent(adapter)
                created.append(intent)
                await buyer.pay(intent)
            except (GatewayUnavailable, aiohttp.ClientError):
                return
            answered.append(intent)

    shops = [asyncio.create_task(shop()) for _ in range(16)]
    await eventually(lambda: len(answered) >= kill_after_payments)
    own_gateway.kill()
    gone.set()
    await asyncio.gather(*shops)

    own_gateway.start()
    for intent in answered:
        assert (await adapter.fetch(intent.id)).status is IntentStatus.SUCCEEDED
    page = await adapter.charges(limit=1_000)
    charged = [charge.intent for charge in page.data]
    assert page.next is None
    assert len(charged) == len(set(charged))
    assert {intent.id for intent in answered} <= set(charged)
    for intent in created:  # also those whose answer was lost: charged and told, or neither
        status = (await adapter.fetch(intent.id)).status
        assert (status is IntentStatus.SUCCEEDED) == (intent.id in charged)
    references = [charge.reference for charge in page.data]
    await eventually(lambda: all(own_receiver.accepted(reference) for reference in references))


async def test_killed_again_and_again_one_key_stays_one_intent_and_one_charge(
    own_gateway: RunningGateway, connect: Connect, session: aiohttp.ClientSession
) -> None:
    adapter, buyer = connect(own_gateway), Buyer(own_gateway, session)
    request = a_request(new_reference())
    intent = await adapter.create(request)
    for _ in range(3):
        attempts = [asyncio.create_task(_create_and_pay(adapter, buyer)) for _ in range(4)]
        await buyer.pay(intent)
        own_gateway.kill()
        await asyncio.gather(*attempts, return_exceptions=True)
        own_gateway.start()
        again = await adapter.create(request)
        assert (again.id, again.status) == (intent.id, IntentStatus.SUCCEEDED)
    assert await all_charges(adapter, intent.id) == [2_500]


async def _create_and_pay(adapter: SandboxGateway, buyer: Buyer) -> None:
    while True:
        await buyer.pay(await an_intent(adapter))


async def test_webhooks_that_were_not_accepted_are_sent_by_the_next_process(
    own_gateway: RunningGateway,
    own_receiver: WebhookReceiver,
    connect: Connect,
    session: aiohttp.ClientSession,
) -> None:
    adapter, buyer = connect(own_gateway), Buyer(own_gateway, session)
    own_receiver.refuse_all = True
    intents = [await an_intent(adapter) for _ in range(20)]
    for intent in intents:
        await buyer.pay(intent)
    await eventually(lambda: all(own_receiver.received(intent.reference) for intent in intents))
    own_gateway.kill()
    own_receiver.refuse_all = False
    own_gateway.start()
    await eventually(lambda: all(own_receiver.accepted(intent.reference) for intent in intents))
    for intent in intents:
        assert len({one.document["id"] for one in own_receiver.received(intent.reference)}) == 1


async def test_an_attempt_that_was_processing_is_decided_after_a_restart(
    own_gateway: RunningGateway,
    own_receiver: WebhookReceiver,
    connect: Connect,
    session: aiohttp.ClientSession,
) -> None:
    adapter, buyer = connect(own_gateway), Buyer(own_gateway, session)
    paid, declined = await an_intent(adapter), await an_intent(adapter)
    await buyer.pay(paid, delay_ms=300, duplicate=1)
    await buyer.pay(declined, delay_ms=300, decline="insufficient_funds")
    own_gateway.kill()
    own_gateway.start()
    await eventually(lambda: len(own_receiver.accepted(paid.reference)) == 2)
    await eventually(lambda: own_receiver.accepted(declined.reference))
    assert await all_charges(adapter, paid.id) == [2_500]
    assert await all_charges(adapter, declined.id) == []
    assert (await adapter.fetch(declined.id)).last_decline == "insufficient_funds"


async def test_payment_links_lead_to_the_process_that_runs_now(
    own_gateway: RunningGateway, connect: Connect
) -> None:
    request = a_request(new_reference())
    first = await connect(own_gateway).create(request)
    own_gateway.kill()
    own_gateway.port = 0
    own_gateway.start()
    again = await connect(own_gateway).create(request)
    assert (again.id, again.client_secret) == (first.id, first.client_secret)
    assert again.pay_url.startswith(own_gateway.base_url)


async def test_a_stop_signal_ends_it_cleanly(own_gateway: RunningGateway) -> None:
    assert own_gateway.stop() == 0
    assert own_gateway.log_path.read_text() == ""


def test_a_second_process_on_the_same_books_does_not_start(own_gateway: RunningGateway) -> None:
    second = RunningGateway(own_gateway.data_dir, own_gateway.webhook_url)
    result = subprocess.run(
        second.command(),
        env=second.environment(),
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 1
    assert "database is locked" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("name", ["FAIRDROP_GATEWAY_SECRET_KEY", "FAIRDROP_GATEWAY_WEBHOOK_SECRET"])
@pytest.mark.parametrize("value", [None, "short"])
def test_without_good_secrets_it_does_not_start(
    tmp_path: Path, name: str, value: str | None
) -> None:
    gateway = RunningGateway(tmp_path / "data", "http://127.0.0.1:1/")
    environment = gateway.environment()
    del environment[name]
    if value is not None:
        environment[name] = value
    result = subprocess.run(
        gateway.command(), env=environment, check=False, capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 1
    assert name in result.stderr
    assert "Traceback" not in result.stderr


async def test_no_secret_reaches_a_log_a_process_list_or_the_books(
    own_gateway: RunningGateway,
    own_receiver: WebhookReceiver,
    connect: Connect,
    session: aiohttp.ClientSession,
) -> None:
    adapter, buyer = connect(own_gateway), Buyer(own_gateway, session)
    own_receiver.refuse_all = True  # so that failures are met, too
    intent = await an_intent(adapter)
    await buyer.pay(intent, "4242424242424242")
    await buyer.call("POST", f"/v1/intents/{intent.id}/pay", json={"client_secret": 1, "card": "4"})
    wrong = {"Authorization": f"Bearer {own_gateway.secret_key}x"}
    await buyer.call("GET", f"/v1/intents/{intent.id}", headers=wrong)
    await buyer.call("POST", "/v1/intents", body=own_gateway.secret_key.encode(), headers=wrong)
    await eventually(lambda: own_receiver.received(intent.reference))
    shown = _everything_to_be_seen(own_gateway)
    assert intent.reference.encode() in shown  # the search finds what is there
    for secret in (
        own_gateway.secret_key,
        own_gateway.webhook_secret,
        intent.client_secret,
        "4242424242424242",
    ):
        assert secret.encode() not in shown


def _everything_to_be_seen(gateway: RunningGateway) -> bytes:
    """The process list's line, the log, and the books of a gateway, which is killed in between."""
    command_line = Path(f"/proc/{gateway.pid}/cmdline")
    shown = command_line.read_bytes() if command_line.exists() else b""
    gateway.kill()
    shown += gateway.log_path.read_bytes()
    return shown + b"".join(path.read_bytes() for path in gateway.data_dir.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="the death signal is Linux's")
async def test_it_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    gateway = RunningGateway(tmp_path / "data", "http://127.0.0.1:1/")
    starter = (
        "import subprocess, sys\n"
        "child = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True)\n"
        "print(child.pid, child.stdout.readline(), flush=True)\n"
        "child.wait()\n"
    )
    environment = {**gateway.environment(), "FAIRDROP_PARENT_DEATH": "1"}
    parent = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", starter, *gateway.command()),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
    )
    assert parent.stdout is not None
    pid, ready, _ = (await parent.stdout.readline()).decode().split()
    assert ready == "ready"
    parent.send_signal(signal.SIGKILL)
    await parent.wait()
    await eventually(lambda: not _is_running(int(pid)))


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"  # a zombie is gone: only nobody has looked at it


def test_it_starts_within_a_second(tmp_path: Path) -> None:
    """Processor time, so that a busy machine does not fail it."""
    gateway = RunningGateway(tmp_path / "data", "http://127.0.0.1:1/").start()
    try:
        ticks = Path(f"/proc/{gateway.pid}/stat").read_text().rsplit(")", 1)[1].split()
        cpu_s = (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")
    finally:
        gateway.kill()
    assert cpu_s < 1.0
