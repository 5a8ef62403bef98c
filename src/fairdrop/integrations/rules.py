"""Pure decisions of a door: whether a token is good here, and how a refusal is told."""

from __future__ import annotations

from http import HTTPStatus
from posixpath import normpath
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlsplit

import msgspec

from fairdrop.waiting_room.model import REVOKED_CHARS
from fairdrop.waiting_room.tokens import Refusal

from .model import Answer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairdrop.waiting_room.signing_keys import Admission

    from .model import Visit

ENTER_PATH = "/.fairdrop/enter"
"""Where the waiting room hands somebody over who has been admitted, by a form (never by a link)."""
ADMISSION_COOKIE = "fairdrop_admission_"
VISITOR_COOKIE = "fairdrop_visitor"
PROBLEM_TYPE = "https://fairdrop.dev/problems/"

_DETAILS = {
    Refusal.REQUIRED: (401, "Enter through the waiting room first."),
    Refusal.FORGED: (403, "The admission token is not one of ours."),
    Refusal.EXPIRED: (403, "The time inside is over. Join the line again."),
    Refusal.OTHER_SALE: (403, "The admission token is for another sale."),
    Refusal.OTHER_BUYER: (403, "The admission token is somebody else's."),
    Refusal.REVOKED: (403, "The admission has ended: it was used, or given up."),
}


class Known(NamedTuple):
    """What Fairdrop says of a sale: its id and epoch, and how revoked admissions' ids begin."""

    sale: str
    epoch: int
    revoked: frozenset[str]


def judge(
    claims: Admission | None, known: Known, buyer: str | None, now_s: float
) -> Refusal | None:
    """Why a token with these claims is not good here; None when it is.

    ``claims`` is None for a token without a right signature, ``buyer`` None where anybody who shows
    a good token may pass.
    """
    if claims is None:
        return Refusal.FORGED
    if claims.aud != known.sale:
        return Refusal.OTHER_SALE
    if buyer is not None and claims.sub != buyer:
        return Refusal.OTHER_BUYER
    if claims.exp <= now_s:
        return Refusal.EXPIRED
    if claims.epoch != known.epoch or claims.jti[:REVOKED_CHARS] in known.revoked:
        return Refusal.REVOKED
    return None


def is_protected(path: str, protected: Iterable[str]) -> bool:
    """Whether the path is one of the protected ones, or below one. ``/`` protects everything.

    Compared as the application may read it: without doubled slashes and dots.
    """
    plain = "/" + normpath(path).lstrip("/") + "/"
    return any(plain.startswith(prefix.rstrip("/") + "/") for prefix in protected)


def cookies_of(visit: Visit) -> dict[str, str]:
    """The request's cookies, read part by part: an odd one of somebody else hides none of ours."""
    pairs = (part.strip().partition("=") for part in visit.headers.get("cookie", "").split(";"))
    return {name: value.strip('"') for name, _, value in pairs}


def is_browser(visit: Visit) -> bool:
    """Whether a person looks at the answer: a navigation that takes HTML, not a program's call."""
    if visit.method not in ("GET", "HEAD"):
        return False
    mode = visit.headers.get("sec-fetch-mode")
    if mode is not None and mode != "navigate":
        return False
    return "text/html" in visit.headers.get("accept", "")


def refused(refusal: Refusal, visit: Visit, waiting_room: str) -> Answer:
    """Send a browser to the waiting room, and tell a program what is missing."""
    where = f"{waiting_room}?return={quote(visit.address, safe='')}"
    reason = ("fairdrop-reason", str(refusal))
    uncached = ("cache-control", "no-store")
    if is_browser(visit):
        return Answer(303, (("location", where), reason, uncached))
    status, detail = _DETAILS[refusal]
    return problem(status, refusal, detail, (reason,), waiting_room=waiting_room)


def unavailable() -> Answer:
    """Nobody is let in while nothing is known (W14)."""
    return problem(
        503,
        "store_unavailable",
        "The waiting room does not answer. Your place is safe; try again.",
        (("retry-after", "1"),),
    )


def problem(
    status: int, code: str, detail: str, headers: tuple[tuple[str, str], ...] = (), **more: str
) -> Answer:
    """A problem document (RFC 9457) that no cache may keep."""
    body = msgspec.json.encode(
        {
            "type": PROBLEM_TYPE + code,
            "title": HTTPStatus(status).phrase,
            "status": status,
            "code": code,
            "detail": detail,
            **more,
        }
    )
    fixed = (
        ("content-type", "application/problem+json"),
        ("content-length", str(len(body))),
        ("cache-control", "no-store"),
    )
    return Answer(status, (*fixed, *headers), body)


def admission_cookie(sale: str, claims: Admission, token: str, address: str, now_s: float) -> str:
    """The cookie that keeps an admission in the browser until its lease ends (case 36)."""
    secure = "; Secure" if address.startswith("https:") else ""
    left_s = max(0, int(claims.exp - now_s))
    return f"{ADMISSION_COOKIE}{sale}={token}; Path=/; Max-Age={left_s}; HttpOnly; SameSite=Lax{secure}"


def local_path(wanted: str) -> str:
    """A path on this site to go on to; ``/`` for anything that leads elsewhere."""
    parts = urlsplit(wanted)
    if any(ord(character) <= ord(" ") or character == "\\" for character in wanted):
        return "/"
    if parts.scheme or parts.netloc or not wanted.startswith("/") or wanted.startswith("//"):
        return "/"
    return wanted
