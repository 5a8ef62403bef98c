"""What an audit says: differences in words, and the figures of a sale."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What can be different. The value is the name that programs see."""

    # The store against itself and the database.
    SALE_NOT_LOADED = "sale_not_loaded"
    STOCK_SUM = "stock_sum"
    STOCK_QUANTITY = "stock_quantity"
    STOCK_HELD = "stock_held"
    STOCK_SOLD = "stock_sold"
    SERIAL_TWICE = "serial_twice"
    SERIAL_LOST = "serial_lost"
    SERIAL_UNKNOWN = "serial_unknown"
    FREE_UNIT_TAKEN = "free_unit_taken"
    HOLD_OVERDUE = "hold_overdue"
    HOLD_DIFFERS = "hold_differs"
    HOLD_MISSING = "hold_missing"
    # Orders against their audit, lines, units, payments and refunds.
    ORDER_UNEXPLAINED = "order_unexplained"
    ORDER_WITHOUT_LINES = "order_without_lines"
    ORDER_SUBTOTAL = "order_subtotal"
    PAYMENT_MISSING = "payment_missing"
    PAYMENT_UNUSED = "payment_unused"
    REFUND_EXCEEDS_PAYMENT = "refund_exceeds_payment"
    ORDER_REFUNDED_SUM = "order_refunded_sum"
    ORDER_REFUND_STATE = "order_refund_state"
    UNIT_MISSING = "unit_missing"
    UNIT_UNEXPECTED = "unit_unexpected"
    UNIT_STATE = "unit_state"
    SOLD_TWICE = "sold_twice"
    # The ledger against itself, orders and refunds.
    POSTING_UNBALANCED = "posting_unbalanced"
    ENTRY_MISSING = "entry_missing"
    ENTRY_UNEXPECTED = "entry_unexpected"
    ENTRY_AMOUNT = "entry_amount"
    REFUND_SHARE = "refund_share"
    REVENUE = "revenue"
    # The gateways' own records against orders and refunds.
    GATEWAY_NOT_CONFIGURED = "gateway_not_configured"
    PAID_WITHOUT_ORDER = "paid_without_order"
    DUPLICATE_CHARGE = "duplicate_charge"
    CHARGE_AMOUNT = "charge_amount"
    ORDER_WITHOUT_CHARGE = "order_without_charge"
    REFUND_UNKNOWN = "refund_unknown"
    REFUND_AMOUNT = "refund_amount"
    REFUND_NOT_SETTLED = "refund_not_settled"
    REFUND_NOT_AT_GATEWAY = "refund_not_at_gateway"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as it has to be.

    ``subject`` names what it is about, as pairs of a word and an id; ``expected`` and ``found`` are
    words for people.
    """

    kind: Kind
    subject: tuple[tuple[str, str], ...]
    expected: str
    found: str

    @property
    def words(self) -> str:
        """One sentence."""
        subject = ", ".join(f"{word} {name}" for word, name in self.subject)
        return f"{self.kind} ({subject}): expected {self.expected}; found {self.found}"


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of one sale, each read where it is decided; amounts in minor units.

    ``units_held``, ``units_free``, ``joined`` and ``admitted`` are the store's, and so count from the
    store's present epoch on; ``admitted`` counts admissions given out to people who were called and
    claimed. ``paid_without_order`` and ``duplicate_charges`` count charges in the gateways' own
    records; everything else is the database's. ``oversold`` is 0 unless a unit was sold twice, or
    more or other units than there are. ``orders_open`` are those that can still be paid.
    """

    units_total: int
    units_sold: int
    units_held: int
    units_free: int
    oversold: int
    orders_open: int
    orders_confirmed: int
    orders_expired: int
    orders_failed: int
    orders_cancelled: int
    orders_refunded: int
    orders_partially_refunded: int
    refunds_pending: int
    paid_without_order: int
    duplicate_charges: int
    ledger_debits_minor: int
    ledger_credits_minor: int
    ledger_variance_minor: int
    revenue_minor: int
    fees_minor: int
    currency: str
    joined: int
    admitted: int
