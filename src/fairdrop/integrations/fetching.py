"""Calls to Fairdrop from a shop's process: plain HTTP with the standard library, bounded in time and size."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import msgspec

from .model import DoorUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

ANSWER_LIMIT = 4_194_304
"""Bytes of an answer; the longest list of revoked tokens has about a million."""


class Fetched(NamedTuple):
    """An answer: its status, its JSON (None when it is none), its entity tag."""

    status: int
    body: Any
    etag: str


class Fetcher:
    """Calls one Fairdrop. Threads may share it: each call has a connection of its own."""

    def __init__(self, url: str, timeout_s: float) -> None:
        """Take the address, like ``https://tickets.example.org``. Raises ValueError for another."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no address; use one like https://tickets.example.org")
        self._secure = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port
        self._base = parts.path.rstrip("/")
        self._timeout_s = timeout_s

    def __call__(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
    ) -> Fetched:
        """One request. Raises DoorUnavailable when there is no answer in time, or a 5xx."""
        make = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = make(self._host, self._port, timeout=self._timeout_s)
        sent = {"accept": "application/json", **(headers or {})}
        packed = None
        if body is not None:
            packed = msgspec.json.encode(body)
            sent["content-type"] = "application/json"
        try:
            connection.request(method, self._base + path, packed, sent)
            answer = connection.getresponse()
            raw = answer.read(ANSWER_LIMIT + 1)
        except (OSError, http.client.HTTPException) as error:
            raise DoorUnavailable(f"{type(error).__name__}: {error}") from error
        finally:
            connection.close()
        if answer.status >= 500 or len(raw) > ANSWER_LIMIT:  # noqa: PLR2004 - server errors
            raise DoorUnavailable(f"Fairdrop answered {answer.status}")
        try:
            content = msgspec.json.decode(raw) if raw else None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            content = None
        return Fetched(answer.status, content, answer.getheader("etag") or "")
