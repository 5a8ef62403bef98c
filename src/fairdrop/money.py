"""Money as integers in minor units, with each currency's real exponent.

Exponents are those of ISO 4217 (list one, maintained by SIX Group). Only currencies whose exponent
is not 2 are listed, so that a new two-decimal currency needs no change.
"""

from __future__ import annotations

import re

_EXPONENTS: dict[str, int] = {
    **dict.fromkeys(
        "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF".split(), 0
    ),
    **dict.fromkeys("BHD IQD JOD KWD LYD OMR TND".split(), 3),
    **dict.fromkeys("CLF UYW".split(), 4),
}
_CODE = re.compile(r"[A-Z]{3}")

BPS = 10_000
"""Basis points in a whole: a fee of 1,000 bps is 10 %."""


def is_currency(code: str) -> bool:
    """Whether the text has the form of an ISO 4217 code (three capital letters)."""
    return _CODE.fullmatch(code) is not None


def exponent(currency: str) -> int:
    """Decimals of the currency: JPY 0, EUR 2, KWD 3."""
    return _EXPONENTS.get(currency, 2)


def fee_minor(subtotal_minor: int, fee_bps: int) -> int:
    """The booking fee on a subtotal, rounded half up to a whole minor unit, once.

    >>> fee_minor(1995, 1000)
    200
    """
    if subtotal_minor < 0 or fee_bps < 0:
        raise ValueError("a subtotal and a fee rate are never negative")
    return (subtotal_minor * fee_bps + BPS // 2) // BPS


def format_minor(amount_minor: int, currency: str) -> str:
    """The amount for people, with the currency's decimals.

    >>> format_minor(1995, "EUR"), format_minor(80, "JPY"), format_minor(-1500, "KWD")
    ('19.95 EUR', '80 JPY', '-1.500 KWD')
    """
    digits = exponent(currency)
    sign = "-" if amount_minor < 0 else ""
    if digits == 0:
        return f"{sign}{abs(amount_minor)} {currency}"
    whole, part = divmod(abs(amount_minor), 10**digits)
    return f"{sign}{whole}.{part:0{digits}d} {currency}"
