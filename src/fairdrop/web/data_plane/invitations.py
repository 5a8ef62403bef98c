"""Invitations at the door of a sale: who may join, and who stands at the front (W19)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from fairdrop.access import Entry, InviteRefusal, Kind, Tier
from fairdrop.web.wire import Problem

from .base import shop_buyer
from .limits import limit_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairdrop.access import Rules
    from fairdrop.app import Parts
    from fairdrop.catalog import Sale
    from fairdrop.web.wire import Scope

CODE = b"fairdrop-invite"
_CODE_LIMIT = 200
_WORDS = {
    InviteRefusal.UNKNOWN: "There is no such invitation to this sale.",
    InviteRefusal.USED_UP: "This invitation was used as often as it may be.",
    InviteRefusal.OTHER_USED: "You use another invitation to this sale already.",
}


def is_for_all(parts: Parts, headers: Mapping[bytes, bytes], sale: Sale) -> bool:
    """Whether nobody has to be asked: everybody is alike in this sale, and no code is shown.

    One look-up; False also for a sale whose rules this process has yet to read.
    """
    rules = parts.invites.known_rules(sale.id)
    return rules is not None and rules.is_for_all and CODE not in headers


async def check_invitation(
    parts: Parts, scope: Scope, headers: Mapping[bytes, bytes], sale: Sale, visitor: str
) -> None:
    """Before a place is given. Raises Problem 403 for somebody who may not come."""
    rules = await parts.invites.rules(sale.id)
    shown = headers.get(CODE)
    if rules.is_for_all and shown is None:
        return
    if shown is not None:
        tier: Tier | None = await _use(parts, scope, sale, visitor, shown)
    else:
        tier = await parts.invites.tier(sale.id, visitor)
        buyer = shop_buyer(parts, headers) if tier is None else None
        if buyer is not None and buyer.email is not None:
            # The shop vouches for the address: no code has to be typed.
            found = await parts.invites.use(sale.id, visitor, Kind.EMAIL, buyer.email)
            tier = None if isinstance(found, InviteRefusal) else found
    if tier is None:
        if rules.entry is Entry.INVITED:
            raise Problem(
                403,
                "invite_required",
                "This sale is for invited people: send your code in Fairdrop-Invite.",
            )
        return
    if tier is not Tier.INVITED:
        await _to_the_front(parts, sale, visitor, rules, tier)


async def _use(parts: Parts, scope: Scope, sale: Sale, visitor: str, shown: bytes) -> Tier:
    limit_address(parts, scope, "invites")
    code = shown[:_CODE_LIMIT].decode("utf-8", "replace")
    found = await parts.invites.use(sale.id, visitor, Kind.CODE, code)
    if isinstance(found, InviteRefusal):
        raise Problem(403, "invite_refused", _WORDS[found], reason=found)
    return found


async def _to_the_front(parts: Parts, sale: Sale, visitor: str, rules: Rules, tier: Tier) -> None:
    opens_at = rules.priority_opens_at
    early = opens_at is not None and opens_at <= datetime.now(UTC)
    await parts.waiting_room.front(sale.ref, visitor, first=tier is Tier.BYPASS, early=early)
