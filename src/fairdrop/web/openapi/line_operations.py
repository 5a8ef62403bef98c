"""The operations of the line: the public document, joining, places, the draw, streams."""

from __future__ import annotations

from fairdrop.draw import Inclusion
from fairdrop.web.data_plane import documents

from .operation import (
    ACTED_FOR,
    ANYBODY,
    BAD_BODY,
    BUSY,
    BUYER,
    NO_SALE,
    PROOF,
    SALE,
    SAY_WHO,
    STATUS,
    TICKET,
    UNKNOWN,
    Operation,
    refused,
)
from .structs import DrawParameters, LeftDocument, PublicSaleList

LINE = (
    Operation(
        "get",
        "/v1/sales",
        "list_public_sales",
        "The sales there are",
        "",
        "line",
        (),
        {200: ("The newest sales.", PublicSaleList), 503: BUSY},
        security=ANYBODY,
    ),
    Operation(
        "get",
        "/v1/sales/{sale}",
        "show_public_sale",
        "The public document of a sale",
        "The same for everybody and cacheable for a second: mode, the number now served, the pace,"
        " live stock. Clients work their place out from it by subtraction (W6).",
        "line",
        (SALE, ("header", "If-None-Match", "The ETag of the copy at hand.", {"type": "string"})),
        {
            200: ("The document, with an ETag.", documents.PublicDocument),
            304: ("The copy at hand is still right.", None),
            404: NO_SALE,
            503: BUSY,
        },
        security=ANYBODY,
    ),
    Operation(
        "post",
        "/v1/sales/{sale}/join",
        "join",
        "Join the line",
        "Joining again gives the same place (W1). Who comes without a visitor token gets one, in the"
        " answer and as a cookie. A client that sends a random key of its own with its first join may"
        " repeat it after a lost answer: the same key is the same visitor. `receipt` proves the place,"
        " should the line ever be lost: keep it, and show it to `restore` (W15).",
        "line",
        (
            SALE,
            (
                "header",
                "idempotency-key",
                "For a first join: at least 128 bits of chance, made by the client and kept secret.",
                {"type": "string", "pattern": "^[A-Za-z0-9_-]{22,64}$"},
            ),
            PROOF,
            (
                "header",
                "fairdrop-captcha",
                "The token that the widget of a CAPTCHA gave, after `captcha_required` (W18).",
                {"type": "string"},
            ),
            ("header", "fairdrop-invite", "The code of an invitation (W19).", {"type": "string"}),
            ACTED_FOR,
        ),
        {
            200: STATUS,
            401: refused("The visitor token is not one of ours (`visitor_unknown`)."),
            403: refused(
                "`proof_required`, with the `challenge` to solve; `captcha_required`, with the"
                " `provider`, `site_key` and `script` of the widget to show;"
                " `invite_required` or `invite_refused`."
            ),
            404: NO_SALE,
            400: refused("The key can be guessed (`idempotency_key_weak`)."),
            409: refused("`sale_not_open`, `sale_closed`, or `line_full` (W16)."),
            503: BUSY,
        },
        security=[{}, *BUYER],
    ),
    Operation(
        "post",
        "/v1/sales/{sale}/restore",
        "restore_place",
        "Get the place back that a receipt proves",
        "For a line that was lost with its store: `show_place` says NOT_ENTERED although the client has"
        " a receipt (W15). Send the admission token too, if there was one. Repeating it changes"
        " nothing. Nobody is called before `restoring_until_ms`, so that nobody passes others.",
        "line",
        (SALE,),
        {
            200: STATUS,
            400: BAD_BODY,
            401: UNKNOWN,
            403: refused("`receipt_forged`, `receipt_other_sale` or `receipt_other_visitor`."),
            404: NO_SALE,
            409: refused("`receipt_void`, `receipt_of_lobby`, `place_used` or `sale_closed`."),
            413: refused("The body is too large (`body_too_large`)."),
            422: refused("The body is not what we take (`invalid_request`)."),
            503: BUSY,
        },
        body=documents.RestoreRequest,
    ),
    Operation(
        "get",
        "/v1/sales/{sale}/draw",
        "show_draw_parameters",
        "The public parameters of the draw",
        "`draw.json`: the commitment from the beginning, the root once the lobby is shut, the seed once"
        " the order is drawn (W4).",
        "line",
        (SALE,),
        {
            200: ("The parameters so far, with an ETag.", DrawParameters),
            304: ("The copy at hand is still right.", None),
            404: NO_SALE,
            503: BUSY,
        },
        security=ANYBODY,
    ),
    Operation(
        "get",
        "/v1/sales/{sale}/draw/{file}",
        "show_draw_file",
        "A public file of the draw",
        "`draw.json`, `entries.txt` or `order.txt`: all that `fairdrop verify-draw` needs (W4).",
        "line",
        (SALE, ("path", "file", "The file's name.", {"type": "string"})),
        {
            200: ("The file; the text files never change.", "text/plain"),
            304: ("The copy at hand is still right.", None),
            404: refused("There is no such sale or file, or it is not published yet."),
            503: BUSY,
        },
        security=ANYBODY,
    ),
    Operation(
        "get",
        "/v1/sales/{sale}/draw/entries/{entry}",
        "show_draw_entry",
        "The short proof of one entry",
        "The hashes beside the way from the entry to the root of the list: with them, the root alone"
        " shows that the entry is in it (W4).",
        "line",
        (SALE, ("path", "entry", "The entry id.", {"type": "string"})),
        {
            200: ("The proof; it never changes.", Inclusion),
            304: ("The copy at hand is still right.", None),
            404: refused(
                "There is no such sale, or the list is not closed yet or has no such entry"
                " (`entry_not_listed`)."
            ),
            503: BUSY,
        },
        security=ANYBODY,
    ),
    Operation(
        "post",
        "/v1/sales/{sale}/receipt",
        "prove_entry",
        "A proof of an entry that anybody can check",
        "Takes the receipt that joining the lobby gave, and signs what it says with Ed25519 (W4).",
        "line",
        (SALE,),
        {
            200: ("The proof, a JWT.", documents.ProofDocument),
            400: refused("The body is not JSON (`malformed_json`)."),
            404: refused("There is no such sale, or no Ed25519 key (`no_signing_key`)."),
            413: refused("The body is too large (`body_too_large`)."),
            422: refused("No receipt of an entry in this sale (`receipt_unknown`)."),
            503: BUSY,
        },
        body=documents.ReceiptRequest,
        security=ANYBODY,
    ),
    Operation(
        "get",
        "/v1/sales/{sale}/me",
        "show_place",
        "Where the visitor stands",
        "`poll_after_ms` says when to ask again. `token` is there once the visitor is admitted.",
        "line",
        (SALE,),
        {200: STATUS, 401: UNKNOWN, 404: NO_SALE, 503: BUSY},
    ),
    Operation(
        "delete",
        "/v1/sales/{sale}/me",
        "leave",
        "Leave the line",
        "Also gives a place inside back, which somebody else gets at once.",
        "line",
        (SALE,),
        {200: ("The visitor has left.", LeftDocument), 401: UNKNOWN, 404: NO_SALE, 503: BUSY},
    ),
    Operation(
        "post",
        "/v1/sales/{sale}/claim",
        "claim",
        "Go in when called",
        "Turns READY into ADMITTED and gives the admission token. Claiming again gives the same one.",
        "line",
        (SALE, PROOF, ACTED_FOR),
        {
            200: STATUS,
            401: UNKNOWN,
            403: refused("`proof_required`, with the `challenge` to solve (W18)."),
            404: NO_SALE,
            409: refused("`not_called`, or `missed`: join again, the old place is kept (W11)."),
            503: BUSY,
        },
    ),
    Operation(
        "post",
        "/v1/sales/{sale}/ticket",
        "issue_ticket",
        "A ticket for one stream",
        "For the streams of a browser that sends us no cookie, like that of a shop of another origin:"
        " `?ticket=…` names the visitor for half a minute, and gives nothing but the stream (W7).",
        "line",
        (SALE,),
        {
            200: ("The ticket.", documents.TicketDocument),
            401: refused(SAY_WHO),
            404: NO_SALE,
            503: BUSY,
        },
    ),
    Operation(
        "get",
        "/v1/sales/{sale}/stream",
        "stream_sale",
        "The public document and your own status as Server-Sent Events",
        "Served by the push process (`push_url` of the public document). Events: `sale`, the public"
        " document, within a second of a change and at least every 5 s; `place`, the status document of"
        " who listens, at the start and as soon as they are called; `bye`, when to come back. Listeners"
        " are named by the cookie or by a ticket; without either they get `sale` alone (W7).",
        "line",
        (SALE, TICKET),
        {
            200: ("The events, without end.", "text/event-stream"),
            401: refused("The ticket is over, or not one of ours."),
            403: refused("The page's origin is none of the shop's."),
            404: NO_SALE,
            503: refused("As many streams are open as this process keeps; poll instead."),
        },
        security=ANYBODY,
    ),
    Operation(
        "get",
        "/v1/sales/{sale}/socket",
        "open_socket",
        "The same as a WebSocket",
        "Served by the push process. Every message is a JSON object `{type, data}` with the events of"
        " `/stream` as types. Nothing is to be sent; who sends is disconnected (1008).",
        "line",
        (SALE, TICKET),
        {
            101: ("The WebSocket.", None),
            401: refused("The ticket is over, or not one of ours."),
            403: refused("The page's origin is none of the shop's."),
            404: NO_SALE,
            503: refused("As many streams are open as this process keeps; poll instead."),
        },
        security=ANYBODY,
    ),
)
