"""What a door knows without asking: public keys and revoked tokens, refreshed beside the requests.

A request is decided from memory. What is a second old is fetched anew by a thread of its own, so no
request waits for it; only when it is older than ``stale_s`` does a request wait, and if Fairdrop
does not answer then, nobody is let in (W14). Keys are fetched every five minutes, and when a token
names a key that is not known: at most once in five seconds, whatever anybody sends.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import msgspec

from fairdrop.waiting_room import KeyRing

from .model import DoorUnavailable
from .rules import Known

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .fetching import Fetcher

LIST_FRESH_S = 1.0
KEYS_FRESH_S = 300.0
KEYS_PAUSE_S = 5.0
FAILED_PAUSE_S = 0.5
"""After a failure, how long nobody else waits for another one: refusals are quick (case 38)."""


class _Published(msgspec.Struct):
    sale: str
    epoch: int
    revoked: list[str]


class Knowledge:
    """The keys and the list of one sale. Any number of threads may ask."""

    def __init__(self, fetch: Fetcher, sale: str, secrets: Sequence[str], stale_s: float) -> None:
        """Nothing is known until the first request."""
        self._fetch = fetch
        self._list_path = f"/v1/sales/{sale}/revocations"
        self._secrets = tuple(secrets)
        self._stale_s = stale_s
        self._lock = threading.Lock()
        self._known: Known | None = None
        self._ring: KeyRing | None = None
        self._etag = ""
        self._list_at = self._keys_at = self._keys_asked_at = self._failed_at = float("-inf")
        self._thread: threading.Thread | None = None

    @property
    def is_usable(self) -> bool:
        """Whether a request can be decided now, without waiting."""
        return self._ring is not None and time.monotonic() - self._list_at < self._stale_s

    def current(self) -> tuple[Known, KeyRing]:
        """What is known, fetched first when it is too old. Raises DoorUnavailable."""
        if not self.is_usable:
            self._refresh()
        elif time.monotonic() - self._list_at >= LIST_FRESH_S:
            self._refresh_beside()
        known, ring = self._known, self._ring
        if known is None or ring is None or not self.is_usable:
            raise DoorUnavailable("nothing is known of the sale")
        return known, ring

    def may_look_for_key(self) -> bool:
        """Whether the keys may be asked for again, for a token that names an unknown one."""
        return time.monotonic() - self._keys_asked_at >= KEYS_PAUSE_S

    def look_for_key(self) -> None:
        """Fetch the keys anew. Raises DoorUnavailable."""
        with self._lock:
            if self.may_look_for_key():
                self._fetch_keys()

    def _refresh_beside(self) -> None:
        thread = self._thread
        if thread is not None and thread.is_alive():
            return
        self._thread = threading.Thread(target=self._try_refresh, daemon=True)
        self._thread.start()

    def _try_refresh(self) -> None:
        try:
            self._refresh()
        except DoorUnavailable:
            return  # what is known serves until it is stale

    def _refresh(self) -> None:
        with self._lock:
            now = time.monotonic()
            if now - self._list_at < LIST_FRESH_S and self._ring is not None:
                return  # somebody else has just done it
            if now - self._failed_at < FAILED_PAUSE_S:
                raise DoorUnavailable("Fairdrop did not answer a moment ago")
            try:
                if self._ring is None or now - self._keys_at >= KEYS_FRESH_S:
                    self._fetch_keys()
                self._fetch_list()
            except DoorUnavailable:
                self._failed_at = time.monotonic()
                raise

    def _fetch_keys(self) -> None:
        self._keys_asked_at = time.monotonic()
        answer = self._fetch("GET", "/.well-known/jwks.json")
        if not isinstance(answer.body, dict):
            raise DoorUnavailable(f"the keys came with status {answer.status}")
        self._ring = KeyRing.published(answer.body, self._secrets)
        self._keys_at = time.monotonic()

    def _fetch_list(self) -> None:
        asked_at = time.monotonic()
        answer = self._fetch(
            "GET", self._list_path, {"if-none-match": self._etag} if self._etag else None
        )
        if answer.status != 304:  # noqa: PLR2004 - not modified
            try:
                found = msgspec.convert(answer.body, _Published)
            except msgspec.ValidationError as error:
                raise DoorUnavailable(f"the list came with status {answer.status}") from error
            self._known = Known(found.sale, found.epoch, frozenset(found.revoked))
            self._etag = answer.etag
        self._list_at = asked_at
