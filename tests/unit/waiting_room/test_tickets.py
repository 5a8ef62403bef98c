"""A ticket names one visitor of one sale, for a short time, and cannot be made by anybody else (W7)."""

from __future__ import annotations

import pytest

from fairdrop.waiting_room import TICKET_TTL_MS, StreamTickets

NOW_MS = 1_800_000_000_000
TICKETS = StreamTickets(b"k" * 32)


def test_a_ticket_is_good_for_its_sale_and_for_less_than_a_minute() -> None:
    ticket = TICKETS.issue("sale", "visitor", NOW_MS)
    assert TICKET_TTL_MS < 60_000
    assert TICKETS.visitor(ticket, "sale", NOW_MS + TICKET_TTL_MS - 1) == "visitor"
    assert TICKETS.visitor(ticket, "sale", NOW_MS + TICKET_TTL_MS) is None
    assert TICKETS.visitor(ticket, "other", NOW_MS) is None


def test_a_ticket_of_another_key_or_changed_anywhere_is_none_of_ours() -> None:
    ticket = TICKETS.issue("sale", "visitor", NOW_MS)
    assert StreamTickets(b"x" * 32).visitor(ticket, "sale", NOW_MS) is None
    for at in range(len(ticket)):
        changed = ticket[:at] + ("A" if ticket[at] != "A" else "B") + ticket[at + 1 :]
        assert TICKETS.visitor(changed, "sale", NOW_MS) is None, at
    for text in ("", "fdt1.", "fdt1..", "fdt1.x.y", "é", "fdt1." + "a" * 5_000):
        assert TICKETS.visitor(text, "sale", NOW_MS) is None, text


def test_the_key_has_to_be_long() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        StreamTickets(b"short")
