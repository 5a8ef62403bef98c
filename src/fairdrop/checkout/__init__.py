"""Checkout: from a hold to a confirmed order or a refund, whatever dies in between (SPEC O)."""

from .answers import Answers, KnownAnswer
from .desk import OrderDesk, OrderHistory, Step
from .inbox import Inbox
from .loading import Loader
from .model import Order, OrderLine, Payment, PayRefusal, StartRefusal
from .pricing import Price, price_of, step_minor
from .reconcile import Reconciler
from .refunds import Granted, Refund, RefundRefusal, Refunds, Wanted
from .restoring import ReceiptRefusal, Restoration
from .rules import TRANSITIONS, Cause, OrderState
from .selling_out import note_sold_out
from .service import Checkout
from .settle import Settlement
from .stock import Stock, StockAnswer, StockOutcome, UnknownVariant, match_units
from .stock_loading import StockLoad, StockLoading, load_all_due
from .sweep import Sweeper, Swept
from .warehouse import Warehouse, WarehouseFailed

__all__ = [
    "TRANSITIONS",
    "Answers",
    "Cause",
    "Checkout",
    "Granted",
    "Inbox",
    "KnownAnswer",
    "Loader",
    "Order",
    "OrderDesk",
    "OrderHistory",
    "OrderLine",
    "OrderState",
    "PayRefusal",
    "Payment",
    "Price",
    "ReceiptRefusal",
    "Reconciler",
    "Refund",
    "RefundRefusal",
    "Refunds",
    "Restoration",
    "Settlement",
    "StartRefusal",
    "Step",
    "Stock",
    "StockAnswer",
    "StockLoad",
    "StockLoading",
    "StockOutcome",
    "Sweeper",
    "Swept",
    "UnknownVariant",
    "Wanted",
    "Warehouse",
    "WarehouseFailed",
    "load_all_due",
    "match_units",
    "note_sold_out",
    "price_of",
    "step_minor",
]
