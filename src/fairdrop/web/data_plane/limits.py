"""Rate limits at the door of the data plane: whom to count, and how a refusal is told (W18)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairdrop.web.wire import Problem, headers_of

if TYPE_CHECKING:
    from fairdrop.access import Exceeded
    from fairdrop.app import Parts
    from fairdrop.waiting_room import Visitor
    from fairdrop.web.wire import Scope

SHOP_KEY = b"fairdrop-shop-key"
"""Where a server of the shop shows its API key beside its buyer's own token."""

_FORWARDED = b"x-forwarded-for"
_WORDS = {
    "requests": "Too many requests come from your address.",
    "identities": "Too many new visitors come from your address.",
    "invites": "Too many invitations are tried out from your address.",
    "buyer": "Too many requests at once.",
}


def address_key(parts: Parts, scope: Scope) -> str:
    """The key of the request's address; empty for one that no limit is for."""
    client = scope.get("client")
    peer = client[0] if client else ""
    forwarded = ""
    if _FORWARDED in headers_of(scope):
        hops = [value for name, value in scope["headers"] if name == _FORWARDED]
        forwarded = b",".join(hops).decode("latin-1")
    return parts.addresses.key(peer, forwarded)


def limit_address(parts: Parts, scope: Scope, policy: str) -> None:
    """Count one for the request's address: ``requests``, new ``identities`` (case 39), ``invites``.

    Raises Problem 429.
    """
    key = address_key(parts, scope)
    if key:
        exceeded = parts.limits.take(policy, key)
        if exceeded is not None and not shows_server_key(parts, scope):
            raise _problem(exceeded)


def limit_buyer(parts: Parts, visitor: Visitor, *, kept: bool) -> None:
    """Count a request of one visitor, whom the process keeps in memory or not. Raises Problem 429."""
    limits = parts.limits
    exceeded = limits.take_from("buyer", visitor) if kept else limits.take("buyer", visitor.key)
    if exceeded is not None:
        raise _problem(exceeded)


def shows_server_key(parts: Parts, scope: Scope) -> bool:
    """Whether the request comes from a server of the shop; looked at only where it matters."""
    for name, value in scope["headers"]:
        if name == SHOP_KEY and value in parts.server_keys:
            return True
        if name == b"authorization" and value.partition(b" ")[2] in parts.server_keys:
            return True
    return False


def _problem(exceeded: Exceeded) -> Problem:
    """429 with the header fields of draft-ietf-httpapi-ratelimit-headers."""
    policy, wait_s = exceeded
    window_s = max(1, round(policy.burst / policy.rate_per_s))
    return Problem(
        429,
        "too_many_requests",
        f"{_WORDS[policy.name]} Come back in {wait_s} s; your place is safe.",
        headers=(
            (b"retry-after", b"%d" % wait_s),
            (b"ratelimit-policy", f'"{policy.name}";q={policy.burst};w={window_s}'.encode()),
            (b"ratelimit", f'"{policy.name}";r=0;t={wait_s}'.encode()),
        ),
        policy=policy.name,
    )
