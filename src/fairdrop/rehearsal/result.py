"""How a simulated buyer's visit ended, as the buyer saw it."""

from __future__ import annotations

from enum import StrEnum


class Result(StrEnum):
    """Every end of a visit; the words stand in the report."""

    CONFIRMED = "confirmed"
    REFUNDED = "refunded"
    EXPIRED = "order expired"
    DECLINED = "all cards declined"
    CANCELLED = "cancelled"
    GAVE_BACK = "gave units back"
    WALKED_AWAY = "walked away"
    SOLD_OUT = "sold out"
    IMPATIENT = "lost patience"
    LEFT_LINE = "left the line"
    MISSED_CALL = "missed the call"
    CLOSED = "sale closed"
    OUT_OF_TIME = "out of time"
    PUZZLED = "unexpected answer"
