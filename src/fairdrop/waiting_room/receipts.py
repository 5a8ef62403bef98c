"""Receipts: each place as something its holder can show again (W4, W15).

A receipt is a text of two parts after its version, ``fdr1.<payload>.<mac>``. The payload is the
msgpack array ``[sale id, visitor, epoch, kind, value]`` in base64url without padding:

========  =======================================  ============================================
kind      value                                    given to
========  =======================================  ============================================
``"e"``   the entry id, a text of 22 characters    an entrant of the lobby (W3)
``"p"``   the position, a positive number          a person in the line, by arrival or drawn
========  =======================================  ============================================

The mac is the first 16 bytes of HMAC-SHA256 over the version, a dot and the payload, under a key
derived from the visitor key. Who holds a receipt can prove to *us* which place they had, after the
store lost it: only servers that hold the key can make or check one. The proof that *anybody* can
check is signed on demand (:mod:`fairdrop.draw`).

The same place gives the same receipt, so joining again costs no second one. Issuing or reading
takes 3 to 5 us.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
from base64 import urlsafe_b64decode
from typing import Literal

import msgspec

from fairdrop.ids import base64url

_PREFIX = "fdr1."
_MAC_BYTES = 16
_KEY_CONTEXT = b"fairdrop receipt v1"
_LONGEST = 2_048
"""Characters of a receipt: a visitor id of the shop's may be long, a megabyte of text is no receipt."""

_REMEMBERED = 100_000
"""Receipts a process remembers, one a visitor: about 40 MB at the most."""

ENTRY: Literal["e"] = "e"
POSITION: Literal["p"] = "p"


class EntryReceipt(msgspec.Struct, frozen=True, gc=False):
    """The receipt of an entrant of the lobby: the entry id that takes part in the draw."""

    sale: str
    visitor: str
    epoch: int
    entry: str


class PositionReceipt(msgspec.Struct, frozen=True, gc=False):
    """The receipt of a person in the line."""

    sale: str
    visitor: str
    epoch: int
    position: int


Receipt = EntryReceipt | PositionReceipt

_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(tuple[str, str, int, Literal["e", "p"], str | int])


class Receipts:
    """Issues and reads receipts."""

    def __init__(self, secret: bytes) -> None:
        """Take the secret that the key is derived from: the visitor key, at least 32 bytes."""
        if len(secret) < 32:  # noqa: PLR2004 - the output size of SHA-256
            raise ValueError("the secret of receipts has at least 32 bytes")
        self._key = hmac.digest(secret, _KEY_CONTEXT, hashlib.sha256)
        self._places: dict[str, tuple[str, int, int, str]] = {}

    def issue(self, receipt: Receipt) -> str:
        """The receipt as text; the same one each time."""
        kind, value = (
            (ENTRY, receipt.entry)
            if isinstance(receipt, EntryReceipt)
            else (POSITION, receipt.position)
        )
        packed = _encode((receipt.sale, receipt.visitor, receipt.epoch, kind, value))
        payload = base64url(packed)
        return f"{_PREFIX}{payload}.{self._mac(payload)}"

    def of_place(self, sale: str, visitor: str, epoch: int, position: int) -> str:
        """The receipt of a place in the line, for hot paths: remembered for those who come again.

        Costs 3 us the first time, a look-up for the next.
        """
        known = self._places.get(visitor)
        if known is not None and known[0] == sale and known[1] == epoch and known[2] == position:
            return known[3]
        if len(self._places) >= _REMEMBERED:
            self._places.clear()
        text = self.issue(PositionReceipt(sale, visitor, epoch, position))
        self._places[visitor] = (sale, epoch, position, text)
        return text

    def read(self, text: str) -> Receipt | None:
        """What the receipt says, or None when it is none of ours (or was changed)."""
        if len(text) > _LONGEST or not text.startswith(_PREFIX):
            return None
        payload, dot, mac = text[len(_PREFIX) :].partition(".")
        if not dot or not hmac.compare_digest(mac.encode(), self._mac(payload).encode()):
            return None
        try:
            packed = urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
            sale, visitor, epoch, kind, value = _decoder.decode(packed)
        except (binascii.Error, msgspec.DecodeError, UnicodeDecodeError):
            return None
        if kind == ENTRY and isinstance(value, str):
            return EntryReceipt(sale, visitor, epoch, value)
        if kind == POSITION and isinstance(value, int):
            return PositionReceipt(sale, visitor, epoch, value)
        return None

    def _mac(self, payload: str) -> str:
        signed = f"{_PREFIX}{payload}".encode()
        digest = hmac.digest(self._key, signed, hashlib.sha256)
        return base64url(digest[:_MAC_BYTES])
