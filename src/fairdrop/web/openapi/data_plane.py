"""The data plane's operations, described by hand; their schemas come from the structs that serve."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from fairdrop.web.control_plane.problems import MEDIA_TYPE as PROBLEM_MEDIA_TYPE
from fairdrop.web.data_plane import documents

_REFERENCE = "#/components/schemas/{name}"

TAGS = [
    {"name": "line", "description": "Data plane: see sales, join the line, claim a turn."},
    {"name": "checkout", "description": "Data plane: reserve units, order, pay."},
    {"name": "gateways", "description": "What payment gateways call."},
    {"name": "operation", "description": "What load balancers and monitoring call."},
]


class Problem(msgspec.Struct):
    """What went wrong (RFC 9457); nothing was changed. Some codes carry more members."""

    type: str
    title: str
    status: int
    code: str
    detail: str


class PublicSaleSummary(msgspec.Struct):
    """A sale in the list of all."""

    id: str
    slug: str
    name: str
    mode: str
    opens_at: str
    closes_at: str | None
    timezone: str
    currency: str


class PublicSaleList(msgspec.Struct):
    """The newest sales, newest first."""

    sales: list[PublicSaleSummary]


class LeftDocument(msgspec.Struct):
    """The visitor has no place any more."""

    state: str
    left: bool


class ReleasedDocument(msgspec.Struct):
    """How many units are free again; 0 when none were held."""

    released: int


class ReceivedDocument(msgspec.Struct):
    """The webhook is stored, and will be settled."""

    received: bool


class JwkSet(msgspec.Struct):
    """Public keys (RFC 7517) that verify admission tokens."""

    keys: list[dict[str, Any]]


class LiveDocument(msgspec.Struct):
    """The process lives."""

    live: bool


class ReadyDocument(msgspec.Struct):
    """Whether everything needed answers; `checks` tells of each part, `ok` or what is wrong."""

    ready: bool
    checks: dict[str, str]


_STRUCTS: tuple[type[msgspec.Struct], ...] = (
    Problem,
    PublicSaleList,
    LeftDocument,
    ReleasedDocument,
    ReceivedDocument,
    JwkSet,
    LiveDocument,
    ReadyDocument,
    documents.PublicDocument,
    documents.StatusDocument,
    documents.ReservationRequest,
    documents.ReservationDocument,
    documents.OrderRequest,
    documents.OrderDocument,
)

_SALE = ("path", "sale", "The sale's id or slug.", {"type": "string"})
_ORDER = ("path", "order", "The order's id, which is that of its reservation.", {"type": "string"})
_RESERVATION = ("path", "reservation", "The reservation's id.", {"type": "string"})
_GATEWAY = ("path", "gateway", "The gateway's name, like sandbox.", {"type": "string"})
_ADMISSION = (
    "header",
    "Fairdrop-Admission",
    "The admission token (a JWT) that claiming gave.",
    {"type": "string"},
)
_KEY = (
    "header",
    "Idempotency-Key",
    "Names the operation: repeat a request with the same key and it is done once (H3).",
    {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"},
)
_BUYER = [{"visitor": []}, {"visitorCookie": []}]
_ANYBODY: list[dict[str, list[str]]] = []
_SAY_WHO = "Nobody is named, or the visitor token is not one of ours."


class _Operation(NamedTuple):
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

_OPERATIONS = (
    _Operation(
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
    _Operation(
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
    _Operation(
        "post",
        "/v1/sales/{sale}/join",
        "join",
        "Join the line",
        "Joining again gives the same place (W1). Who comes without a visitor token gets one, in the"
        " answer and as a cookie.",
        "line",
        (_SALE,),
        {
            200: _STATUS,
            401: _refused("The visitor token is not one of ours (`visitor_unknown`)."),
            404: _NO_SALE,
            409: _refused("`sale_not_open` or `sale_closed`."),
            503: _BUSY,
        },
        security=[{}, *_BUYER],
    ),
    _Operation(
        "get",
        "/v1/sales/{sale}/me",
        "show_place",
        "Where the visitor stands",
        "`poll_after_ms` says when to ask again. `token` is there once the visitor is admitted.",
        "line",
        (_SALE,),
        {200: _STATUS, 401: _UNKNOWN, 404: _NO_SALE, 503: _BUSY},
    ),
    _Operation(
        "delete",
        "/v1/sales/{sale}/me",
        "leave",
        "Leave the line",
        "Also gives a place inside back, which somebody else gets at once.",
        "line",
        (_SALE,),
        {200: ("The visitor has left.", LeftDocument), 401: _UNKNOWN, 404: _NO_SALE, 503: _BUSY},
    ),
    _Operation(
        "post",
        "/v1/sales/{sale}/claim",
        "claim",
        "Go in when called",
        "Turns READY into ADMITTED and gives the admission token. Claiming again gives the same one.",
        "line",
        (_SALE,),
        {
            200: _STATUS,
            401: _UNKNOWN,
            404: _NO_SALE,
            409: _refused("`not_called`, or `missed`: join again, the old place is kept (W11)."),
            503: _BUSY,
        },
    ),
    _Operation(
        "post",
        "/v1/sales/{sale}/reservations",
        "reserve",
        "Reserve units",
        "All lines or none. The units are held until `deadline_ms` and are nobody else's.",
        "checkout",
        (_SALE, _ADMISSION, _KEY),
        {
            201: ("The units are held.", documents.ReservationDocument),
            400: _BAD_BODY,
            401: _refused(_SAY_WHO + " Or there is no admission token (`admission_required`)."),
            403: _refused(
                "`admission_forged`, `admission_expired`, `admission_revoked`,"
                " `admission_other_sale` or `admission_other_buyer`."
            ),
            404: _NO_SALE,
            409: _refused("`sold_out`, `buyer_limit`, `already_reserved` or `sale_closed`."),
            413: _refused("`body_too_large`."),
            422: _refused(
                "`order_limit`, `unknown_variant`, `idempotency_key_reused` or `invalid_request`."
            ),
            503: _BUSY,
        },
        documents.ReservationRequest,
    ),
    _Operation(
        "delete",
        "/v1/sales/{sale}/reservations/{reservation}",
        "release",
        "Give a reservation back",
        "Repeating it changes nothing.",
        "checkout",
        (_SALE, _RESERVATION),
        {
            200: ("The units are free again.", ReleasedDocument),
            401: _UNKNOWN,
            404: _NO_SALE,
            409: _refused("`order_started`: cancel the order instead."),
            503: _BUSY,
        },
    ),
    _Operation(
        "post",
        "/v1/sales/{sale}/orders",
        "start_order",
        "Start checkout",
        "Turns a reservation into an order, which has the reservation's id. Repeating it gives the"
        " same order.",
        "checkout",
        (_SALE,),
        {
            201: _AN_ORDER,
            400: _BAD_BODY,
            401: _UNKNOWN,
            404: _refused("`no_such_sale` or `no_reservation`."),
            409: _refused("`reservation_expired`, `already_ordered` or `units_lost`."),
            413: _refused("`body_too_large`."),
            422: _refused("`invalid_request`."),
            503: _BUSY,
        },
        documents.OrderRequest,
    ),
    _Operation(
        "get",
        "/v1/orders/{order}",
        "show_own_order",
        "The buyer's order",
        "",
        "checkout",
        (_ORDER,),
        {200: _AN_ORDER, 401: _UNKNOWN, 404: _refused("`no_order`."), 503: _BUSY},
    ),
    _Operation(
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
    _Operation(
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
    _Operation(
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
    _Operation(
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
    _Operation(
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
    _Operation(
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
    _Operation(
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


def described() -> tuple[dict[str, Any], dict[str, Any]]:
    """The schemas by name, and the path items."""
    references, schemas = msgspec.json.schema_components(_STRUCTS, ref_template=_REFERENCE)
    of = dict(zip(_STRUCTS, references, strict=True))
    items: dict[str, Any] = {}
    for operation in _OPERATIONS:
        items.setdefault(operation.path, {})[operation.method] = _item(operation, of)
    return dict(schemas), items


def _item(operation: _Operation, of: dict[type[msgspec.Struct], dict[str, Any]]) -> dict[str, Any]:
    item: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.summary,
        "tags": [operation.tag],
        "security": operation.security,
        "responses": {
            str(status): _answer(about, content, of)
            for status, (about, content) in operation.answers.items()
        },
    }
    if operation.about:
        item["description"] = operation.about
    if operation.parameters:
        item["parameters"] = [
            {
                "in": place,
                "name": name,
                "description": about,
                "required": place == "path" or name == "Idempotency-Key",
                "schema": schema,
            }
            for place, name, about, schema in operation.parameters
        ]
    if operation.body is not None:
        content = {"application/json": {"schema": of[operation.body]}}
        item["requestBody"] = {"required": True, "content": content}
    return item


def _answer(
    about: str,
    content: type[msgspec.Struct] | str | None,
    of: dict[type[msgspec.Struct], dict[str, Any]],
) -> dict[str, Any]:
    if content is None:
        return {"description": about}
    if isinstance(content, str):
        return {"description": about, "content": {content: {"schema": {"type": "string"}}}}
    media_type = PROBLEM_MEDIA_TYPE if content is Problem else "application/json"
    return {"description": about, "content": {media_type: {"schema": of[content]}}}
