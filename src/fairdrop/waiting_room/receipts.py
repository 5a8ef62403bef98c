"""Receipts: each place as something its holder can show again (W4, W15).

A receipt is a text of two parts after its version, ``fdr1.<payload>.<mac>``. The payload is the
msgpack array ``[sale id, visitor, epoch, kind, value]`` in base64url without padding:

========  =======================================  ============================================
kind      value                                    given to
========  =======================================  ============================================
``"e"``   the entry id, a text of 22 characters    an entrant of the lobby (W3)
``"p"``   the position, a positive number          a person in the line, by arrival or drawn
========  =======================================  ============================================

Sealed as :mod:`fairdrop.seals` tells, under a key derived from the visitor key. Who holds a receipt can
prove to *us* which place they had, after the store lost it: only servers that hold the key can make
or check one. The proof that *anybody* can check is signed on demand (:mod:`fairdrop.draw`).

The same place gives the same receipt, so joining again costs no second one.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from fairdrop.memory import make_room
from fairdrop.seals import Seals

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

_Payload = tuple[str, str, int, Literal["e", "p"], str | int]


class Receipts:
    """Issues and reads receipts."""

    def __init__(self, secret: bytes) -> None:
        """Take the secret that the key is derived from: the visitor key, at least 32 bytes."""
        self._seals: Seals[_Payload] = Seals("fdr1.", secret, b"fairdrop receipt v1", _Payload)
        self._places: dict[str, tuple[str, int, int, str]] = {}

    def issue(self, receipt: Receipt) -> str:
        """The receipt as text; the same one each time."""
        if isinstance(receipt, EntryReceipt):
            return self._seals.seal(
                (receipt.sale, receipt.visitor, receipt.epoch, ENTRY, receipt.entry)
            )
        return self._seals.seal(
            (receipt.sale, receipt.visitor, receipt.epoch, POSITION, receipt.position)
        )

    def of_place(self, sale: str, visitor: str, epoch: int, position: int) -> str:
        """The receipt of a place in the line, for hot paths: remembered for those who come again.

        Costs 2 us the first time, a look-up for the next.
        """
        known = self._places.get(visitor)
        if known is not None and known[0] == sale and known[1] == epoch and known[2] == position:
            return known[3]
        make_room(self._places, _REMEMBERED)
        text = self._seals.seal((sale, visitor, epoch, POSITION, position))
        self._places[visitor] = (sale, epoch, position, text)
        return text

    def read(self, text: str) -> Receipt | None:
        """What the receipt says, or None when it is none of ours (or was changed)."""
        opened = self._seals.open(text)
        if opened is None:
            return None
        sale, visitor, epoch, kind, value = opened
        if kind == ENTRY and isinstance(value, str):
            return EntryReceipt(sale, visitor, epoch, value)
        if kind == POSITION and isinstance(value, int):
            return PositionReceipt(sale, visitor, epoch, value)
        return None
