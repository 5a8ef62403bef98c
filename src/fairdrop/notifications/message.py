"""The words of a mail: facts in, a message out. Pure.

Names are written in any script (case 31). In headers they are encoded as RFC 2047 asks for, by the
standard library; in the body, which is UTF-8, each stands between isolates (Unicode UAX 9), so that
one written from right to left turns nothing around that is not its own.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from binascii import b2a_qp
from datetime import datetime
from email.headerregistry import Address, BaseHeader, HeaderRegistry
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any, NamedTuple

from fairdrop.money import format_minor

_DOMAIN = re.compile(r"[\w-]+(\.[\w-]+)*")
_ISOLATE, _END_ISOLATE = "\u2068", "\u2069"
_BREAKING = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Control characters, lone surrogates, line and paragraph separators: none of them is a name's."""
_NAME_IN_HEADER = 100
"""Characters of a name that a header shows: the whole name stands in the body."""


class _Headers(HeaderRegistry):
    """The standard library's kinds of headers, each made once: it makes a class for every header."""

    @functools.cache  # noqa: B019 - there is one registry, and few names of headers
    def __getitem__(self, name: str) -> Any:
        """The class of the headers of this name."""
        return super().__getitem__(name)


_POLICY = SMTP.clone(header_factory=_Headers())


@functools.lru_cache(maxsize=64)
def _header(name: str, value: str) -> BaseHeader:
    """A header that many mails have alike: parsing it again took more than the rest of the mail."""
    header: BaseHeader = _POLICY.header_factory(name, value)
    return header


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
    message = EmailMessage(policy=_POLICY)
    message["From"] = _header("From", str(sender))
    message["To"] = _recipient(facts)
    message["Subject"] = _header("Subject", f"Order confirmed: {_shortened(facts.sale)}")
    message["Date"] = facts.confirmed_at
    message["Message-ID"] = f"<{facts.order}.confirmation@{sender.domain}>"
    message["Auto-Submitted"] = _header("Auto-Submitted", "auto-generated")
    message["MIME-Version"] = _header("MIME-Version", "1.0")
    message["Content-Type"] = _header("Content-Type", 'text/plain; charset="utf-8"')
    message["Content-Transfer-Encoding"] = _header("Content-Transfer-Encoding", "quoted-printable")
    # What set_content does, at a tenth of its cost.
    message.set_payload(b2a_qp(_body(facts).encode(), istext=True).decode("ascii"))
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
