"""The payment page: plain HTML, one style sheet, one script, all of the gateway's own.

Everything that comes from a merchant is escaped here, once. The client secret is not in the page:
the browser has it in the address's fragment. A strict Content-Security-Policy allows the page's
own files and nothing else, no frames around it, and no referrer leaves it.
"""

from __future__ import annotations

from html import escape
from importlib import resources
from string import Template
from typing import TYPE_CHECKING

from fairdrop import money
from fairdrop.payments.model import IntentStatus

from .cards import CARDS
from .exchange import Answer

if TYPE_CHECKING:
    from .operations import IntentRow

_HEADERS = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (
        b"content-security-policy",
        (
            b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
            b"img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
    ),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)

_MESSAGES = {
    IntentStatus.REQUIRES_PAYMENT: "",
    IntentStatus.PROCESSING: "Your bank is thinking. Please wait …",
    IntentStatus.REQUIRES_CAPTURE: "Your bank has agreed. The shop takes the money with your order.",
    IntentStatus.SUCCEEDED: "This is paid. Nothing more will be charged.",
    IntentStatus.CANCELED: "The shop has cancelled this payment. Nothing was charged.",
}


def _read(name: str) -> str:
    return resources.files(__package__).joinpath("pages", name).read_text("utf-8")


_PAGE = Template(_read("payment.html"))
_FORM = Template(_read("form.html"))
_CARD = Template(_read("card.html"))


def _asset(name: str, media_type: bytes) -> Answer:
    headers = (
        (b"content-type", media_type),
        (b"cache-control", b"public, max-age=300"),
        (b"x-content-type-options", b"nosniff"),
    )
    return Answer(200, _read(name).encode(), headers)


ASSETS = {
    "payment.js": _asset("payment.js", b"text/javascript; charset=utf-8"),
    "payment.css": _asset("payment.css", b"text/css; charset=utf-8"),
}


def render(intent: IntentRow) -> Answer:
    """The page of this intent, as it stands."""
    amount = escape(money.format_minor(intent.amount_minor, intent.currency))
    payable = intent.status in (IntentStatus.REQUIRES_PAYMENT, IntentStatus.PROCESSING)
    heading = f"Pay {amount}" if payable else f"Payment of {amount}"
    back = ""
    if intent.return_url is not None:
        back = f'<p class="back"><a id="back" href="{escape(intent.return_url)}">Back to the shop</a></p>'
    body = _PAGE.substitute(
        title=f"{heading} (sandbox)",
        intent=escape(intent.id),
        status=intent.status.value,
        heading=heading,
        reference=escape(intent.reference),
        content=_form(amount) if payable else "",
        message=_MESSAGES[intent.status],
        back=back,
    )
    return Answer(200, body.encode(), _HEADERS)


def render_missing() -> Answer:
    """The page for an address that is no intent's."""
    body = _PAGE.substitute(
        title="No such payment (sandbox)",
        intent="",
        status="missing",
        heading="No such payment",
        reference="unknown",
        content="",
        message="Open the payment from the shop again.",
        back="",
    )
    return Answer(404, body.encode(), _HEADERS)


def _form(amount: str) -> str:
    cards = "".join(
        _CARD.substitute(
            number=card.number,
            label=escape(card.label),
            shown_number=card.shown_number,
            checked=" checked" if place == 0 else "",
        )
        for place, card in enumerate(CARDS.values())
    )
    return _FORM.substitute(cards=cards, amount=amount)
