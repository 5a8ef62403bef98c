"""The ``Sandbox-Signature`` header: who sent this body, and when.

``t=<unix seconds>,v1=<hex>`` where the hex is HMAC-SHA256(secret, ``"<t>." + raw body``), the
construction that Stripe made common. The time is under the signature, so a recorded delivery
cannot be replayed later than the tolerance. Several ``v1`` are allowed (a sender in the middle of
changing its secret signs with both); parts of other names are left for later versions.

The timestamp is judged only after the signature, so that "stale" is said of authentic senders
alone and an attacker learns nothing about our clock.
"""

from __future__ import annotations

import enum
import hmac

HEADER = "Sandbox-Signature"
TOLERANCE_S = 300

_MAX_HEADER_CHARS = 1_024
_MAX_TIME_DIGITS = 12
_HEX_CHARS = 64


class Verdict(enum.Enum):
    """What a signature header proves."""

    VALID = "valid"
    MALFORMED = "malformed"
    WRONG = "wrong"
    STALE = "stale"


def sign(secret: bytes, body: bytes, now_s: int) -> str:
    """The header value for this body, signed now. Cost: one HMAC over the body."""
    return f"t={now_s},v1={_mac(secret, body, str(now_s))}"


def verify(
    secret: bytes, header: str, body: bytes, now_s: int, tolerance_s: int = TOLERANCE_S
) -> Verdict:
    """Judge the header; comparisons take the same time wherever the first difference is.

    ``tolerance_s`` holds both ways, for clocks that are ahead. Never raises for any header text.
    """
    parsed = _parse(header)
    if parsed is None:
        return Verdict.MALFORMED
    time_text, candidates = parsed
    expected = _mac(secret, body, time_text).encode()
    matches = [hmac.compare_digest(expected, candidate.encode()) for candidate in candidates]
    if not any(matches):
        return Verdict.WRONG
    if abs(now_s - int(time_text)) > tolerance_s:
        return Verdict.STALE
    return Verdict.VALID


def _mac(secret: bytes, body: bytes, time_text: str) -> str:
    return hmac.digest(secret, time_text.encode() + b"." + body, "sha256").hex()


def _parse(header: str) -> tuple[str, list[str]] | None:
    if len(header) > _MAX_HEADER_CHARS or not header.isascii():
        return None
    times: list[str] = []
    candidates: list[str] = []
    for part in header.split(","):
        name, _, value = part.strip().partition("=")
        if name == "t":
            times.append(value)
        elif name == "v1":
            candidates.append(value)
    if len(times) != 1 or not candidates:
        return None
    if not times[0].isdigit() or len(times[0]) > _MAX_TIME_DIGITS:
        return None
    if any(len(candidate) != _HEX_CHARS for candidate in candidates):
        return None
    return times[0], candidates
