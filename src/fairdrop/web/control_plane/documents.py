"""What operators get. Times are RFC 3339 in UTC; amounts are integers in minor units."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from fairdrop.money import exponent
from fairdrop.web.wire import rfc3339

from .local_time import on_the_clock, zone_of

if TYPE_CHECKING:
    from fairdrop.catalog import Sale
    from fairdrop.checkout import Order, OrderHistory, Refund
    from fairdrop.inventory import Figures


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True)


class Variant(_Document):
    """A variant as it was set up; its live stock is in the figures."""

    id: str
    product: str
    name: str
    price_minor: int
    quantity: int


class SaleDocument(_Document):
    """A sale with all of its settings."""

    id: str
    slug: str
    name: str
    description: str
    mode: str = Field(
        description="scheduled, lobby, drawing, open, paused, draining or closed; as the store has"
        " it, when the store answers."
    )
    timezone: str
    opens_at: str = Field(description="In UTC.")
    opens_at_local: str = Field(description="On the clock of the sale's zone.")
    closes_at: str | None
    closes_at_local: str | None
    currency: str
    currency_exponent: int
    rate_per_s: float
    cap: int
    claim_ttl_ms: int
    lease_ttl_ms: int
    hold_ttl_ms: int
    payment_ttl_ms: int
    order_limit: int
    buyer_limit: int
    buffer_percent: int
    stock_source: str
    fee_bps: int
    accept_late: bool
    payment_attempts: int
    gateway: str
    capture: str
    burst_ms: int
    line_cap_factor: float
    adaptive: bool
    rate_min_per_s: float
    rate_max_per_s: float
    latency_target_ms: int
    restore_grace_ms: int
    lobby_ms: int
    window_ms: int
    beacon: str
    beacon_failure: str
    commitment: str | None = Field(
        description="The hash of the draw's secret seed, made with the sale (W4)."
    )
    version: int = Field(description="Grows with each change.")
    loaded: bool = Field(description="Whether the store has the sale: only then it can be joined.")
    variants: list[Variant]


class SaleList(_Document):
    """The newest sales, newest first."""

    sales: list[SaleDocument]


class VariantStock(_Document):
    """Live stock: ``free + buffer + held + sold = quantity``; the safety buffer stays unsold."""

    id: str
    name: str
    quantity: int
    free: int
    held: int
    sold: int
    buffer: int = 0


class StockList(_Document):
    """Live stock of the variants that a list named."""

    variants: list[VariantStock]


class StockLoadDocument(_Document):
    """How the load of stock from the warehouse stands, for the present opening time."""

    state: str = Field(description="waiting, failing, loaded or failed.")
    attempts: int
    error: str | None
    units: int | None = Field(description="What the warehouse had, over all variants.")
    message: str = Field(description="What people should know; empty when all is well.")


class FiguresDocument(_Document):
    """The live figures of a sale: the line and stock from the store, orders and money from the books.

    ``joined = lobby + waiting + called + admitted people inside + missed + left + done``; ``inside`` counts
    those who are called and those who are admitted, as the cap does.
    """

    mode: str
    lobby: int = Field(description="People who wait for the draw.")
    waiting: int
    called: int
    inside: int
    missed: int
    joined: int
    admitted: int = Field(description="Admissions given out so far.")
    left: int
    done: int
    served: int
    tail: int
    rate_per_s: float
    measured_rate_per_s: float
    pace_per_s: float = Field(description="The pace now: as set, or what the adaptive one found.")
    pace_reason: str = Field(
        description="Why the adaptive pace is what it is (up:healthy, down:slow, …); empty without."
    )
    pace_steps: dict[str, int] = Field(description="Its steps so far: up, down, kept.")
    outflow_per_s: float | None = Field(
        description="The smoothed outflow that waits are told by; null before it was measured."
    )
    line_cap: int | None = Field(description="People that the line takes; null: any number (W16).")
    forecast_until: int | None = Field(
        description="Units will probably last for positions up to this one; null without stock."
    )
    restoring_until_ms: int | None = Field(
        description="Nobody is called until then: a lost line is being restored (W15)."
    )
    restored: int = Field(description="Places given back since the line was lost.")
    restored_inside: int = Field(description="Of these, people who were inside.")
    lost_tail: int = Field(description="About how many places had been given out when it was lost.")
    cap: int
    server_time_ms: int
    variants: list[VariantStock]
    orders: dict[str, int] = Field(description="How many orders are in each state that occurs.")
    revenue_minor: int
    fees_minor: int
    refund_liability_minor: int = Field(description="Owed to buyers: refunds on their way.")
    currency: str
    currency_exponent: int
    stock_load: StockLoadDocument | None = Field(
        description="Only where the stock comes from the warehouse (H9)."
    )


class RestorationDocument(_Document):
    """How far a line is that the store had lost (W15)."""

    sale: str
    epoch: int = Field(description="Grows each time the store is filled anew.")
    restoring_until_ms: int | None = Field(
        description="Nobody is called until then; null: people are."
    )
    server_time_ms: int
    restored: int = Field(description="Places given back.")
    restored_inside: int = Field(description="Of these, people who were inside.")
    waiting: int
    lost_tail: int = Field(description="About how many places had been given out when it was lost.")


class Line(_Document):
    """What an order has of one variant."""

    variant: str
    product: str
    name: str
    quantity: int
    serials: list[int]
    price_minor: int


class PaymentState(_Document):
    """The payment at the gateway: CREATING, OPEN, AUTHORISED, SUCCEEDED or CLOSED."""

    state: str
    declines: int
    attempts_left: int
    last_decline: str | None


class OperatorOrderDocument(_Document):
    """An order as operators see it."""

    id: str
    sale: str
    buyer: str
    state: str
    email: str | None
    name: str | None
    currency: str
    currency_exponent: int
    subtotal_minor: int
    fee_minor: int
    total_minor: int
    refunded_minor: int
    created_at: str
    deadline: str
    lines: list[Line]
    payment: PaymentState | None


class OrderPage(_Document):
    """A page of orders, oldest first; ``next`` is the ``after`` of the next page."""

    orders: list[OperatorOrderDocument]
    next: str | None


class TransitionDocument(_Document):
    """One step of an order."""

    at: str
    from_state: str | None
    to_state: str
    cause: str


class DrawDocument(_Document):
    """How far the draw is; its public files have the rest."""

    sale: str
    state: str = Field(description="committed, fixed, drawn or filled.")
    beacon: str
    beacon_value: str | None
    entries: int | None
    root: str | None


class RefundDocument(_Document):
    """Money to give back (PENDING) or given back (SUCCEEDED)."""

    id: str
    order: str
    amount_minor: int
    fee_minor: int = Field(description="What of the amount was booking fee.")
    currency: str
    reason: str
    state: str
    attempts: int
    last_error: str | None
    created_at: str


class EntryDocument(_Document):
    """A row of the ledger; all rows of one reference and kind are one posting."""

    reference: str
    kind: str
    account: str
    currency: str
    debit_minor: int
    credit_minor: int
    posted_at: str


class AccountBalance(_Document):
    """An account in one currency: a debit balance is positive."""

    account: str
    currency: str
    currency_exponent: int
    debits_minor: int
    credits_minor: int
    balance_minor: int


class BalanceSheet(_Document):
    """Every account that was ever booked to."""

    balances: list[AccountBalance]


class TrialLine(_Document):
    """An account's net, in one of the two columns."""

    account: str
    debit_minor: int
    credit_minor: int


