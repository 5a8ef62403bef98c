"""Tickets for streams: who listens, for those whose browser sends us no cookie (W7, S2).

Neither a WebSocket nor an EventSource of a browser can carry an Authorization header, so a page of
another origin would have to put its visitor token into the address, where logs and histories keep
it. A ticket stands there instead: it names the visitor and the sale, is good for half a minute, and
for nothing but a stream. It is a text of two parts after its version, ``fdt1.<payload>.<mac>``, made
like a receipt (:mod:`fairdrop.waiting_room.receipts`), under a key of its own.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
from base64 import urlsafe_b64decode

import msgspec

from fairdrop.ids import base64url

TICKET_TTL_MS = 30_000
"""How long a ticket can be shown: enough to open a connection, also on a bad line."""
_PREFIX = "fdt1."
_MAC_BYTES = 16
_KEY_CONTEXT = b"fairdrop stream ticket v1"
_LONGEST = 1_024

_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(tuple[str, str, int])


class StreamTickets:
    """Issues and reads tickets."""

    def __init__(self, secret: bytes) -> None:
        """Take the secret that the key is derived from: the visitor key, at least 32 bytes."""
        if len(secret) < 32:  # noqa: PLR2004 - the output size of SHA-256
            raise ValueError("the secret of tickets has at least 32 bytes")
        self._key = hmac.digest(secret, _KEY_CONTEXT, hashlib.sha256)

    def issue(self, sale: str, visitor: str, now_ms: int) -> str:
        """A ticket for the visitor to listen to the sale (by its id), good from now on."""
        packed = _encode((sale, visitor, now_ms + TICKET_TTL_MS))
        payload = base64url(packed)
        return f"{_PREFIX}{payload}.{self._mac(payload)}"

    def visitor(self, text: str, sale: str, now_ms: int) -> str | None:
        """Whom the ticket names; None when it is none of ours, over, or for another sale."""
        if len(text) > _LONGEST or not text.startswith(_PREFIX):
            return None
        payload, _, mac = text[len(_PREFIX) :].partition(".")
        if not hmac.compare_digest(mac.encode(), self._mac(payload).encode()):
            return None
        try:
            packed = urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
            of, visitor, until_ms = _decoder.decode(packed)
        except (binascii.Error, msgspec.DecodeError, UnicodeDecodeError):
            return None
        return visitor if of == sale and now_ms < until_ms else None

    def _mac(self, payload: str) -> str:
        digest = hmac.digest(self._key, f"{_PREFIX}{payload}".encode(), hashlib.sha256)
        return base64url(digest[:_MAC_BYTES])
