"""One gateway and one webhook receiver for all tests of a process; a test has orders of its own.

A test that kills the gateway, or sets its mischief for everybody, starts one for itself
(``own_gateway``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import pytest

from fairdrop.payments import SandboxGateway
from tests.integration.payments.running_gateway import Buyer, Connect, RunningGateway
from tests.integration.payments.webhook_receiver import WebhookReceiver


@pytest.fixture(scope="session")
def receiver() -> Iterator[WebhookReceiver]:
    receiver = WebhookReceiver()
    yield receiver
    receiver.close()


@pytest.fixture(scope="session")
def gateway(
    tmp_path_factory: pytest.TempPathFactory, receiver: WebhookReceiver
) -> Iterator[RunningGateway]:
    gateway = RunningGateway(tmp_path_factory.mktemp("gateway") / "data", receiver.url).start()
    yield gateway
    gateway.stop()


@pytest.fixture
def own_receiver() -> Iterator[WebhookReceiver]:
    receiver = WebhookReceiver()
    yield receiver
    receiver.close()


@pytest.fixture
def own_gateway(tmp_path: Path, own_receiver: WebhookReceiver) -> Iterator[RunningGateway]:
    gateway = RunningGateway(tmp_path / "data", own_receiver.url).start()
    yield gateway
    gateway.kill()


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
        yield session


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Makes adapters, and closes them. Patient ones: a busy machine fails no test."""
    adapters: list[SandboxGateway] = []

    def connect(gateway: RunningGateway) -> SandboxGateway:
        adapters.append(
            SandboxGateway(
                gateway.base_url, gateway.secret_key, gateway.webhook_secret, total_timeout_s=30
            )
        )
        return adapters[-1]

    yield connect
    for adapter in adapters:
        await adapter.close()


@pytest.fixture
def adapter(gateway: RunningGateway, connect: Connect) -> SandboxGateway:
    return connect(gateway)


@pytest.fixture
def buyer(gateway: RunningGateway, session: aiohttp.ClientSession) -> Buyer:
    return Buyer(gateway, session)
