"""The books: double entry, insert only, balanced by the database itself (SPEC O10)."""

from .records import Balance, PostedEntry, balances, entries_of, insert_entries
from .rules import Account, Entry, payment, refund_owed, refund_paid, unearned

__all__ = [
    "Account",
    "Balance",
    "Entry",
    "PostedEntry",
    "balances",
    "entries_of",
    "insert_entries",
    "payment",
    "refund_owed",
    "refund_paid",
    "unearned",
]
