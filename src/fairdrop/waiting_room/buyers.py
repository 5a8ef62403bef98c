"""Who asks: the API keys of the shop's own server (S2)."""

from __future__ import annotations

import hmac


class ApiKeys:
    """Keys that a server of the shop shows; several, so that they can be changed one after another."""

    SHORTEST = 16

    def __init__(self, text: str, *, also: str = "") -> None:
        """Take the keys, separated by spaces, line breaks or commas, and one more.

        Raises ValueError for a short one.
        """
        keys = text.replace(",", " ").split()
        if any(len(key) < self.SHORTEST for key in keys):
            raise ValueError(f"an API key has at least {self.SHORTEST} characters")
        self._keys = tuple(key.encode() for key in [*keys, *([also] if also else [])])

    def __contains__(self, given: object) -> bool:
        """Whether ``given`` (bytes) is one of them; compared in constant time."""
        if not isinstance(given, bytes) or not given:
            return False
        found = False
        for key in self._keys:
            found |= hmac.compare_digest(given, key)
        return found
