"""A shop whose database nobody else writes to: an audit looks at all of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from fairdrop.app import Parts
from fairdrop.embedded import BackgroundServices
from fairdrop.ids import new_id
from fairdrop.schema.migrate import migrate
from tests.integration.audit.busy_shop import BusyShop, Tamper
from tests.integration.checkout.scripted_gateway import ScriptedGateway
from tests.integration.checkout.shop import new_database, new_shop, shop_parts

_databases: dict[str, str] = {}

EVERYTHING = """
SET session_replication_role = replica;
TRUNCATE sales, variants, orders, order_lines, units, payments, refunds, webhook_inbox,
    webhook_due, order_timers, order_transitions, ledger_entries, outbox, operator_audit CASCADE;
SET session_replication_role = origin;
"""


@pytest.fixture
async def database_url(services: BackgroundServices) -> str:
    """An empty database, migrated once for all tests of this process."""
    if services.database_url not in _databases:
        url = await new_database(services.database_url, f"audit_{new_id()}")
        await migrate(url)
        _databases[services.database_url] = url
    return _databases[services.database_url]


@pytest.fixture
async def tamper(database_url: str) -> AsyncIterator[Tamper]:
    """Runs a statement past every trigger and right, as nothing of ours could."""
    superuser = database_url.replace("postgresql://fairdrop@/", "postgresql://postgres@/")
    connection = await asyncpg.connect(superuser)
    await connection.execute(EVERYTHING)
    await connection.execute("SET session_replication_role = replica")

    async def tamper(sql: str, *arguments: object) -> None:
        status = await connection.execute(sql, *arguments)
        assert not status.endswith(" 0"), f"nothing to tamper with: {sql}"

    yield tamper
    await connection.close()


@pytest.fixture
async def parts(
    services: BackgroundServices, database_url: str, tamper: Tamper
) -> AsyncIterator[Parts]:
    gateway = ScriptedGateway()
    async with shop_parts(services.store_url, database_url, gateway) as parts:
        yield parts


@pytest.fixture
async def shop(parts: Parts, tamper: Tamper) -> BusyShop:
    """A shop to which everything has happened that may, and whose books are clean."""
    (gateway,) = parts.gateways.values()
    assert isinstance(gateway, ScriptedGateway)
    plain = await new_shop(parts, gateway, 30, 20, fee_bps=1_000)
    busy = BusyShop(parts, gateway, plain.sale, tamper=tamper)
    await busy.live_through_everything()
    return busy
