"""What a verified phone or payment method is called in the store: a keyed hash, never itself (H6).

A phone number has so few digits that a plain hash can be tried out; the key, which only the site
has, makes that impossible for whoever reads the store or the database. The sale is part of what is
hashed, so that marks do not follow a person from one sale to another.
"""

from __future__ import annotations

import hmac
import re

from fairdrop.ids import base64url

_SPACING = re.compile(r"[ ().\-/]")
_PHONE = re.compile(r"\+[1-9][0-9]{6,14}")
_PURPOSE = b"fairdrop: marks of verified phones and payment methods"
_MARK_BYTES = 16


class Unverifiable(ValueError):
    """What was given is no phone number or payment method; the message says what is one."""


class VerifiedMarks:
    """Makes marks under a key of their own, derived from a secret of the site."""

    def __init__(self, secret: bytes) -> None:
        """Derive the key. Another secret makes other marks."""
        self._key = hmac.digest(secret, _PURPOSE, "sha256")

    def of(self, sale_id: str, *, phone: str | None, payment_method: str | None) -> list[str]:
        """The marks of what was verified, 22 characters each. Raises Unverifiable.

        A phone number is international (E.164): spaces, dots, dashes, slashes and parentheses do
        not count. A payment method is whatever the shop calls one card or account, always the same.
        """
        marks = []
        if phone is not None:
            number = _SPACING.sub("", phone)
            if _PHONE.fullmatch(number) is None:
                raise Unverifiable(
                    "a phone number begins with + and its country, like +41 79 123 45 67"
                )
            marks.append(self._mark(sale_id, "phone", number))
        if payment_method is not None:
            if not payment_method.strip():
                raise Unverifiable("a payment method has a name of its own")
            marks.append(self._mark(sale_id, "payment method", payment_method.strip()))
        return marks

    def _mark(self, sale_id: str, kind: str, value: str) -> str:
        text = f"{sale_id}\n{kind}\n{value}".encode()
        digest = hmac.digest(self._key, text, "sha256")[:_MARK_BYTES]
        return base64url(digest)
