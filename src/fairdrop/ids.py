"""Identifiers: time-ordered where a database index grows by them, random where they are a secret."""

from __future__ import annotations

import os
import re
import time
from binascii import b2a_base64
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

if TYPE_CHECKING:
    from collections.abc import Callable

_MS_BITS = (1 << 48) - 1
_AT_ONCE = 256
_SECRET_CHARS = 22
_VARIANT = {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}
"""The variant 10 (RFC 9562, section 4.1) and two bits of chance, by a random hexadecimal digit."""
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_UUID_TEXT = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class _Pool:
    """Random texts, made a page at a time and given out once each, in any thread.

    Every call into the system lets another thread have the interpreter, and a server's own threads
    wait for just that: fetched for each id, ten bytes cost a request up to 10 us.
    """

    def __init__(self, make: Callable[[], list[str]]) -> None:
        self._make = make
        self._ready: list[str] = []
        # A forked process must not give out what its parent gives out.
        os.register_at_fork(after_in_child=self._ready.clear)

    def take(self) -> str:
        """One that nobody else has: to pop is one step, whatever other threads do."""
        try:
            return self._ready.pop()
        except IndexError:
            made = self._make()
            taken = made.pop()
            self._ready.extend(made)
            return taken


def uuid7(unix_ms: int | None = None) -> UUID:
    """A UUID version 7 (RFC 9562, section 5.7): 48 bits of milliseconds, then 74 random bits.

    New ids land at the right-hand edge of a B-tree, and two servers never make the same one.
    """
    return UUID(new_id() if unix_ms is None else _uuid7_time(unix_ms) + _uuid7_chance())


def new_id() -> str:
    """A fresh UUIDv7 as its canonical text of 36 characters, without the detour over an object."""
    return _uuid7_time(time.time_ns() // 1_000_000) + _uuid7_chance()


@lru_cache(maxsize=64)
def _uuid7_time(unix_ms: int) -> str:
    """The milliseconds and the version, which all ids of a millisecond begin with."""
    text = f"{unix_ms & _MS_BITS:012x}"
    return f"{text[:8]}-{text[8:]}-7"


def is_uuid(text: str) -> bool:
    """Whether the text is a UUID in canonical lower-case form; anything else is not an id of ours."""
    return _UUID_TEXT.fullmatch(text) is not None


def new_secret_id() -> str:
    """An unguessable id of 132 random bits, as 22 characters that are safe in URLs."""
    return _secret()


def base64url(data: bytes) -> str:
    """Base64 that is safe in URLs, without padding (RFC 4648, section 5).

    A third of what the standard library's function and a strip take, three times for each join.
    """
    return b2a_base64(data, newline=False).translate(_URL_SAFE, b"=").decode()


def _chances() -> list[str]:
    """What follows the version of a UUIDv7: 12 bits, the variant, 62 bits."""
    text = os.urandom(10 * _AT_ONCE).hex()
    parts = (text[at : at + 19] for at in range(0, len(text), 20))
    return [f"{part[:3]}-{_VARIANT[part[3]]}{part[4:7]}-{part[7:]}" for part in parts]


def _secrets() -> list[str]:
    text = base64url(os.urandom(_AT_ONCE * _SECRET_CHARS * 3 // 4))
    return [text[at : at + _SECRET_CHARS] for at in range(0, len(text), _SECRET_CHARS)]


_uuid7_chance = _Pool(_chances).take
_secret = _Pool(_secrets).take


class SaleRef(NamedTuple):
    """A sale as the store knows it: its id, and the epoch that all its present keys carry."""

    id: str
    epoch: int
