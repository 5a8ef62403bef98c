"""Who may listen, and from which pages (W7, S2).

The public document is for everybody. A place is told to whom the cookie names, or a ticket. A browser
sends the cookie whatever page opened the stream, so the page's origin has to be one of ours: the
same host, the public address, or a shop that the operator has named. Clients that are no browser send
no origin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from fairdrop.app import public_url
from fairdrop.clock import now_ms
from fairdrop.web.data_plane.base import visitor_by_cookie
from fairdrop.web.wire import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairdrop.app import Parts
    from fairdrop.web.wire import Header, Scope


class Door:
    """Checks whoever wants to listen."""

    def __init__(self, parts: Parts) -> None:
        """Take the origins from the settings."""
        self._parts = parts
        self._origins = {
            _origin(address)
            for address in (public_url(parts.settings), *parts.settings.shop_addresses())
        }

    def check_origin(self, headers: Mapping[bytes, bytes]) -> None:
        """Raise Problem 403 for a page that is none of the shop's."""
        origin = headers.get(b"origin")
        if origin is None:
            return
        name = origin.decode("latin-1").lower()
        if name in self._origins or urlsplit(name).netloc == _host(headers):
            return
        raise Problem(403, "origin_refused", "This page is none of the shop's.")

    def visitor(self, scope: Scope, headers: Mapping[bytes, bytes], sale: str) -> str | None:
        """Who listens; None for somebody unnamed. Raises Problem 401 for a ticket that is no good."""
        query = scope["query_string"].decode("latin-1")
        ticket = parse_qs(query).get("ticket") if query else None
        if ticket is None:
            return visitor_by_cookie(self._parts, headers)
        visitor = self._parts.tickets.visitor(ticket[0], sale, now_ms())
        if visitor is None:
            raise Problem(401, "ticket_refused", "The ticket is over. Ask for another one.")
        return visitor

    def answer_headers(self, headers: Mapping[bytes, bytes]) -> list[Header]:
        """What lets a page of another origin read the stream; the origin has been checked."""
        origin = headers.get(b"origin")
        if origin is None:
            return []
        return [
            (b"access-control-allow-origin", origin),
            (b"access-control-allow-credentials", b"true"),
            (b"vary", b"origin"),
        ]


def _host(headers: Mapping[bytes, bytes]) -> str:
    return headers.get(b"host", b"").decode("latin-1").lower()


def _origin(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc}".lower()
