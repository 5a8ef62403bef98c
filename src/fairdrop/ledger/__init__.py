"""The books: double entry, insert only, balanced by the database itself (SPEC O10)."""

from .books import Beancount, Csv, trial
from .records import (
    Balance,
    JournalEntry,
    PostedEntry,
    balances,
    entries_of,
    insert_entries,
    journal,
)
from .rules import Account, Entry, payment, refund_owed, refund_paid, unearned

__all__ = [
    "Account",
    "Balance",
    "Beancount",
    "Csv",
    "Entry",
    "JournalEntry",
    "PostedEntry",
    "balances",
    "entries_of",
    "insert_entries",
    "journal",
    "payment",
    "refund_owed",
    "refund_paid",
    "trial",
    "unearned",
]
