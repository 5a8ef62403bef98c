"""What admission tokens prove, and what proves them, in one place for all who check them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairdrop.waiting_room import Refusal
from fairdrop.web.wire import Problem, cookie_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairdrop.catalog import Sale
    from fairdrop.web.wire import Header

HEADER = b"fairdrop-admission"
REASON = b"fairdrop-reason"
COOKIE_PREFIX = "fairdrop_admission_"
"""An admission's cookie carries the sale's slug, so that two sales at a time do not collide."""

_PROBLEMS = {
    Refusal.REQUIRED: (401, "Show the admission token that entering the sale gave you."),
    Refusal.FORGED: (403, "The admission token is not one of ours."),
    Refusal.EXPIRED: (403, "The time inside is over. Join the line again."),
    Refusal.OTHER_SALE: (403, "The admission token is for another sale."),
    Refusal.OTHER_BUYER: (403, "The admission token is somebody else's."),
    Refusal.REVOKED: (403, "The admission has ended: it was used, given up, or its time is over."),
}


def problem_of(refusal: Refusal) -> Problem:
    """The answer to a token that proves nothing here; its reason is also a header (W12)."""
    status, detail = _PROBLEMS[refusal]
    return Problem(status, refusal, detail, headers=((REASON, refusal.encode()),))


def token_of(sale: Sale, headers: Mapping[bytes, bytes]) -> str:
    """The admission token that a request carries: its header, else its cookie; never its address."""
    given = headers.get(HEADER)
    if given is not None:
        return given.decode("latin-1")
    return cookie_of(headers, (COOKIE_PREFIX + sale.slug).encode()) or ""


def cookie(sale: Sale, token: str, max_age_s: int, *, secure: bool) -> Header:
    """The cookie that carries an admission to a checkout on the same host, until the lease ends."""
    flags = "; Secure" if secure else ""
    value = (
        f"{COOKIE_PREFIX}{sale.slug}={token}; Path=/; Max-Age={max_age_s}; HttpOnly; SameSite=Lax"
    )
    return (b"set-cookie", (value + flags).encode())
