"""The books: balances at a time, trial balance, journal as CSV or beancount text (O10)."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import AwareDatetime
from starlette.responses import StreamingResponse

from fairdrop import ledger
from fairdrop.money import exponent
from fairdrop.web.wire import Problem

from .documents import AccountBalance, BalanceSheet, TrialBalance, TrialLine
from .problems import NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from fairdrop.app import Parts

At = Annotated[
    AwareDatetime | None, Query(description="As of this moment (with an offset); now without it.")
]
SaleName = Annotated[
    str | None, Query(max_length=64, description="One sale's slug or id; all without it.")
]


class JournalFormat(StrEnum):
    """How the journal is written."""

    CSV = "csv"
    BEANCOUNT = "beancount"


def router(parts: Parts) -> APIRouter:
    """The routes of the books."""
    routes = APIRouter(tags=["ledger"])

    async def sale_id(name: str | None) -> str | None:
        if name is None:
            return None
        found = await parts.catalog.sale(name)
        if found is None:
            raise Problem(404, "no_such_sale", "There is no sale of this id or slug.")
        return found.id

    @routes.get("/ledger/balances", responses=NOT_FOUND)
    async def ledger_balances(at: At = None, sale: SaleName = None) -> BalanceSheet:
        """What each account has had, by currency, up to a moment."""
        found = await _balances(parts, await sale_id(sale), at)
        return BalanceSheet(
            balances=[
                AccountBalance(
                    account=each.account,
                    currency=each.currency,
                    currency_exponent=exponent(each.currency),
                    debits_minor=each.debits_minor,
                    credits_minor=each.credits_minor,
                    balance_minor=each.debits_minor - each.credits_minor,
                )
                for each in found
            ]
        )

    @routes.get("/ledger/trial", responses=NOT_FOUND)
    async def ledger_trial(at: At = None, sale: SaleName = None) -> list[TrialBalance]:
        """The trial balance of each currency: debits and credits add up to the same."""
        found = ledger.trial(await _balances(parts, await sale_id(sale), at))
        return [
            TrialBalance(
                currency=currency,
                currency_exponent=exponent(currency),
                lines=[
                    TrialLine(account=account, debit_minor=debit, credit_minor=credit)
                    for account, debit, credit in rows
                ],
                debits_minor=debits,
                credits_minor=credits_,
                balanced=debits == credits_,
            )
            for currency, (rows, debits, credits_) in found.items()
        ]

    @routes.get("/ledger/journal", responses=NOT_FOUND, response_class=StreamingResponse)
    async def ledger_journal(
        written: Annotated[
            JournalFormat, Query(alias="format", description="csv, or beancount text.")
        ] = JournalFormat.CSV,
        sale: SaleName = None,
        since: Annotated[AwareDatetime | None, Query(description="From this moment on.")] = None,
        until: Annotated[AwareDatetime | None, Query(description="Up to this moment.")] = None,
    ) -> StreamingResponse:
        """Every posting, oldest first: one row an entry, or one transaction a posting."""
        writer = ledger.Csv() if written is JournalFormat.CSV else ledger.Beancount()
        text = _journal(parts, writer, await sale_id(sale), since, until)
        return StreamingResponse(text, media_type=writer.media_type)

    return routes


async def _balances(parts: Parts, sale: str | None, at: datetime | None) -> list[ledger.Balance]:
    async with parts.database.connection() as connection:
        return await ledger.balances(connection, sale, at)


async def _journal(
    parts: Parts,
    writer: ledger.Csv | ledger.Beancount,
    sale: str | None,
    since: datetime | None,
    until: datetime | None,
) -> AsyncIterator[str]:
    yield writer.begin()
    async with (
        parts.database.connection() as connection,
        connection.transaction(isolation="repeatable_read", readonly=True),
    ):
        key = UUID(sale) if sale else None
        async for posting in ledger.journal(connection, key, since, until):
            yield writer.posting(posting)
    yield writer.end()
