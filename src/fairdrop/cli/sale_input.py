"""What people type about sales, as the control plane takes it: prices, variants, times, slugs."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from fairdrop.money import exponent

_AFTER = re.compile(r"\+(\d+)(s|m|h|d)")
_UNIT = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_SLUG_MAX = 64


def parse_variant(text: str, product: str, currency: str) -> dict[str, Any]:
    """``[PRODUCT/]NAME:PRICE:UNITS`` as a variant. Raises ValueError with a sentence.

    >>> parse_variant("Ticket/Standing:45.50:100", "Concert", "EUR")["price_minor"]
    4550
    """
    parts = text.rsplit(":", 2)
    if len(parts) != 3 or not parts[0].strip():  # noqa: PLR2004 - name, price, units
        raise ValueError(f"{text!r} is not NAME:PRICE:UNITS, like 'Standing:45.00:100'")
    name, price, units = parts
    if not re.fullmatch(r"\d{1,9}", units, re.ASCII):
        raise ValueError(f"{units!r} is no number of units")
    before, slash, after = name.partition("/")
    return {
        "product": before.strip() if slash else product,
        "name": after.strip() if slash else name.strip(),
        "price_minor": parse_price(price, currency),
        "quantity": int(units),
    }


def parse_price(text: str, currency: str) -> int:
    """A price in the currency's own decimals, as minor units. Raises ValueError with a sentence.

    >>> parse_price("19.95", "EUR"), parse_price("80", "JPY"), parse_price("1.5", "KWD")
    (1995, 80, 1500)
    """
    digits = exponent(currency)
    try:
        amount = Decimal(text).scaleb(digits)
    except InvalidOperation:
        raise ValueError(f"{text!r} is no price") from None
    if not amount.is_finite() or amount < 0:
        raise ValueError(f"{text!r} is no price")
    if amount != amount.to_integral_value():
        raise ValueError(f"{currency} has {digits} decimals, and {text} has more")
    return int(amount)


def parse_fee(percent: float) -> int:
    """A fee in percent as basis points. Raises ValueError when it is finer than a hundredth."""
    bps = round(percent * 100)
    if abs(bps - percent * 100) > 1e-6:  # noqa: PLR2004 - far below a hundredth of a percent
        raise ValueError("a fee has at most two decimals")
    return bps


def parse_time(text: str, now: datetime) -> str:
    """``now``, ``+10m`` (s, m, h, d), or a time as it is, for the control plane to read."""
    if text == "now":
        return _utc(now)
    after = _AFTER.fullmatch(text)
    if after is None:
        return text
    try:
        return _utc(now + timedelta(**{_UNIT[after[2]]: int(after[1])}))
    except OverflowError:
        raise ValueError(f"{text} is too far away") from None


def parse_length_ms(text: str) -> int:
    """A length of time like ``15m`` (s, m, h, d), or ``0``, in milliseconds. Raises ValueError.

    >>> parse_length_ms("15m"), parse_length_ms("0")
    (900000, 0)
    """
    length = _AFTER.fullmatch(f"+{text}")
    if length is None:
        if text == "0":
            return 0
        raise ValueError(f"{text!r} is no length of time, like 90s or 15m")
    return int(timedelta(**{_UNIT[length[2]]: int(length[1])}) / timedelta(milliseconds=1))


def slug_of(name: str) -> str:
    """A slug made of a name. Raises ValueError when the name has no Latin letters or digits.

    >>> slug_of("Zürich: Open Air 2026!")
    'zurich-open-air-2026'
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain)[:_SLUG_MAX].strip("-")
    if not slug:
        raise ValueError("no slug can be made of this name; give one with --slug")
    return slug


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
