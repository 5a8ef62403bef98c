"""Which accounts a happening moves: postings as data, balanced by construction (O10)."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple
from uuid import UUID


class Account(StrEnum):
    """The accounts of the books."""

    GATEWAY_CLEARING = "GATEWAY_CLEARING"
    SALES = "SALES"
    FEES = "FEES"
    REFUND_LIABILITY = "REFUND_LIABILITY"
    GATEWAY_COSTS = "GATEWAY_COSTS"
    DISPUTES = "DISPUTES"


class Entry(NamedTuple):
    """One row of the ledger. All rows of one (reference, kind) are one posting."""

    reference: UUID
    kind: str
    account: Account
    order_id: UUID
    sale_id: UUID
    currency: str
    debit_minor: int
    credit_minor: int


_CLEARING, _SALES, _FEES, _LIABILITY = (
    Account.GATEWAY_CLEARING,
    Account.SALES,
    Account.FEES,
    Account.REFUND_LIABILITY,
)


def payment(
    order_id: UUID, sale_id: UUID, currency: str, subtotal_minor: int, fee_minor: int
) -> list[Entry]:
    """A paid order: the gateway owes us the total, which is revenue and fee."""
    entries = []
    total = subtotal_minor + fee_minor
    if total:
        entries.append(Entry(order_id, "PAYMENT", _CLEARING, order_id, sale_id, currency, total, 0))
    if subtotal_minor:
        entries.append(
            Entry(order_id, "PAYMENT", _SALES, order_id, sale_id, currency, 0, subtotal_minor)
        )
    if fee_minor:
        entries.append(Entry(order_id, "PAYMENT", _FEES, order_id, sale_id, currency, 0, fee_minor))
    return entries


def unearned(
    refund_id: UUID, order_id: UUID, sale_id: UUID, currency: str, amount_minor: int
) -> list[Entry]:
    """Money that came in and is not ours (O7): owed to the buyer at once, revenue untouched."""
    return [
        Entry(refund_id, "UNEARNED", _CLEARING, order_id, sale_id, currency, amount_minor, 0),
        Entry(refund_id, "UNEARNED", _LIABILITY, order_id, sale_id, currency, 0, amount_minor),
    ]


def refund_owed(  # noqa: PLR0913 - the columns of the posting
    refund_id: UUID,
    order_id: UUID,
    sale_id: UUID,
    currency: str,
    subtotal_minor: int,
    fee_minor: int,
) -> list[Entry]:
    """Revenue (and fee) taken back for a refund that an operator has granted (O9)."""
    entries = []
    if subtotal_minor:
        entries.append(
            Entry(refund_id, "REFUND_OWED", _SALES, order_id, sale_id, currency, subtotal_minor, 0)
        )
    if fee_minor:
        entries.append(
            Entry(refund_id, "REFUND_OWED", _FEES, order_id, sale_id, currency, fee_minor, 0)
        )
    total = subtotal_minor + fee_minor
    entries.append(
        Entry(refund_id, "REFUND_OWED", _LIABILITY, order_id, sale_id, currency, 0, total)
    )
    return entries


def refund_paid(
    refund_id: UUID, order_id: UUID, sale_id: UUID, currency: str, amount_minor: int
) -> list[Entry]:
    """The gateway has given the money back: the liability is met."""
    return [
        Entry(refund_id, "REFUND_PAID", _LIABILITY, order_id, sale_id, currency, amount_minor, 0),
        Entry(refund_id, "REFUND_PAID", _CLEARING, order_id, sale_id, currency, 0, amount_minor),
    ]
