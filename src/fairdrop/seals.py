"""Sealed texts: what we said ourselves, carried by somebody else, as ``<prefix><payload>.<mac>``.

The payload is one msgpack value in base64url without padding. The mac is keyed BLAKE2b (RFC 7693,
section 2.9) of 16 bytes over the prefix and the payload, under a key of this use alone: HMAC-SHA256 of
the installation's secret and the name of the use. Only servers that hold the secret make or check one.

Keyed BLAKE2b takes 0.6 us where HMAC-SHA256 of the same text takes 2.3, and a join needs two.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
from base64 import urlsafe_b64decode
from hashlib import blake2b
from typing import Any, Generic, TypeVar

import msgspec

from fairdrop.ids import base64url

MAC_BYTES = 16
_SECRET_SHORTEST = 32
"""Bytes: the output size of SHA-256."""

Value = TypeVar("Value")
_encode = msgspec.msgpack.Encoder().encode


def derived_key(secret: bytes, use: bytes) -> bytes:
    """The key of one use, 32 bytes. Raises ValueError for a secret below 32 bytes."""
    if len(secret) < _SECRET_SHORTEST:
        raise ValueError(f"the secret of {use.decode()} has at least {_SECRET_SHORTEST} bytes")
    return hmac.digest(secret, use, hashlib.sha256)


class Mac:
    """What only a holder of a secret can write under a text, as 22 characters."""

    def __init__(self, secret: bytes, use: bytes) -> None:
        """Under the key of one use. Raises ValueError for a secret below 32 bytes."""
        self._keyed = blake2b(digest_size=MAC_BYTES, key=derived_key(secret, use))

    def of(self, text: str) -> str:
        """The text's mac. Costs 0.6 us: the key is not hashed anew for each text."""
        digest = self._keyed.copy()
        digest.update(text.encode())
        return base64url(digest.digest())


def same(given: str, expected: str) -> bool:
    """Whether a mac is the expected one, compared in constant time."""
    return hmac.compare_digest(given.encode(), expected.encode())


class Seals(Generic[Value]):
    """Seals values of one kind, and opens what it sealed."""

    def __init__(
        self, prefix: str, secret: bytes, use: bytes, kind: Any, *, longest: int = 2_048
    ) -> None:
        """``kind`` is the type of the values; texts above ``longest`` characters are none of ours.

        Raises ValueError for a secret below 32 bytes.
        """
        self._prefix, self._longest = prefix, longest
        self._mac = Mac(secret, use)
        self._decoder = msgspec.msgpack.Decoder(kind)

    def seal(self, value: Value) -> str:
        """The value as text; the same one each time. Costs 1.5 to 2 us."""
        text = self._prefix + base64url(_encode(value))
        return f"{text}.{self._mac.of(text)}"

    def open(self, text: str) -> Value | None:
        """The value, or None when the text is none of ours (or was changed)."""
        if len(text) > self._longest or not text.startswith(self._prefix):
            return None
        sealed, _, given = text.rpartition(".")
        if not same(given, self._mac.of(sealed)):
            return None
        payload = sealed[len(self._prefix) :]
        try:
            packed = urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
            value: Value = self._decoder.decode(packed)
        except (binascii.Error, msgspec.DecodeError, UnicodeDecodeError):
            return None
        return value
