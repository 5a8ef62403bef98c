"""The doctor on real parts: a healthy shop is well, and each trouble is seen and named (O13)."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from uuid import UUID

import pytest

from fairdrop.app import Parts
from fairdrop.doctor import Finding, Verdict, examine
from fairdrop.drivers.keys import sale_key
from fairdrop.embedded import BackgroundServices, free_ports, start_services
from fairdrop.ids import new_id
from fairdrop.schema.migrate import migrate
from tests.integration.checkout.scripted_gateway import ScriptedGateway
from tests.integration.checkout.shop import Shop, new_database, new_shop, shop_parts
from tests.running_site import RunningSite

STUCK = (
    """INSERT INTO refunds (id, order_id, gateway, intent_id, amount_minor, currency, reason, state,
        next_try_at)
    VALUES ($1, $1, 'sandbox', 'i', 1, 'EUR', 'late', 'PENDING', now() - interval '1 hour')""",
    """INSERT INTO order_mails (order_id, kind, next_try_at)
    VALUES ($1, 'CONFIRMATION', now() - interval '1 hour')""",
    "UPDATE order_timers SET at = now() - interval '1 hour' WHERE order_id = $1",
    """WITH w AS (
        INSERT INTO webhook_inbox (gateway, event_id, kind, order_id, intent_id, amount_minor, currency)
        VALUES ('sandbox', 'e', 'SUCCEEDED', $1, 'i', 1, 'EUR') RETURNING id
    ) INSERT INTO webhook_due SELECT id, now() - interval '1 hour', 0 FROM w""",
)
"""Work of every kind that an hour ago was to be done."""


@pytest.fixture(scope="module")
def own_services() -> Iterator[BackgroundServices]:
    """A store whose policy a test may change, and a database in which nothing else waits."""
    with start_services() as running:
        yield running


@pytest.fixture
async def shop(own_services: BackgroundServices) -> AsyncIterator[Shop]:
    """A sale of five units. Its gateway is this process's alone: to the doctor, one taken away."""
    url = await new_database(own_services.database_url, f"doctor_{new_id()}")
    await migrate(url)
    gateway = ScriptedGateway()
    async with shop_parts(own_services.store_url, url, gateway) as parts:
        yield await new_shop(parts, gateway, 5)


async def wrong(parts: Parts) -> dict[str, Finding]:
    """What is wrong, by what it is about."""
    found = await examine(parts.settings)
    assert all(each.advice for each in found if each.verdict is Verdict.WRONG)
    return {each.about: each for each in found if each.verdict is Verdict.WRONG}


async def test_a_shop_in_which_nothing_is_stuck_is_well(shop: Shop) -> None:
    await shop.order()
    assert await wrong(shop.parts) == {}


async def test_open_payments_of_a_gateway_that_is_not_configured_are_told(shop: Shop) -> None:
    await shop.pending()
    found = await wrong(shop.parts)
    name = f"Gateway {shop.gateway.name}"
    assert set(found) == {name}
    assert "1 open payments" in found[name].words


async def test_what_nobody_takes_is_told_kind_by_kind(shop: Shop) -> None:
    order = await shop.order()
    hold = await shop.reserve(await shop.admit())
    for statement in STUCK:
        await shop.execute(statement, UUID(order.id))
    due = sale_key(shop.sale.id, shop.sale.epoch, "due")
    await shop.parts.store.redis.zadd(due, {hold: 1})
    found = await wrong(shop.parts)
    assert set(found) == {
        "Webhooks to settle",
        "Refunds to pay out",
        "Mails to send",
        "Orders to expire",
        "Holds to release",
        "Gateway sandbox",
    }
    assert shop.sale.slug in found["Holds to release"].words


async def test_a_mail_that_was_given_up_is_told_with_its_reason(shop: Shop) -> None:
    order = await shop.order()
    await shop.execute(
        "INSERT INTO order_mails (order_id, kind, state, last_error)"
        " VALUES ($1, 'CONFIRMATION', 'FAILED', '550 no such user')",
        UUID(order.id),
    )
    found = await wrong(shop.parts)
    assert set(found) == {"Mails given up"}
    assert "550 no such user" in found["Mails given up"].words


async def test_a_store_that_throws_keys_away_is_told(shop: Shop) -> None:
    """Case 9."""
    redis = shop.parts.store.redis
    await redis.config_set("maxmemory-policy", "allkeys-lru")
    try:
        assert set(await wrong(shop.parts)) == {"Store"}
    finally:
        await redis.config_set("maxmemory-policy", "noeviction")


async def test_a_sale_that_the_store_has_lost_is_told(shop: Shop) -> None:
    await shop.parts.store.redis.flushall()
    assert set(await wrong(shop.parts)) == {f"Sale {shop.sale.slug}"}


async def test_a_database_of_an_older_release_is_told(shop: Shop) -> None:
    await shop.execute("UPDATE alembic_version SET version_num = '0001'")
    assert set(await wrong(shop.parts)) == {"Migrations"}


async def test_what_is_away_is_told_and_the_rest_is_still_looked_at(shop: Shop) -> None:
    (nobody,) = free_ports(1)
    settings = shop.parts.settings.model_copy(
        update={
            "store_url": f"redis://127.0.0.1:{nobody}",
            "smtp_url": f"smtp://127.0.0.1:{nobody}",
            "gateway_url": f"http://127.0.0.1:{nobody}",
            "gateway_secret_key": shop.parts.settings.visitor_key,
            "gateway_webhook_secret": shop.parts.settings.visitor_key,
        }
    )
    found = await examine(settings)
    assert {each.about for each in found if each.verdict is Verdict.WRONG} == {
        "Store",
        "Gateway sandbox",
        "Mail server",
    }
    nowhere = settings.model_copy(update={"database_url": f"postgresql://x@127.0.0.1:{nobody}/x"})
    found = await examine(nowhere)
    assert {each.about for each in found if each.verdict is Verdict.WRONG} == {"Database", "Store"}


def doctor(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fairdrop", "doctor", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_running_site_is_well_and_it_reads_at_80_columns(running_site: RunningSite) -> None:
    ran = doctor("--data-dir", str(running_site.data_dir))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Nothing is wrong." in ran.stdout
    assert all(len(line) <= 80 for line in ran.stdout.splitlines())
    as_json = doctor("--data-dir", str(running_site.data_dir), "--json")
    assert {each["about"] for each in json.loads(as_json.stdout)} >= {
        "Store",
        "Database",
        "Clocks",
        "Migrations",
        "Gateway sandbox",
        "Mail server",
        "Holds to release",
    }


def test_where_nothing_runs_it_says_so_and_what_to_do(tmp_path: object) -> None:
    ran = doctor("--data-dir", str(tmp_path))
    assert ran.returncode == 1
    assert "fairdrop up" in ran.stdout
