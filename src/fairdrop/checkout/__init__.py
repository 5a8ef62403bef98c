"""Checkout: from a hold to a confirmed order or a refund, whatever dies in between (SPEC O)."""

from .inbox import Inbox
from .loading import Loader
from .model import Order, OrderLine, Payment, PayRefusal, StartRefusal
from .reconcile import Reconciler
from .rules import TRANSITIONS, Cause, OrderState
from .service import Checkout
from .settle import Settlement
from .sweep import Sweeper, Swept

__all__ = [
    "TRANSITIONS",
    "Cause",
    "Checkout",
    "Inbox",
    "Loader",
    "Order",
    "OrderLine",
    "OrderState",
    "PayRefusal",
    "Payment",
    "Reconciler",
    "Settlement",
    "StartRefusal",
    "Sweeper",
    "Swept",
]
