"""What an operation of the API document is made of, and the words that several of them share."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from fairdrop.web.data_plane import documents

from .structs import (
    Problem,
)

SALE = ("path", "sale", "The sale's id or slug.", {"type": "string"})
ORDER = ("path", "order", "The order's id, which is that of its reservation.", {"type": "string"})
RESERVATION = ("path", "reservation", "The reservation's id.", {"type": "string"})
GATEWAY = ("path", "gateway", "The gateway's name, like sandbox.", {"type": "string"})
TICKET = (
    "query",
    "ticket",
    "A ticket that names the visitor, where no cookie does.",
    {"type": "string"},
)
ADMISSION = (
    "header",
    "Fairdrop-Admission",
    "The admission token (a JWT) that claiming gave.",
    {"type": "string"},
)
PROOF = (
    "header",
    "fairdrop-proof",
    "The solution of the challenge that came with `proof_required`: base64 of JSON (W18).",
    {"type": "string"},
)
ACTED_FOR = (
    "header",
    "fairdrop-buyer",
    "For whom a server of the shop acts, by the shop's own name of the buyer; with an API key (S2).",
    {"type": "string", "maxLength": 200},
)
ADMISSION_MAYBE = (
    "header",
    "fairdrop-admission",
    "The admission token; left out when the cookie carries it.",
    {"type": "string"},
)
KEY = (
    "header",
    "Idempotency-Key",
    "Names the operation: repeat a request with the same key and it is done once (H3).",
    {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"},
)
KEY_MAYBE = ("header", "idempotency-key", "Needed where units are counted.", KEY[3])
SHOP_KEY = (
    "header",
    "Fairdrop-Shop-Key",
    "The shop's API key, when its server asks for the buyer: then `verified` counts (H6).",
    {"type": "string"},
)
ONE_LINE = (
    (
        "query",
        "variant",
        "The variant of a single line; then there is no body.",
        {"type": "string"},
    ),
    (
        "query",
        "quantity",
        "Units of that line.",
        {"type": "integer", "minimum": 1, "maximum": 1000},
    ),
)
QUANTITY_TO_HAVE = (
    ONE_LINE[0],
    (
        "query",
        "quantity",
        "Units that it shall have.",
        {"type": "integer", "minimum": 0, "maximum": 1000},
    ),
)
REQUIRED_HEADERS = ("Fairdrop-Admission", "Idempotency-Key")
BUYER: list[dict[str, list[str]]] = [{"visitor": []}, {"visitorCookie": []}]
ANYBODY: list[dict[str, list[str]]] = []
SAY_WHO = "Nobody is named, or the visitor token is not one of ours."


class Operation(NamedTuple):
    """What a client needs to know to call it."""

    method: str
    path: str
    name: str
    summary: str
    about: str
    tag: str
    parameters: tuple[tuple[str, str, str, dict[str, Any]], ...]
    answers: dict[int, tuple[str, type[msgspec.Struct] | str | None]]
    body: type[msgspec.Struct] | None = None
    security: list[dict[str, list[str]]] = BUYER


def refused(about: str) -> tuple[str, type[msgspec.Struct]]:
    """An answer that is a problem document."""
    return about, Problem


NO_SALE = refused("There is no such sale (`no_such_sale`).")
UNKNOWN = refused(SAY_WHO + " (`visitor_required`, `visitor_unknown`)")
BAD_BODY = refused("The body is not JSON (`malformed_json`), or the key is missing.")
BUSY = refused("Something does not answer, or too much is asked at once; come back soon.")
STATUS = ("Where the visitor stands.", documents.StatusDocument)
AN_ORDER = ("The order.", documents.OrderDocument)
