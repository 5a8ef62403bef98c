"""The operations of the data plane and of the process, one entry each."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from fairdrop.web.data_plane import documents

from .structs import (
    DrawParameters,
    JwkSet,
    LeftDocument,
    LiveDocument,
    Problem,
    PublicSaleList,
    ReadyDocument,
    ReceivedDocument,
)

_SALE = ("path", "sale", "The sale's id or slug.", {"type": "string"})
_ORDER = ("path", "order", "The order's id, which is that of its reservation.", {"type": "string"})
_RESERVATION = ("path", "reservation", "The reservation's id.", {"type": "string"})
_GATEWAY = ("path", "gateway", "The gateway's name, like sandbox.", {"type": "string"})
_TICKET = (
    "query",
    "ticket",
    "A ticket that names the visitor, where no cookie does.",
    {"type": "string"},
)
_ADMISSION = (
    "header",
    "Fairdrop-Admission",
    "The admission token (a JWT) that claiming gave.",
    {"type": "string"},
)
_PROOF = (
    "header",
    "fairdrop-proof",
    "The solution of the challenge that came with `proof_required`: base64 of JSON (W18).",
    {"type": "string"},
)
_ACTED_FOR = (
    "header",
    "fairdrop-buyer",
    "For whom a server of the shop acts, by the shop's own name of the buyer; with an API key (S2).",
    {"type": "string", "maxLength": 200},
)
_ADMISSION_MAYBE = (
    "header",
    "fairdrop-admission",
    "The admission token; left out when the cookie carries it.",
    {"type": "string"},
)
_KEY = (
    "header",
    "Idempotency-Key",
    "Names the operation: repeat a request with the same key and it is done once (H3).",
    {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"},
)
_KEY_MAYBE = ("header", "idempotency-key", "Needed where units are counted.", _KEY[3])
_SHOP_KEY = (
    "header",
    "Fairdrop-Shop-Key",
    "The shop's API key, when its server asks for the buyer: then `verified` counts (H6).",
    {"type": "string"},
)
_ONE_LINE = (
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
_QUANTITY_TO_HAVE = (
    _ONE_LINE[0],
    (
        "query",
        "quantity",
        "Units that it shall have.",
        {"type": "integer", "minimum": 0, "maximum": 1000},
    ),
)
REQUIRED_HEADERS = ("Fairdrop-Admission", "Idempotency-Key")
_BUYER: list[dict[str, list[str]]] = [{"visitor": []}, {"visitorCookie": []}]
_ANYBODY: list[dict[str, list[str]]] = []
_SAY_WHO = "Nobody is named, or the visitor token is not one of ours."


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
    security: list[dict[str, list[str]]] = _BUYER


def _refused(about: str) -> tuple[str, type[msgspec.Struct]]:
    return about, Problem


_NO_SALE = _refused("There is no such sale (`no_such_sale`).")
_UNKNOWN = _refused(_SAY_WHO + " (`visitor_required`, `visitor_unknown`)")
_BAD_BODY = _refused("The body is not JSON (`malformed_json`), or the key is missing.")
_BUSY = _refused("Something does not answer, or too much is asked at once; come back soon.")
_STATUS = ("Where the visitor stands.", documents.StatusDocument)
_AN_ORDER = ("The order.", documents.OrderDocument)

OPERATIONS = (
    Operation(
        "get",
        "/v1/sales",
        "list_public_sales",
        "The sales there are",
        "",
        "line",
        (),
        {200: ("The newest sales.", PublicSaleList), 503: _BUSY},
        security=_ANYBODY,
    ),
    Operation(
        "get",
        "/v1/sales/{sale}",
        "show_public_sale",
        "The public document of a sale",
        "The same for everybody and cacheable for a second: mode, the number now served, the pace,"
        " live stock. Clients work their place out from it by subtraction (W6).",
        "line",
        (_SALE, ("header", "If-None-Match", "The ETag of the copy at hand.", {"type": "string"})),
        {
            200: ("The document, with an ETag.", documents.PublicDocument),
            304: ("The copy at hand is still right.", None),
            404: _NO_SALE,
            503: _BUSY,
        },
        security=_ANYBODY,
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
            _SALE,
            (
                "header",
                "idempotency-key",
                "For a first join: at least 128 bits of chance, made by the client and kept secret.",
                {"type": "string", "pattern": "^[A-Za-z0-9_-]{22,64}$"},
            ),
            _PROOF,
            (
                "header",
                "fairdrop-captcha",
                "The token that the widget of a CAPTCHA gave, after `captcha_required` (W18).",
                {"type": "string"},
            ),
            ("header", "fairdrop-invite", "The code of an invitation (W19).", {"type": "string"}),
            _ACTED_FOR,
        ),
        {
            200: _STATUS,
            401: _refused("The visitor token is not one of ours (`visitor_unknown`)."),
            403: _refused(
                "`proof_required`, with the `challenge` to solve; `captcha_required`;"
                " `invite_required` or `invite_refused`."
            ),
            404: _NO_SALE,
            400: _refused("The key can be guessed (`idempotency_key_weak`)."),
            409: _refused("`sale_not_open`, `sale_closed`, or `line_full` (W16)."),
            503: _BUSY,
        },
        security=[{}, *_BUYER],
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
        (_SALE,),
        {
            200: _STATUS,
            400: _BAD_BODY,
            401: _UNKNOWN,
            403: _refused("`receipt_forged`, `receipt_other_sale` or `receipt_other_visitor`."),
            404: _NO_SALE,
            409: _refused("`receipt_void`, `receipt_of_lobby`, `place_used` or `sale_closed`."),
            413: _refused("The body is too large (`body_too_large`)."),
            422: _refused("The body is not what we take (`invalid_request`)."),
            503: _BUSY,
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
        (_SALE,),
        {
            200: ("The parameters so far, with an ETag.", DrawParameters),
            304: ("The copy at hand is still right.", None),
            404: _NO_SALE,
            503: _BUSY,
        },
        security=_ANYBODY,
    ),
    Operation(
        "get",
        "/v1/sales/{sale}/draw/{file}",
        "show_draw_file",
        "A public file of the draw",
        "`draw.json`, `entries.txt` or `order.txt`: all that `fairdrop verify-draw` needs (W4).",
        "line",
        (_SALE, ("path", "file", "The file's name.", {"type": "string"})),
        {
            200: ("The file; the text files never change.", "text/plain"),
            304: ("The copy at hand is still right.", None),
            404: _refused("There is no such sale or file, or it is not published yet."),
            503: _BUSY,
        },
        security=_ANYBODY,
    ),
    Operation(
        "post",
        "/v1/sales/{sale}/receipt",
        "prove_entry",
        "A proof of an entry that anybody can check",
        "Takes the receipt that joining the lobby gave, and signs what it says with Ed25519 (W4).",
        "line",
        (_SALE,),
        {
            200: ("The proof, a JWT.", documents.ProofDocument),
            400: _refused("The body is not JSON (`malformed_json`)."),
            404: _refused("There is no such sale, or no Ed25519 key (`no_signing_key`)."),
            413: _refused("The body is too large (`body_too_large`)."),
            422: _refused("No receipt of an entry in this sale (`receipt_unknown`)."),
            503: _BUSY,
        },
        body=documents.ReceiptRequest,
        security=_ANYBODY,
    ),
    Operation(
        "get",
        "/v1/sales/{sale}/me",
        "show_place",
        "Where the visitor stands",
        "`poll_after_ms` says when to ask again. `token` is there once the visitor is admitted.",
        "line",
        (_SALE,),
        {200: _STATUS, 401: _UNKNOWN, 404: _NO_SALE, 503: _BUSY},
    ),
    Operation(
        "delete",
        "/v1/sales/{sale}/me",
        "leave",
        "Leave the line",
        "Also gives a place inside back, which somebody else gets at once.",
        "line",
        (_SALE,),
        {200: ("The visitor has left.", LeftDocument), 401: _UNKNOWN, 404: _NO_SALE, 503: _BUSY},
    ),
    Operation(
        "post",
        "/v1/sales/{sale}/claim",
        "claim",
        "Go in when called",
        "Turns READY into ADMITTED and gives the admission token. Claiming again gives the same one.",
        "line",
        (_SALE, _PROOF, _ACTED_FOR),
        {
            200: _STATUS,
            401: _UNKNOWN,
            403: _refused("`proof_required`, with the `challenge` to solve (W18)."),
            404: _NO_SALE,
            409: _refused("`not_called`, or `missed`: join again, the old place is kept (W11)."),
            503: _BUSY,
        },
    ),
    Operation(
        "post",
        "/v1/sales/{sale}/reservations",
        "reserve",
        "Reserve units",
        "All lines or none. The units are held until `deadline_ms` and are nobody else's. A single"
        " line may come in the query instead of a body, which is answered a little sooner.",
        "checkout",
        (_SALE, _ADMISSION, _KEY, _SHOP_KEY, *_ONE_LINE),
        {
            201: ("The units are held.", documents.ReservationDocument),
            400: _BAD_BODY,
            401: _refused(_SAY_WHO + " Or there is no admission token (`admission_required`)."),
            403: _refused(
                "`admission_forged`, `admission_expired`, `admission_revoked`,"
                " `admission_other_sale` or `admission_other_buyer`."
            ),
            404: _NO_SALE,
            409: _refused(
                "`sold_out`, `buyer_limit`, `person_limit`, `already_reserved` or `sale_closed`."
            ),
            413: _refused("`body_too_large`."),
            422: _refused(
                "`order_limit`, `unknown_variant`, `idempotency_key_reused` or `invalid_request`."
            ),
            503: _BUSY,
        },
        documents.ReservationRequest,
    ),
    Operation(
        "delete",
        "/v1/sales/{sale}/reservations/{reservation}",
        "release",
        "Give a reservation back, or some of it",
        "All of it without a body; a whole variant, or so many units of it, with lines in the body or"
        " one line in the query. Repeating it changes nothing: what is given back is what is held."
        " Units of a variant need an Idempotency-Key.",
        "checkout",
        (_SALE, _RESERVATION, _KEY_MAYBE, *_ONE_LINE),
        {
            200: ("The units are free again.", documents.ReleasedDocument),
            400: _BAD_BODY,
            401: _UNKNOWN,
            404: _refused("`no_such_sale` or `no_reservation`."),
            409: _refused("`order_started`: cancel the order instead."),
            413: _refused("`body_too_large`."),
            422: _refused("`idempotency_key_reused` or `invalid_request`."),
            503: _BUSY,
        },
        documents.PartialRelease,
    ),
    Operation(
        "patch",
        "/v1/sales/{sale}/reservations/{reservation}",
        "change_reservation",
        "Have other quantities",
        "Quantities are what the reservation shall have, up or down, all or nothing; 0 gives a variant"
        " back. The deadline stays. A refusal leaves the reservation as it was.",
        "checkout",
        (_SALE, _RESERVATION, _KEY, *_QUANTITY_TO_HAVE),
        {
            200: (
                "The reservation as it is now; RELEASED when nothing is left in it.",
                documents.ReservationDocument,
            ),
            400: _BAD_BODY,
            401: _UNKNOWN,
            403: _refused("`admission_revoked`: more is wanted, and the turn is over."),
            404: _refused("`no_such_sale` or `no_reservation`."),
            409: _refused(
                "`sold_out`, `buyer_limit`, `sale_closed`, `order_started` or"
                " `reservation_expired`."
            ),
            413: _refused("`body_too_large`."),
            422: _refused(
                "`order_limit`, `unknown_variant`, `idempotency_key_reused` or `invalid_request`."
            ),
            503: _BUSY,
        },
        documents.ReservationChange,
    ),
    Operation(
        "post",
        "/v1/sales/{sale}/orders",
        "start_order",
        "Start checkout",
        "Turns a reservation into an order, which has the reservation's id. Repeating it gives the"
        " same order.",
        "checkout",
        (_SALE, _SHOP_KEY),
        {
            201: _AN_ORDER,
            400: _BAD_BODY,
            401: _UNKNOWN,
            404: _refused("`no_such_sale` or `no_reservation`."),
            409: _refused(
                "`reservation_expired`, `already_ordered`, `person_limit` or `units_lost`."
            ),
            413: _refused("`body_too_large`."),
            422: _refused("`invalid_request`."),
            503: _BUSY,
        },
        documents.OrderRequest,
    ),
    Operation(
        "get",
        "/v1/orders/{order}",
        "show_own_order",
        "The buyer's order",
        "",
        "checkout",
        (_ORDER,),
        {200: _AN_ORDER, 401: _UNKNOWN, 404: _refused("`no_order`."), 503: _BUSY},
    ),
    Operation(
        "post",
        "/v1/orders/{order}/pay",
        "pay",
        "Pay",
        "Gives `payment.url`, the gateway's page. Repeating it gives the same payment (O5).",
        "checkout",
        (_ORDER,),
        {
            200: _AN_ORDER,
            401: _UNKNOWN,
            404: _refused("`no_order`."),
            409: _refused("`order_not_payable`."),
            502: _refused("`gateway_refused`."),
            503: _BUSY,
        },
    ),
    Operation(
        "post",
        "/v1/orders/{order}/cancel",
        "cancel",
        "Cancel an unpaid order",
        "Its units are free at once.",
        "checkout",
        (_ORDER,),
        {
            200: _AN_ORDER,
            401: _UNKNOWN,
            404: _refused("`no_order`."),
            409: _refused("`order_not_cancellable`."),
            503: _BUSY,
        },
    ),
    Operation(
        "post",
        "/v1/webhooks/{gateway}",
        "receive_webhook",
        "Tell of a payment",
        "The raw body with the gateway's signature header. Stored before it is answered (O6).",
        "gateways",
        (_GATEWAY,),
        {
            200: ("Stored.", ReceivedDocument),
            400: _refused("`body_malformed`."),
            401: _refused("The signature is missing, wrong or stale."),
            404: _refused("`no_such_gateway`."),
            413: _refused("`body_too_large`."),
            503: _BUSY,
        },
        security=_ANYBODY,
    ),
    Operation(
        "get",
        "/v1/sales/{sale}/auth",
        "check_admission",
        "Is this request by somebody inside?",
        "For `auth_request` of nginx and `forward_auth` of Caddy. The token comes in its header or in the"
        " cookie `fairdrop_admission_<slug>`, never in the address. The header `Fairdrop-Reason` repeats"
        " the problem's code (W20).",
        "shop",
        (_SALE, _ADMISSION_MAYBE),
        {
            204: ("Yes; headers name the buyer, the admission and when it ends.", None),
            401: _refused("There is no token (`admission_required`)."),
            403: _refused(
                "`admission_forged`, `admission_expired`, `admission_revoked`,"
                " `admission_other_sale` or `admission_other_buyer`."
            ),
            404: _NO_SALE,
            503: _BUSY,
        },
        security=_ANYBODY,
    ),
    Operation(
        "post",
        "/v1/sales/{sale}/ticket",
        "issue_ticket",
        "A ticket for one stream",
        "For the streams of a browser that sends us no cookie, like that of a shop of another origin:"
        " `?ticket=…` names the visitor for half a minute, and gives nothing but the stream (W7).",
        "line",
        (_SALE,),
        {
            200: ("The ticket.", documents.TicketDocument),
            401: _refused(_SAY_WHO),
            404: _NO_SALE,
            503: _BUSY,
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
        (_SALE, _TICKET),
        {
            200: ("The events, without end.", "text/event-stream"),
            401: _refused("The ticket is over, or not one of ours."),
            403: _refused("The page's origin is none of the shop's."),
            404: _NO_SALE,
            503: _refused("As many streams are open as this process keeps; poll instead."),
        },
        security=_ANYBODY,
    ),
    Operation(
        "get",
        "/v1/sales/{sale}/socket",
        "open_socket",
        "The same as a WebSocket",
        "Served by the push process. Every message is a JSON object `{type, data}` with the events of"
        " `/stream` as types. Nothing is to be sent; who sends is disconnected (1008).",
        "line",
        (_SALE, _TICKET),
        {
            101: ("The WebSocket.", None),
            401: _refused("The ticket is over, or not one of ours."),
            403: _refused("The page's origin is none of the shop's."),
            404: _NO_SALE,
            503: _refused("As many streams are open as this process keeps; poll instead."),
        },
        security=_ANYBODY,
    ),
    Operation(
        "get",
        "/v1/sales/{sale}/revocations",
        "list_revocations",
        "Tokens that ended before their expiry",
        "The same for everybody and cacheable for a second. A token is revoked when its `jti` begins with"
        " one of the eight characters listed, or when its epoch is another (W12).",
        "shop",
        (_SALE, ("header", "If-None-Match", "The ETag of the copy at hand.", {"type": "string"})),
        {
            200: ("The list, with an ETag.", documents.RevocationsDocument),
            304: ("The copy at hand is still right.", None),
            404: _NO_SALE,
            503: _BUSY,
        },
        security=_ANYBODY,
    ),
    Operation(
        "post",
        "/v1/sales/{sale}/completions",
        "report_completion",
        "Tell how the shop's own checkout ended",
        "Frees the place inside at once and ends the token. Repeating a report changes nothing; another"
        " order for the same admission is refused, so that it can be rolled back (W13).",
        "shop",
        (_SALE,),
        {
            200: ("On record.", documents.CompletionDocument),
            400: _refused("The body is not JSON (`malformed_json`)."),
            401: _refused("The API key is missing or wrong (`api_key_required`)."),
            403: _refused("`admission_forged` or `admission_other_sale`."),
            404: _NO_SALE,
            409: _refused("`admission_used`: the admission has ended with another order."),
            413: _refused("`body_too_large`."),
            422: _refused("`invalid_request`."),
            503: _BUSY,
        },
        documents.CompletionRequest,
        security=[{"shopKey": []}, {"adminKey": []}],
    ),
    Operation(
        "get",
        "/.well-known/jwks.json",
        "show_keys",
        "Keys that verify admission tokens",
        "",
        "line",
        (),
        {200: ("The public keys.", JwkSet)},
        security=_ANYBODY,
    ),
    Operation(
        "get",
        "/livez",
        "livez",
        "Does the process live?",
        "",
        "operation",
        (),
        {200: ("It does.", LiveDocument)},
        security=_ANYBODY,
    ),
    Operation(
        "get",
        "/readyz",
        "readyz",
        "Can it serve?",
        "The store answers and evicts nothing, the database answers, running sales are loaded.",
        "operation",
        (),
        {200: ("It can.", ReadyDocument), 503: ("It cannot.", ReadyDocument)},
        security=_ANYBODY,
    ),
    Operation(
        "get",
        "/metrics",
        "metrics",
        "Metrics for Prometheus",
        "",
        "operation",
        (),
        {200: ("Metrics in the text format that was asked for.", "text/plain")},
        security=_ANYBODY,
    ),
)
