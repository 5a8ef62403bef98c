"""The words of a confirmation: right in header and body, in any script (case 31)."""

from datetime import UTC, datetime
from email import message_from_bytes
from email.header import decode_header, make_header
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import default
from email.utils import parseaddr

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairdrop.notifications import Bought, MailFacts, confirmation

SENDER = Address("Fairdrop", "shop", "example.org")
ORDER = "0198c3a4-0000-7000-8000-000000000001"
NAMES = {
    "emoji": "Zoë 👩🏽‍🚀🎟️",
    "chinese": "王小明",
    "right to left": "אורי לוי",
    "arabic": "محمد بن سلمان",
    "combining": "Nguyễn Thị Minh Khai",
    "quotes": 'Ana "The Cat" O\'Neil, Jr. <x@y>',
    "long": "Ж" * 300,
    "two lines": "Eve\r\nBcc: everybody@example.org",
}


def facts(name: str | None, to: str = "buyer@example.org") -> MailFacts:
    lines = [
        Bought("Ticket", "Standing", [7, 12], 4_500),
        Bought("Programme", "Deutsch, größer", [3], 350),
    ]
    return MailFacts(
        ORDER,
        "Midnight Drop ★",
        to,
        name,
        lines,
        fee_minor=935,
        total_minor=10_285,
        currency="EUR",
        order_url=f"https://shop.example.org/orders/{ORDER}",
        confirmed_at=datetime(2026, 3, 1, 12, 0, tzinfo=UTC),
    )


def as_received(message: EmailMessage) -> tuple[EmailMessage, str]:
    """What a mail program reads from the bytes that were sent."""
    raw = message.as_bytes()
    head, _, _ = raw.partition(b"\r\n\r\n")
    assert head.isascii(), "headers travel through servers that know ASCII only"
    assert max(len(line) for line in raw.split(b"\r\n")) <= 998, "RFC 5322, 2.1.1"
    received = message_from_bytes(raw, policy=default)
    assert isinstance(received, EmailMessage)
    body = received.get_body(("plain",))
    assert body is not None
    return received, body.get_content().replace("\r\n", "\n")


def recipient(received: EmailMessage) -> tuple[str, str]:
    """Name and address as RFC 2047 has them read: no space between two encoded words.

    The standard library's newer parser puts one there, in a name that takes several of them.
    """
    raw = dict(received.raw_items())["To"].replace("\r\n", "")
    name, address = parseaddr(raw)
    return str(make_header(decode_header(name))), address


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_a_name_in_any_script_arrives_as_it_was_written(name: str) -> None:
    received, body = as_received(confirmation(facts(name), SENDER))
    to, address = recipient(received)
    assert address == "buyer@example.org"
    one_line = name.replace("\r\n", "  ")
    shown = one_line if len(one_line) <= 100 else one_line[:99] + "…"
    assert to == shown
    assert f"Hello \u2068{one_line}\u2069," in body
    assert received["Bcc"] is None
    assert len(received.keys()) == len(set(received.keys()))


def test_what_was_bought_and_paid_stands_in_it() -> None:
    received, body = as_received(confirmation(facts(None), SENDER))
    assert received["Subject"] == "Order confirmed: Midnight Drop ★"
    assert received["From"] == "Fairdrop <shop@example.org>"
    assert body.startswith("Hello,\n")
    assert "2 × \u2068Ticket\u2069, \u2068Standing\u2069: 90.00 EUR" in body
    assert "numbers 7, 12" in body
    assert "Booking fee: 9.35 EUR" in body
    assert "Paid: 102.85 EUR" in body
    assert f"https://shop.example.org/orders/{ORDER}" in body


def test_a_copy_of_a_mail_is_known_by_its_id() -> None:
    first, second = (confirmation(facts("A"), SENDER) for _ in range(2))
    assert first["Message-ID"] == second["Message-ID"] == f"<{ORDER}.confirmation@example.org>"


@given(st.text(max_size=300))
def test_no_name_at_all_breaks_a_mail(name: str) -> None:
    received, body = as_received(confirmation(facts(name), SENDER))
    assert [address.addr_spec for address in received["To"].addresses] == ["buyer@example.org"]
    assert set(received.keys()) == {
        "From",
        "To",
        "Subject",
        "Date",
        "Message-ID",
        "Auto-Submitted",
        "Content-Type",
        "Content-Transfer-Encoding",
        "MIME-Version",
    }
    assert body.count("\n") == 13


def test_a_domain_in_any_script_is_reached_by_its_ascii_form() -> None:
    received, _ = as_received(confirmation(facts("A", "buyer@köln.example"), SENDER))
    assert recipient(received)[1] == "buyer@xn--kln-sna.example"


@pytest.mark.parametrize(
    "to", ["a", "@x", "a@", "a@x\n", "a\n@x", "a@x,b", "a@[", "a@x>", "a@.x", "a@x."]
)
def test_an_address_that_is_none_is_refused(to: str) -> None:
    with pytest.raises((ValueError, IndexError)):
        confirmation(facts("A", to), SENDER)
