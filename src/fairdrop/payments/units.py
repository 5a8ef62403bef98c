"""Amounts as gateways count them, where that differs from ISO 4217.

Fairdrop counts in ISO 4217's minor units everywhere; an adapter translates at its edge, exactly or
not at all. Stripe's own units are those of its page "Supported currencies" (docs.stripe.com/currencies,
sections "Zero-decimal currencies", "Three-decimal currencies" and "Special cases", read in 2026):

- a list of currencies without decimals, on which MGA is too, which has two in ISO 4217;
- ISK and UGX have none any more but are still written with two, always ``00``;
- currencies with three decimals are charged to the nearest ten: the last digit is 0.
"""

from __future__ import annotations

from types import MappingProxyType

from fairdrop.money import exponent

_STRIPE_EXPONENTS = MappingProxyType(
    {
        **dict.fromkeys("BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF".split(), 0),
        **dict.fromkeys("ISK UGX".split(), 2),
    }
)
_THREE_DECIMALS = 3
_STRIPE_THREE_DECIMAL_STEP = 10


def stripe_amount(amount_minor: int, currency: str) -> int:
    """The amount in Stripe's units.

    Raises ValueError for an amount that Stripe cannot charge: none is ever rounded on the way.

    >>> stripe_amount(80, "JPY"), stripe_amount(80, "ISK"), stripe_amount(1_990, "KWD")
    (80, 8000, 1990)
    """
    if amount_minor % charge_step_minor("stripe", currency):
        raise ValueError(f"Stripe cannot charge {amount_minor} minor units of {currency}")
    decimals = exponent(currency)
    theirs = _STRIPE_EXPONENTS.get(currency, decimals)
    if theirs >= decimals:
        return int(amount_minor * 10 ** (theirs - decimals))
    return int(amount_minor // 10 ** (decimals - theirs))


def from_stripe(amount: int, currency: str) -> int:
    """Minor units from Stripe's units.

    A fraction of a minor unit, which Stripe never sends, is cut off: the amount then differs from
    every order's, and is not taken for one.

    >>> from_stripe(8000, "ISK"), from_stripe(5, "MGA")
    (80, 500)
    """
    decimals = exponent(currency)
    theirs = _STRIPE_EXPONENTS.get(currency, decimals)
    if theirs >= decimals:
        return int(amount // 10 ** (theirs - decimals))
    return int(amount * 10 ** (decimals - theirs))


def charge_step_minor(gateway: str, currency: str) -> int:
    """The smallest amount that the gateway can charge in this currency; all others are multiples.

    >>> charge_step_minor("stripe", "KWD"), charge_step_minor("sandbox", "KWD")
    (10, 1)
    """
    if gateway != "stripe":
        return 1
    decimals = exponent(currency)
    if decimals == _THREE_DECIMALS:
        return _STRIPE_THREE_DECIMAL_STEP
    theirs = _STRIPE_EXPONENTS.get(currency, decimals)
    return int(10 ** max(0, decimals - theirs))
