"""Money as integers in minor units, with each currency's real exponent.

Which currencies there are, and their decimals, is ISO 4217, list one, as SIX Group published it on
2026-01-01; a test compares this table with that list. Codes that the list gives no decimals (gold,
baskets, tests) are no money here. A code that is withdrawn later stays: old orders have it.
"""

from __future__ import annotations

from types import MappingProxyType

EXPONENTS: MappingProxyType[str, int] = MappingProxyType(
    {
        **dict.fromkeys(
            "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF".split(), 0
        ),
        **dict.fromkeys(
            (
                "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP"
                " BYN BZD CAD CDF CHE CHF CHW CNY COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB"
                " EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES"
                " KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR"
                " MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD"
                " RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP"
                " TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG"
            ).split(),
            2,
        ),
        **dict.fromkeys("BHD IQD JOD KWD LYD OMR TND".split(), 3),
        **dict.fromkeys("CLF UYW".split(), 4),
    }
)
"""Decimals by currency."""

BPS = 10_000
"""Basis points in a whole: a fee of 1,000 bps is 10 %."""


def is_currency(code: str) -> bool:
    """Whether ISO 4217 has a currency of this code (in capital letters), with its decimals."""
    return code in EXPONENTS


def exponent(currency: str) -> int:
    """Decimals of the currency: JPY 0, EUR 2, KWD 3.

    Whatever else a gateway may tell of is shown with two; nothing is ever sold in it.
    """
    return EXPONENTS.get(currency, 2)


def fee_minor(subtotal_minor: int, fee_bps: int, step_minor: int = 1) -> int:
    """The booking fee on a subtotal, rounded half up, once.

    It is a multiple of ``step_minor``: one minor unit, or the smallest amount that a gateway can
    charge in this currency, so that what is shown is what can be charged.

    >>> fee_minor(1995, 1000), fee_minor(1990, 1000, step_minor=10)
    (200, 200)
    """
    if subtotal_minor < 0 or fee_bps < 0:
        raise ValueError("a subtotal and a fee rate are never negative")
    step = BPS * step_minor
    return (subtotal_minor * fee_bps + step // 2) // step * step_minor


def plain(amount_minor: int, currency: str) -> str:
    """The amount with the currency's decimals, for programs.

    >>> plain(1995, "EUR"), plain(-80, "JPY"), plain(5, "KWD")
    ('19.95', '-80', '0.005')
    """
    digits = exponent(currency)
    sign = "-" if amount_minor < 0 else ""
    if digits == 0:
        return f"{sign}{abs(amount_minor)}"
    whole, part = divmod(abs(amount_minor), 10**digits)
    return f"{sign}{whole}.{part:0{digits}d}"


def format_minor(amount_minor: int, currency: str) -> str:
    """The amount for people, with the currency's decimals.

    >>> format_minor(1995, "EUR"), format_minor(80, "JPY"), format_minor(-1500, "KWD")
    ('19.95 EUR', '80 JPY', '-1.500 KWD')
    """
    return f"{plain(amount_minor, currency)} {currency}"
