"""Orders as the rest of Fairdrop sees them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from .rules import OrderState


class OrderLine(msgspec.Struct, frozen=True):
    """What an order has of one variant; ``serials`` are the concrete units."""

    variant: str
    product: str
    name: str
    quantity: int
    serials: list[int]
    price_minor: int


class Payment(msgspec.Struct, frozen=True):
    """The payment of an order. ``url`` is the gateway's page, for the buyer's browser only."""

    url: str | None
    state: str
    declines: int
    attempts_left: int
    last_decline: str | None


class Order(msgspec.Struct, frozen=True):
    """One order. Amounts in minor units of ``currency``."""

    id: str
    sale: str
    buyer: str
    state: OrderState
    currency: str
    subtotal_minor: int
    fee_minor: int
    total_minor: int
    refunded_minor: int
    deadline: datetime
    created_at: datetime
    lines: list[OrderLine]
    payment: Payment | None = None
    email: str | None = None
    name: str | None = None
    gateway: str = ""
    capture: str = "automatic"
    epoch: int = 0


_LATE = ":late"


def late_hold(order: str) -> str:
    """The store's name of units taken anew for an order whose money came late (O7).

    Not the order's id: that is the hold which the order has given up, and whoever is still about to
    tell the store so must not free the new units.
    """
    return order + _LATE


def order_of_hold(hold: str) -> tuple[str, bool]:
    """The order that decides about a hold, and whether it is the late one."""
    return hold.removesuffix(_LATE), hold.endswith(_LATE)


class StartRefusal(StrEnum):
    """Why a checkout does not start; each is the ``code`` of the answer."""

    NO_RESERVATION = "no_reservation"
    RESERVATION_EXPIRED = "reservation_expired"
    ALREADY_ORDERED = "already_ordered"
    UNITS_LOST = "units_lost"
    PERSON_LIMIT = "person_limit"


class PayRefusal(StrEnum):
    """Why an order cannot be paid or cancelled; each is the ``code`` of the answer."""

    NO_ORDER = "no_order"
    NOT_PAYABLE = "order_not_payable"
    NOT_CANCELLABLE = "order_not_cancellable"


class NewOrder(msgspec.Struct, frozen=True):
    """An order to write, with the price that its buyer was shown."""

    id: str
    sale: str
    buyer: str
    admission: str | None
    currency: str
    fee_minor: int
    subtotal_minor: int
    deadline: datetime
    lines: list[tuple[str, list[int], int]]
    """(variant, serials, price in minor units)"""
    email: str | None = None
    name: str | None = None
    verified: list[str] = []
    """Marks of phones and payment methods: a rebuilt store knows them again (H6, H8)."""


class InsertOutcome(StrEnum):
    """What became of writing an order."""

    WRITTEN = "written"
    EXISTS = "exists"
    UNITS_TAKEN = "units_taken"


class Inserted(msgspec.Struct, frozen=True):
    """The answer to writing an order; ``lost`` alternates variants and serials of other orders."""

    outcome: InsertOutcome
    lost: list[str | int] = []
    created_at: datetime | None = None
    """When it was WRITTEN."""
