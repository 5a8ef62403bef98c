"""Tickets for streams: who listens, for those whose browser sends us no cookie (W7, S2).

Neither a WebSocket nor an EventSource of a browser can carry an Authorization header, so a page of
another origin would have to put its visitor token into the address, where logs and histories keep
it. A ticket stands there instead: it names the visitor and the sale, is good for half a minute, and
for nothing but a stream. It is sealed as a receipt is, under a key of its own (:mod:`fairdrop.seals`).
"""

from __future__ import annotations

from fairdrop.seals import Seals

TICKET_TTL_MS = 30_000
"""How long a ticket can be shown: enough to open a connection, also on a bad line."""


class StreamTickets:
    """Issues and reads tickets."""

    def __init__(self, secret: bytes) -> None:
        """Take the secret that the key is derived from: the visitor key, at least 32 bytes."""
        self._seals: Seals[tuple[str, str, int]] = Seals(
            "fdt1.", secret, b"fairdrop stream ticket v1", tuple[str, str, int], longest=1_024
        )

    def issue(self, sale: str, visitor: str, now_ms: int) -> str:
        """A ticket for the visitor to listen to the sale (by its id), good from now on."""
        return self._seals.seal((sale, visitor, now_ms + TICKET_TTL_MS))

    def visitor(self, text: str, sale: str, now_ms: int) -> str | None:
        """Whom the ticket names; None when it is none of ours, over, or for another sale."""
        opened = self._seals.open(text)
        if opened is None:
            return None
        of, visitor, until_ms = opened
        return visitor if of == sale and now_ms < until_ms else None