class TrialBalance(_Document):
    """The accounts of one currency; both columns add up to the same, or the books are wrong."""

    currency: str
    currency_exponent: int
    lines: list[TrialLine]
    debits_minor: int
    credits_minor: int
    balanced: bool


class OrderHistoryDocument(OperatorOrderDocument):
    """An order with everything that happened to it."""

    gateway: str
    transitions: list[TransitionDocument]
    refunds: list[RefundDocument]
    entries: list[EntryDocument]


def sale_document(sale: Sale, figures: Figures | None) -> SaleDocument:
    """The document of a sale; ``figures`` are the store's, None when it has not got the sale."""
    zone = zone_of(sale.timezone)
    settings = {
        name: getattr(sale, name)
        for name in SaleDocument.model_fields
        if name in sale.__struct_fields__ and name not in _SHOWN_OTHERWISE
    }
    return SaleDocument(
        **settings,
        mode=figures.mode if figures is not None else sale.mode,
        opens_at=rfc3339(sale.opens_at),
        opens_at_local=on_the_clock(sale.opens_at, zone),
        closes_at=rfc3339(sale.closes_at) if sale.closes_at else None,
        closes_at_local=on_the_clock(sale.closes_at, zone) if sale.closes_at else None,
        currency_exponent=exponent(sale.currency),
        loaded=figures is not None,
        variants=[
            Variant(
                id=variant.id,
                product=variant.product,
                name=variant.name,
                price_minor=variant.price_minor,
                quantity=variant.quantity,
            )
            for variant in sale.variants
        ],
    )


_SHOWN_OTHERWISE = {"mode", "opens_at", "closes_at", "variants"}


def order_document(order: Order) -> OperatorOrderDocument:
    """The document of an order. The payment page's address is the buyer's alone, and left out."""
    return OperatorOrderDocument(**_order_fields(order))


def history_document(history: OrderHistory) -> OrderHistoryDocument:
    """The document of an order with its history."""
    return OrderHistoryDocument(
        **_order_fields(history.order),
        gateway=history.order.gateway,
        transitions=[
            TransitionDocument(
                at=rfc3339(step.at),
                from_state=step.from_state,
                to_state=step.to_state,
                cause=step.cause,
            )
            for step in history.transitions
        ],
        refunds=[refund_document(refund) for refund in history.refunds],
        entries=[
            EntryDocument(**{**entry._asdict(), "posted_at": rfc3339(entry.posted_at)})
            for entry in history.entries
        ],
    )


def refund_document(refund: Refund) -> RefundDocument:
    """The document of a refund."""
    return RefundDocument(
        id=refund.id,
        order=refund.order,
        amount_minor=refund.amount_minor,
        fee_minor=refund.fee_minor,
        currency=refund.currency,
        reason=refund.reason,
        state=refund.state,
        attempts=refund.attempts,
        last_error=refund.last_error,
        created_at=rfc3339(refund.created_at),
    )


def _order_fields(order: Order) -> dict[str, object]:
    payment = order.payment
    return {
        "id": order.id,
        "sale": order.sale,
        "buyer": order.buyer,
        "state": order.state.value,
        "email": order.email,
        "name": order.name,
        "currency": order.currency,
        "currency_exponent": exponent(order.currency),
        "subtotal_minor": order.subtotal_minor,
        "fee_minor": order.fee_minor,
        "total_minor": order.total_minor,
        "refunded_minor": order.refunded_minor,
        "created_at": rfc3339(order.created_at),
        "deadline": rfc3339(order.deadline),
        "lines": [
            Line(
                variant=line.variant,
                product=line.product,
                name=line.name,
                quantity=line.quantity,
                serials=line.serials,
                price_minor=line.price_minor,
            )
            for line in order.lines
        ],
        "payment": PaymentState(
            state=payment.state,
            declines=payment.declines,
            attempts_left=payment.attempts_left,
            last_decline=payment.last_decline,
        )
        if payment is not None
        else None,
    }
