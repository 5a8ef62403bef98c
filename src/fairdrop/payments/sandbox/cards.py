"""The test cards: a number says how the attempt ends. No other number is taken."""

from __future__ import annotations

import msgspec


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """How an attempt with this card ends: paid, or declined with a code, at once or later."""

    number: str
    label: str
    decline_code: str | None = None
    processing_ms: int = 0

    @property
    def shown_number(self) -> str:
        """The number in groups of four."""
        return " ".join(self.number[start : start + 4] for start in range(0, len(self.number), 4))


_ALL = (
    Card(number="4242424242424242", label="Succeeds"),
    Card(number="4000000000000002", label="Declined", decline_code="card_declined"),
    Card(number="4000000000009995", label="Insufficient funds", decline_code="insufficient_funds"),
    Card(number="4000000000000259", label="Slow: succeeds after 3 seconds", processing_ms=3_000),
    Card(
        number="4000000000000341",
        label="Slow: declined after 3 seconds",
        decline_code="card_declined",
        processing_ms=3_000,
    ),
)

CARDS = {card.number: card for card in _ALL}
