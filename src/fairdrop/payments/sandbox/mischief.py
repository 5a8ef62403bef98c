"""Mischief on purpose: what a payment's way back to the merchant can suffer.

Real gateways decline, answer late, send an event twice, out of order, or never. A merchant that
has only seen the good case has not been tested. Mischief comes with one payment, or by shares
over all payments (:class:`MischiefDefaults`), drawn from a seeded generator so that a run can be
repeated.
"""

from __future__ import annotations

import random
from typing import Annotated

from msgspec import Meta, Struct

REORDER_WINDOW_MS = 1_000
"""How long a reordered event waits for a later one of its intent before it goes anyway."""

_DelayMs = Annotated[int, Meta(ge=0, le=86_400_000)]
_Copies = Annotated[int, Meta(ge=0, le=20)]
_Share = Annotated[float, Meta(ge=0, le=1)]
_DeclineCode = Annotated[str, Meta(pattern=r"\A[a-z_]{1,40}\Z")]


class Mischief(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What happens to one attempt and its webhook.

    ``decline`` is the code it is declined with whatever the card. ``delay_ms`` is how long the
    bank takes (the intent is ``processing`` meanwhile). ``delay_webhook_ms`` holds the event back,
    ``duplicate`` is the number of extra copies sent, ``reorder`` lets the next event of the same
    intent be accepted first (waiting at most REORDER_WINDOW_MS for there to be one), and ``drop``
    means that the event is never sent.
    """

    decline: _DeclineCode | None = None
    delay_ms: _DelayMs = 0
    delay_webhook_ms: _DelayMs = 0
    duplicate: _Copies = 0
    reorder: bool = False
    drop: bool = False


NO_MISCHIEF = Mischief()


class MischiefDefaults(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Shares (0 to 1) of all attempts and events that suffer each mischief, independently.

    ``delay_share`` and ``decline_share`` are of payment attempts, the others of webhooks. A
    payment that brings mischief of its own is left out.
    """

    seed: int = 0
    decline_share: _Share = 0.0
    decline_code: _DeclineCode = "card_declined"
    delay_share: _Share = 0.0
    delay_ms: _DelayMs = 1_000
    delay_webhook_share: _Share = 0.0
    delay_webhook_ms: _DelayMs = 300
    duplicate_share: _Share = 0.0
    duplicate_copies: _Copies = 1
    reorder_share: _Share = 0.0
    drop_share: _Share = 0.0


class Dice:
    """Draws mischief by the defaults. The same seed and number of draws give the same mischief."""

    def __init__(self, defaults: MischiefDefaults) -> None:
        """Start the sequence of the defaults' seed."""
        self.defaults = defaults
        self._random = random.Random(defaults.seed)  # noqa: S311 - a rehearsal, not a secret
        self._quiet = not any(
            (
                defaults.decline_share,
                defaults.delay_share,
                defaults.delay_webhook_share,
                defaults.duplicate_share,
                defaults.reorder_share,
                defaults.drop_share,
            )
        )

    def roll(self) -> Mischief:
        """The mischief of the next attempt or event. Always draws six numbers, or none."""
        if self._quiet:
            return NO_MISCHIEF
        of = self.defaults
        decline, delay, delay_webhook, duplicate, reorder, drop = (
            self._random.random() for _ in range(6)
        )
        return Mischief(
            decline=of.decline_code if decline < of.decline_share else None,
            delay_ms=of.delay_ms if delay < of.delay_share else 0,
            delay_webhook_ms=of.delay_webhook_ms if delay_webhook < of.delay_webhook_share else 0,
            duplicate=of.duplicate_copies if duplicate < of.duplicate_share else 0,
            reorder=reorder < of.reorder_share,
            drop=drop < of.drop_share,
        )
