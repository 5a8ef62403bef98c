"""The books as text for people who keep books: CSV, and beancount (pure; O10).

Beancount's text form is that of its language reference, version 3: `bean-check` accepts what is
written here, and checks that every posting balances and that the closing balances are right.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from datetime import UTC, date, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING

from fairdrop.money import plain

from .rules import Account

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .records import Balance, JournalEntry

ACCOUNTS: MappingProxyType[str, str] = MappingProxyType(
    {
        Account.GATEWAY_CLEARING: "Assets:Gateway:Clearing",
        Account.DISPUTES: "Assets:Gateway:Disputes",
        Account.REFUND_LIABILITY: "Liabilities:Refunds",
        Account.SALES: "Income:Sales",
        Account.FEES: "Income:Fees",
        Account.GATEWAY_COSTS: "Expenses:Gateway",
    }
)
"""Our accounts by beancount's names, whose first word says of which kind each is."""

COLUMNS = (
    "posted_at",
    "kind",
    "reference",
    "order",
    "sale",
    "account",
    "currency",
    "debit",
    "credit",
    "debit_minor",
    "credit_minor",
)


class Csv:
    """A journal as CSV, one row an entry, with a header."""

    media_type = "text/csv; charset=utf-8"

    def begin(self) -> str:
        """The header."""
        return _row(COLUMNS)

    def posting(self, entries: list[JournalEntry]) -> str:
        """The rows of one posting."""
        return "".join(
            _row(
                (
                    entry.posted_at.isoformat(),
                    entry.kind,
                    entry.reference,
                    entry.order,
                    entry.sale,
                    entry.account,
                    entry.currency,
                    plain(entry.debit_minor, entry.currency),
                    plain(entry.credit_minor, entry.currency),
                    entry.debit_minor,
                    entry.credit_minor,
                )
            )
            for entry in entries
        )

    def end(self) -> str:
        """Nothing."""
        return ""


class Beancount:
    """A journal as beancount text: accounts opened, a transaction a posting, closing balances."""

    media_type = "text/plain; charset=utf-8"

    def __init__(self) -> None:
        """Nothing is summed yet."""
        self._sums: defaultdict[tuple[str, str], int] = defaultdict(int)
        self._last = date(1970, 1, 1)

    def begin(self) -> str:
        """Title and accounts."""
        opened = "".join(f"1970-01-01 open {name}\n" for name in ACCOUNTS.values())
        return f'option "title" "Fairdrop"\n\n{opened}'

    def posting(self, entries: list[JournalEntry]) -> str:
        """One transaction."""
        first = entries[0]
        day = first.posted_at.astimezone(UTC).date()
        self._last = max(self._last, day)
        lines = [f'\n{day.isoformat()} * "{first.kind}" "order {first.order}"']
        lines += [f'  {name}: "{text}"' for name, text in _metadata(first)]
        for entry in entries:
            amount = entry.debit_minor - entry.credit_minor
            self._sums[entry.account, entry.currency] += amount
            shown = f"{plain(amount, entry.currency)} {entry.currency}"
            lines.append(f"  {ACCOUNTS[entry.account]}  {shown}")
        return "\n".join(lines) + "\n"

    def end(self) -> str:
        """What each account comes to, for whoever reads this to check."""
        day = (self._last + timedelta(days=1)).isoformat()
        lines = [
            f"{day} balance {ACCOUNTS[account]}  {plain(total, currency)} {currency}\n"
            for (account, currency), total in sorted(self._sums.items())
        ]
        return "\n" + "".join(lines) if lines else ""


def _metadata(entry: JournalEntry) -> Iterator[tuple[str, str]]:
    yield "reference", entry.reference
    yield "sale", entry.sale
    yield "at", entry.posted_at.isoformat()


def _row(values: Iterable[object]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerow(values)
    return text.getvalue()


def trial(balances: Iterable[Balance]) -> dict[str, tuple[list[tuple[str, int, int]], int, int]]:
    """The trial balance by currency: accounts with their net debit or credit, and both totals.

    The totals are equal, or the books are wrong.
    """
    found: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
    for each in balances:
        net = each.debits_minor - each.credits_minor
        found[each.currency].append((each.account, max(net, 0), max(-net, 0)))
    return {
        currency: (rows, sum(row[1] for row in rows), sum(row[2] for row in rows))
        for currency, rows in sorted(found.items())
    }
