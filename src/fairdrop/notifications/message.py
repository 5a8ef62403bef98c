"""The words of a mail: facts in, a message out. Pure.

Names are written in any script (case 31). In headers they are encoded as RFC 2047 asks for, by the
standard library; in the body, which is UTF-8, each stands between isolates (Unicode UAX 9), so that
one written from right to left turns nothing around that is not its own.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import NamedTuple

from fairdrop.money import format_minor

_DOMAIN = re.compile(r"[\w-]+(\.[\w-]+)*")
_ISOLATE, _END_ISOLATE = "\u2068", "\u2069"
_BREAKING = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Control characters, lone surrogates, line and paragraph separators: none of them is a name's."""
_NAME_IN_HEADER = 100
"""Characters of a name that a header shows: the whole name stands in the body."""


class Bought(NamedTuple):
    """One line of an order."""

    product: str
    name: str
    serials: list[int]
    price_minor: int


class MailFacts(NamedTuple):
    """What a confirmation tells. ``sender`` is an address, with or without a name before it."""

    order: str
    sale: str
    to: str
    name: str | None
    lines: list[Bought]
    fee_minor: int
    total_minor: int
    currency: str
    order_url: str
    confirmed_at: datetime


def confirmation(facts: MailFacts, sender: Address) -> EmailMessage:
    """The mail that says that an order is confirmed.

    Its Message-ID is the order's, so that a copy that had to be sent again is seen to be one. Raises
    ValueError for an address that no mail can go to.
    """
    message = EmailMessage(policy=SMTP)
    message["From"] = sender
    message["To"] = _recipient(facts)
    message["Subject"] = f"Order confirmed: {_shortened(facts.sale)}"
    message["Date"] = format_datetime(facts.confirmed_at)
    message["Message-ID"] = f"<{facts.order}.confirmation@{sender.domain}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(_body(facts), charset="utf-8", cte="quoted-printable")
    return message


def _recipient(facts: MailFacts) -> Address:
    name = _shortened(facts.name or "")
    user, _, domain = facts.to.rpartition("@")
    if not user or _one_line(user) != user or not _DOMAIN.fullmatch(domain):
        raise ValueError("not an address that mail can go to")
    return Address(display_name=name, username=user, domain=domain.encode("idna").decode("ascii"))


def _body(facts: MailFacts) -> str:
    greeting = f"Hello {_isolated(facts.name)}," if facts.name else "Hello,"
    lines = [greeting, "", f"your order for {_isolated(facts.sale)} is confirmed.", ""]
    for line in facts.lines:
        price = format_minor(line.price_minor * len(line.serials), facts.currency)
        lines.append(
            f"{len(line.serials)} × {_isolated(line.product)}, {_isolated(line.name)}: {price}"
        )
        numbers = ", ".join(str(serial) for serial in line.serials)
        lines.append(
            f"    number {numbers}" if len(line.serials) == 1 else f"    numbers {numbers}"
        )
    lines += [
        "",
        f"Booking fee: {format_minor(facts.fee_minor, facts.currency)}",
        f"Paid: {format_minor(facts.total_minor, facts.currency)}",
        "",
        f"Your order: {facts.order_url}",
        "",
    ]
    return "\n".join(lines)


def _isolated(name: str | None) -> str:
    return f"{_ISOLATE}{_one_line(name or '')}{_END_ISOLATE}"


def _one_line(name: str) -> str:
    """The name without what would break a line, in a header or in the body."""
    return "".join(" " if unicodedata.category(c) in _BREAKING else c for c in name).strip()


def _shortened(name: str) -> str:
    line = _one_line(name)
    return line if len(line) <= _NAME_IN_HEADER else line[: _NAME_IN_HEADER - 1].rstrip() + "…"
