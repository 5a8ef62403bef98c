"""One examination: everything is looked at, and what does not answer is said to."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from redis.exceptions import RedisError

from fairdrop.app import check_settings, open_parts
from fairdrop.drivers.keys import sale_key
from fairdrop.drivers.sale_scripts import SaleNotLoaded
from fairdrop.drivers.store import Store
from fairdrop.errors import ConfigurationError, DatabaseUnavailable, FairdropError, StoreUnavailable
from fairdrop.ids import new_id
from fairdrop.notifications import PostUnavailable
from fairdrop.schema.migrate import newest_revision

from . import rules
from .model import Finding, Verdict
from .records import SQL, waiting

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fairdrop.app import Parts
    from fairdrop.settings import Settings

LATE_MS = 60_000
"""How long a hold may be past its deadline before nobody seems to sweep."""
ANSWER_S = 5.0
_STORE_ADVICE = (
    "Is it running, and is FAIRDROP_STORE_URL right? Meanwhile nobody is admitted (503)."
)
_DATABASE_ADVICE = "Is it running, and is FAIRDROP_DATABASE_URL right? Meanwhile nothing is sold."


async def examine(settings: Settings) -> list[Finding]:
    """Look at configuration, store, database, gateways, mail server and all work that waits.

    Changes nothing. Raises nothing that an installation can cause: what cannot be asked is a finding.
    """
    try:
        check_settings(settings)
    except ConfigurationError as error:
        advice = (
            "Set it, or give --data-dir for what `fairdrop up` runs; `fairdrop config` lists all."
        )
        return [Finding("Configuration", Verdict.WRONG, str(error), advice)]
    found = [Finding("Configuration", Verdict.WELL, "complete")]
    try:
        async with open_parts(settings) as parts:
            found += [each async for each in _examine(parts)]
    except ConfigurationError as error:
        found[0] = Finding(
            "Configuration", Verdict.WRONG, str(error), "`fairdrop config` lists all."
        )
    except DatabaseUnavailable as error:
        found.append(Finding("Database", Verdict.WRONG, f"away: {error}", _DATABASE_ADVICE))
        store = Store(settings.store_url or "", timeout_s=ANSWER_S)
        try:
            found.append(await _store(store))
        finally:
            await store.close()
    return found


async def _examine(parts: Parts) -> AsyncIterator[Finding]:
    store = await _store(parts.store)
    yield store
    async with parts.database.connection() as connection:
        revision = await connection.fetchval(SQL["revision"])
    schema = rules.judge_revision(revision, newest_revision())
    yield Finding("Database", Verdict.WELL, "answers")
    yield schema
    if store.verdict is Verdict.WELL:
        yield await _clocks(parts)
    if schema.verdict is Verdict.WELL:
        async for each in _work(parts):
            yield each
        if store.verdict is Verdict.WELL:
            async for each in _sales(parts):
                yield each
    for name in parts.gateways:
        yield await _gateway(parts, name)
    yield await _mail_server(parts)


async def _store(store: Store) -> Finding:
    began = time.perf_counter()
    try:
        async with asyncio.timeout(ANSWER_S):
            await store.ping()
            took_ms = (time.perf_counter() - began) * 1_000
            # INFO tells where hosted stores refuse CONFIG.
            memory = await store.redis.info("memory")
            persistence = await store.redis.info("persistence")
    except (StoreUnavailable, RedisError, OSError, TimeoutError) as error:
        words = f"away: {str(error) or 'no answer in time'}"
        return Finding("Store", Verdict.WRONG, words, _STORE_ADVICE)
    policy = memory.get("maxmemory_policy", "unknown")
    if policy != "noeviction":
        return Finding(
            "Store",
            Verdict.WRONG,
            f"throws keys away when it is full (maxmemory-policy is {policy})",
            "CONFIG SET maxmemory-policy noeviction, in its configuration file too.",
        )
    if not persistence.get("aof_enabled"):
        return Finding(
            "Store",
            Verdict.NOTE,
            f"answers in {took_ms:.1f} ms, keeps no append-only file",
            "A restart loses the line; people get their places back by their receipts.",
        )
    return Finding("Store", Verdict.WELL, f"answers in {took_ms:.1f} ms, keeps every key")


async def _clocks(parts: Parts) -> Finding:
    """Each other clock is read between two looks at ours, and moved to one moment of ours."""
    try:
        before = time.time()
        seconds, micros = await parts.store.redis.time()
        between = time.time()
        async with parts.database.connection() as connection:
            began = time.time()
            database_ms = await connection.fetchval(SQL["clock"])
            after = time.time()
    except (RedisError, OSError, DatabaseUnavailable) as error:
        return Finding("Clocks", Verdict.NOTE, f"could not be compared: {error}")
    store_off_ms = seconds * 1_000 + micros / 1_000 - (before + between) / 2 * 1_000
    database_off_ms = database_ms - (began + after) / 2 * 1_000
    return rules.judge_clocks(0.0, store_off_ms, database_off_ms)


async def _work(parts: Parts) -> AsyncIterator[Finding]:
    async with parts.database.connection() as connection:
        found = await waiting(connection)
        failed = await connection.fetchrow(SQL["mails_failed"])
        needed = {
            row["gateway"]: row["open"] for row in await connection.fetch(SQL["gateways_needed"])
        }
    assert failed is not None, "an aggregate has a row"
    for each in (
        *rules.judge_waiting(found),
        *rules.judge_failed_mails(failed["mails"], failed["error"]),
        *rules.judge_gateways(needed, parts.gateways),
    ):
        yield each


async def _sales(parts: Parts) -> AsyncIterator[Finding]:
    overdue: dict[str, int] = {}
    for sale in await parts.catalog.running():
        try:
            figures = await parts.inventory.figures(sale.ref, [])
            key = sale_key(sale.id, sale.epoch, "due")
            overdue[sale.slug] = await parts.store.redis.zcount(
                key, "-inf", figures.now_ms - LATE_MS
            )
        except SaleNotLoaded:
            yield Finding(
                f"Sale {sale.slug}",
                Verdict.WRONG,
                "not in the store",
                "Start `fairdrop worker`: it fills the store from the database.",
            )
        except (StoreUnavailable, RedisError, OSError) as error:
            yield Finding(f"Sale {sale.slug}", Verdict.WRONG, f"away: {error}", _STORE_ADVICE)
    yield rules.judge_overdue_holds(overdue)


async def _gateway(parts: Parts, name: str) -> Finding:
    about = f"Gateway {name}"
    try:
        async with asyncio.timeout(ANSWER_S):
            await parts.gateways[name].find(new_id())
    except (FairdropError, TimeoutError) as error:
        words = f"does not serve us: {str(error) or 'no answer in time'}"
        return Finding(about, Verdict.WRONG, words, "Check its address and key; is it down?")
    return Finding(about, Verdict.WELL, "answers")


async def _mail_server(parts: Parts) -> Finding:
    if parts.mailer is None:
        return Finding("Mail server", Verdict.NOTE, "none: orders are confirmed without a mail")
    try:
        async with asyncio.timeout(ANSWER_S):
            await parts.mailer.check()
    except (PostUnavailable, TimeoutError) as error:
        advice = "Check FAIRDROP_SMTP_URL and FAIRDROP_SMTP_PASSWORD; mails wait meanwhile."
        return Finding("Mail server", Verdict.WRONG, f"away: {str(error) or 'no answer'}", advice)
    return Finding("Mail server", Verdict.WELL, "takes mails")
