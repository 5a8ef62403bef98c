"""The books as operators get them: balances at a time, trial balance, journal (O10)."""

from __future__ import annotations

import asyncio
import csv
import io
import sys
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from fairdrop.checkout import Wanted
from fairdrop.ids import new_id
from tests.integration.checkout.shop import Shop
from tests.integration.control_plane.conftest import NewShop
from tests.integration.control_plane.own_parts import Json, problem

LEDGER = "/admin/v1/ledger"


async def get(client: httpx.AsyncClient, what: str, **params: str) -> Json:
    answer = await client.get(f"{LEDGER}/{what}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def busy(sell: NewShop, currency: str = "EUR") -> Shop:
    """A sale with a purchase, one that came late, and a refund of a unit that was paid out."""
    shop = await sell(5, currency=currency)
    order = await shop.paid(2)
    line = order.lines[0]
    wanted = Wanted(units=[(line.variant, line.serials[0])], reason="x")
    await shop.parts.refunds.grant(order.id, wanted, key=new_id(), actor="test")
    await shop.pay_refunds_now()
    late = await shop.pending(1)
    await shop.cancel(late)
    await shop.deliver(shop.gateway.take_money(late.id))
    await shop.settle()
    return shop


def by_account(sheet: Json) -> dict[str, int]:
    return {each["account"]: each["balance_minor"] for each in sheet["balances"]}


async def test_balances_are_those_of_the_moment_asked_for(
    client: httpx.AsyncClient, sell: NewShop
) -> None:
    before = datetime.now(UTC).isoformat()
    shop = await sell(5)
    order = await shop.paid(2)
    between = (await shop.fetch("SELECT now() AS now"))[0]["now"].isoformat()
    wanted = Wanted(reason="x")
    await shop.parts.refunds.grant(order.id, wanted, key=new_id(), actor="test")
    slug = shop.sale.slug
    assert by_account(await get(client, "balances", sale=slug, at=before)) == {}
    assert by_account(await get(client, "balances", sale=slug, at=between)) == {
        "GATEWAY_CLEARING": 9_900,
        "SALES": -9_000,
        "FEES": -900,
    }
    assert by_account(await get(client, "balances", sale=slug)) == {
        "GATEWAY_CLEARING": 9_900,
        "SALES": 0,
        "FEES": 0,
        "REFUND_LIABILITY": -9_900,
    }


async def test_the_columns_of_the_trial_balance_are_equal_in_each_currency(
    client: httpx.AsyncClient, sell: NewShop
) -> None:
    for currency in ("EUR", "JPY"):
        shop = await busy(sell, currency)
        (sheet,) = await get(client, "trial", sale=shop.sale.id)
        assert sheet["balanced"]
        assert sheet["debits_minor"] == sheet["credits_minor"] > 0
        assert sum(line["debit_minor"] for line in sheet["lines"]) == sheet["debits_minor"]
        lines = {line["account"]: line for line in sheet["lines"]}
        # One unit of two was kept; the late money is owed until it is paid back.
        assert lines["GATEWAY_CLEARING"]["debit_minor"] == 4_950 + 4_950
        assert lines["SALES"]["credit_minor"] == 4_500
        assert lines["REFUND_LIABILITY"]["credit_minor"] == 4_950
    everything = await get(client, "trial")
    assert {sheet["currency"] for sheet in everything} >= {"EUR", "JPY"}
    assert all(sheet["balanced"] for sheet in everything)


async def test_the_journal_as_csv_has_every_entry_once(
    client: httpx.AsyncClient, sell: NewShop
) -> None:
    shop = await busy(sell, "KWD")
    answer = await client.get(f"{LEDGER}/journal", params={"sale": shop.sale.slug})
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    found = sorted(
        (
            row["kind"],
            row["account"],
            row["currency"],
            int(row["debit_minor"]),
            int(row["credit_minor"]),
        )
        for row in rows
    )
    assert found == await shop.entries()
    assert [row["posted_at"] for row in rows] == sorted(row["posted_at"] for row in rows)
    clearing = next(row for row in rows if row["account"] == "GATEWAY_CLEARING")
    assert (clearing["debit"], clearing["credit"]) == ("9.900", "0.000")


async def bean_check(text: str, path: Path) -> tuple[int, str]:
    path.write_text(text, "utf-8")
    program = str(Path(sys.executable).with_name("bean-check"))
    process = await asyncio.create_subprocess_exec(
        program,
        "--no-cache",
        str(path),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    told, _ = await process.communicate()
    return process.returncode or 0, told.decode()


async def test_bean_check_accepts_the_journal_and_agrees_with_its_balances(
    client: httpx.AsyncClient, sell: NewShop, tmp_path: Path
) -> None:
    for currency in ("EUR", "JPY", "KWD"):
        await busy(sell, currency)
    answer = await client.get(f"{LEDGER}/journal", params={"format": "beancount"})
    text = answer.text
    assert await bean_check(text, tmp_path / "books.beancount") == (0, "")
    assert "Assets:Gateway:Clearing  99.00 EUR" in text
    assert "Assets:Gateway:Clearing  9900 JPY" in text  # yen have no decimals (case 23)
    # The control: one amount changed by one minor unit is seen, by posting and by balance.
    for wrong in (text.replace("-9.000 KWD", "-9.001 KWD", 1), _one_cent_off(text)):
        assert wrong != text
        status, told = await bean_check(wrong, tmp_path / "wrong.beancount")
        assert (status, bool(told)) == (1, True)


def _one_cent_off(text: str) -> str:
    head, mark, tail = text.rpartition("balance Income:Sales  ")
    return head + mark + "1" + tail


@pytest.mark.parametrize("what", ["balances", "trial", "journal"])
async def test_what_is_asked_wrongly_is_told_so(client: httpx.AsyncClient, what: str) -> None:
    at = "since" if what == "journal" else "at"
    for value in ("yesterday", "2026-03-01T08:30:00", ""):
        answer = await client.get(f"{LEDGER}/{what}", params={at: value})
        problem(answer, 422, "invalid_request")
    answer = await client.get(f"{LEDGER}/{what}", params={"sale": "no-such-sale"})
    problem(answer, 404, "no_such_sale")
    assert (await client.get(f"{LEDGER}/{what}", headers={"authorization": ""})).status_code == 401
