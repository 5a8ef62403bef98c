"""The command line against a whole site that runs, as an operator uses it."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import uuid
from typing import Any

import asyncpg
import pytest

from tests.running_site import RunningSite
from tests.unit.cli.command import Ran, run

pytestmark = pytest.mark.xdist_group("running_site")


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FAIRDROP_URL", "FAIRDROP_ADMIN_KEY", "FAIRDROP_STORE_URL"):
        monkeypatch.delenv(name, raising=False)


def sale(site: RunningSite, *arguments: str) -> Ran:
    ran = run("sale", "--data-dir", str(site.data_dir), *arguments)
    assert ran.status == 0, ran.errors
    return ran


def as_json(site: RunningSite, *arguments: str) -> Any:
    return json.loads(sale(site, *arguments, "--json").output)


def test_a_sale_is_set_up_steered_and_watched_from_the_command_line(
    running_site: RunningSite,
) -> None:
    slug = f"cli-{uuid.uuid4().hex[:8]}"
    sale(
        running_site,
        *("create", "Rooftop concert 🎸", "--slug", slug, "--opens", "+1h", "--rate", "5"),
        *("--variant", "Standing:45.00:100", "--variant", "Seat:80.00:50"),
    )
    shown = as_json(running_site, "show", slug)
    assert (shown["mode"], shown["loaded"], shown["rate_per_s"]) == ("scheduled", True, 5)
    assert slug in sale(running_site, "list").output
    assert sale(running_site, "open", slug).output == f"{slug} is open.\n"
    assert sale(running_site, "pause", slug).output == f"{slug} is paused.\n"
    assert sale(running_site, "resume", slug).output == f"{slug} is open.\n"
    assert "110 units, 110 free" in sale(running_site, "stock", slug, "Standing", "10").output
    assert "45 units, 45 free" in sale(running_site, "stock", slug, "2", "-5").output
    table = sale(running_site, "show", slug).output
    for words in ("Rooftop concert 🎸", "45.00 EUR", "0 waiting", "none yet", "110"):
        assert words in table
    assert "no such orders" in sale(running_site, "orders", slug).output
    assert sale(running_site, "close", slug, "--yes").output == f"{slug} is closed.\n"
    refused = run("sale", "--data-dir", str(running_site.data_dir), "pause", slug)
    assert refused.status == 1
    assert "closed" in refused.errors


def test_a_wrong_key_is_told(running_site: RunningSite) -> None:
    ran = run("sale", "list", FAIRDROP_URL=running_site.url, FAIRDROP_ADMIN_KEY="wrong")
    assert (ran.status, "FAIRDROP_ADMIN_KEY" in ran.errors) == (1, True)


def test_an_audit_of_what_runs_is_clean_and_a_planted_difference_fails_it(
    running_site: RunningSite,
) -> None:
    slug = f"audit-{uuid.uuid4().hex[:8]}"
    created = running_site.create_sale(slug)
    arguments = ("audit", "--data-dir", str(running_site.data_dir), "--sale", slug)
    clean = run(*arguments)
    assert clean.status == 0, clean.output + clean.errors
    assert "Everything agrees" in clean.output

    async def tamper(by: int) -> None:
        connection = await asyncpg.connect(running_site.database_url)
        sql = "UPDATE variants SET quantity = quantity + $2 WHERE id = $1"
        await connection.execute(sql, uuid.UUID(created["variants"][0]["id"]), by)
        await connection.close()

    asyncio.run(tamper(-1))
    try:
        broken = run(*arguments)
        assert broken.status == 1
        assert "stock_quantity" in broken.output
        assert "1 difference." in broken.output
        assert all(len(line) <= 80 for line in broken.output.splitlines())
        (found,) = json.loads(run(*arguments, "--json").output)
        assert found["kind"] == "stock_quantity"
        assert found["subject"]["sale"] == created["id"]
        assert (found["expected"], found["found"]) == (
            "49 units, as in the database",
            "50 in the store",
        )
    finally:
        asyncio.run(tamper(1))
    assert run(*arguments).status == 0
    unknown = run("audit", "--data-dir", str(running_site.data_dir), "--sale", "none")
    assert (unknown.status, "there is no sale none" in unknown.errors) == (2, True)


def test_the_program_itself_ends_without_a_traceback(running_site: RunningSite) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", *f"fairdrop sale --data-dir {running_site.data_dir} show x".split()],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    assert ran.stdout == ""
    assert ran.stderr == "fairdrop: There is no sale of this id or slug. (no_such_sale)\n"


def test_the_books_are_read_and_an_order_is_refunded_from_the_command_line(
    running_site: RunningSite,
) -> None:
    where = ("--data-dir", str(running_site.data_dir))
    trial = run("ledger", *where, "trial", "--json")
    assert trial.status == 0, trial.errors
    assert all(sheet["balanced"] for sheet in json.loads(trial.output))
    journal = run("ledger", *where, "journal", "--format", "beancount")
    assert journal.output.startswith('option "title" "Fairdrop"')
    assert run("ledger", *where, "journal").output.startswith("posted_at,kind,reference")
    assert run("ledger", *where, "balances").output.startswith("account")
    refused = run("ledger", *where, "balances", "--at", "yesterday")
    assert (refused.status, "at" in refused.errors) == (1, True)
    order = str(uuid.uuid4())
    unknown = run("order", *where, "refund", order, "--reason", "x", "--amount", "10.00")
    assert (unknown.status, "no order" in unknown.errors) == (1, True)
    wrong = run("order", *where, "refund", order, "--reason", "x", "--unit", "nonsense")
    assert (wrong.status, "VARIANT:SERIAL" in wrong.errors) == (2, True)
