"""Identifiers: time-ordered where a database index grows by them, random where they are a secret."""

from __future__ import annotations

import os
import re
import time
from binascii import b2a_base64
from typing import NamedTuple
from uuid import UUID

# Version 7 in bits 76 to 79, variant 10 in bits 62 and 63.
_UUID7_MARK = (0x7 << 76) | (0x2 << 62)
_UUID7_KEEP = ((1 << 128) - 1) & ~((0xF << 76) | (0x3 << 62))
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_UUID_TEXT = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class _Pool:
    """Random bytes of the system, fetched by the page and given out once each.

    Every call into the system lets another thread have the interpreter, and a server's own threads
    wait for just that: fetched for each id, ten bytes cost a request up to 10 us.
    """

    SIZE = 4_096

    def __init__(self) -> None:
        self._bytes = b""
        self._at = 0
        # A forked process must not give out what its parent gives out.
        os.register_at_fork(after_in_child=self.empty)

    def empty(self) -> None:
        """Forget what is left."""
        self._bytes, self._at = b"", 0

    def take(self, count: int) -> bytes:
        """The next ``count`` bytes."""
        end = self._at + count
        if end > len(self._bytes):
            self._bytes, self._at, end = os.urandom(self.SIZE), 0, count
        taken = self._bytes[self._at : end]
        self._at = end
        return taken


_random_bytes = _Pool().take


def _uuid7_bits(unix_ms: int | None) -> int:
    ms = time.time_ns() // 1_000_000 if unix_ms is None else unix_ms
    value = ((ms & 0xFFFF_FFFF_FFFF) << 80) | int.from_bytes(_random_bytes(10))
    return (value & _UUID7_KEEP) | _UUID7_MARK


def uuid7(unix_ms: int | None = None) -> UUID:
    """A UUID version 7 (RFC 9562, section 5.7): 48 bits of milliseconds, then 74 random bits.

    New ids land at the right-hand edge of a B-tree, and two servers never make the same one.
    """
    return UUID(int=_uuid7_bits(unix_ms))


def new_id() -> str:
    """A fresh UUIDv7 as its canonical text of 36 characters, without the detour over an object."""
    text = f"{_uuid7_bits(None):032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def is_uuid(text: str) -> bool:
    """Whether the text is a UUID in canonical lower-case form; anything else is not an id of ours."""
    return _UUID_TEXT.fullmatch(text) is not None


def new_secret_id() -> str:
    """An unguessable id of 128 random bits, as 22 characters that are safe in URLs."""
    return base64url(_random_bytes(16))


def base64url(data: bytes) -> str:
    """Base64 that is safe in URLs, without padding (RFC 4648, section 5).

    A third of what the standard library's function and a strip take, three times for each join.
    """
    return b2a_base64(data, newline=False).translate(_URL_SAFE, b"=").decode()


class SaleRef(NamedTuple):
    """A sale as the store knows it: its id, and the epoch that all its present keys carry."""

    id: str
    epoch: int
