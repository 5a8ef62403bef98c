"""The operations for a shop's own servers and for whoever runs the process."""

from __future__ import annotations

from fairdrop.web.data_plane import documents

from .operation import ADMISSION_MAYBE, ANYBODY, BUSY, NO_SALE, SALE, Operation, refused
from .structs import JwkSet, LiveDocument, ReadyDocument

SHOP = (
    Operation(
        "get",
        "/v1/sales/{sale}/auth",
        "check_admission",
        "Is this request by somebody inside?",
        "For `auth_request` of nginx and `forward_auth` of Caddy. The token comes in its header or in the"
        " cookie `fairdrop_admission_<slug>`, never in the address. The header `Fairdrop-Reason` repeats"
        " the problem's code (W20).",
        "shop",
        (SALE, ADMISSION_MAYBE),
        {
            204: ("Yes; headers name the buyer, the admission and when it ends.", None),
            401: refused("There is no token (`admission_required`)."),
            403: refused(
                "`admission_forged`, `admission_expired`, `admission_revoked`,"
                " `admission_other_sale` or `admission_other_buyer`."
            ),
            404: NO_SALE,
            503: BUSY,
        },
        security=ANYBODY,
    ),
    Operation(
        "get",
        "/v1/sales/{sale}/revocations",
        "list_revocations",
        "Tokens that ended before their expiry",
        "The same for everybody and cacheable for a second. A token is revoked when its `jti` begins with"
        " one of the eight characters listed, or when its epoch is another (W12).",
        "shop",
        (SALE, ("header", "If-None-Match", "The ETag of the copy at hand.", {"type": "string"})),
        {
            200: ("The list, with an ETag.", documents.RevocationsDocument),
            304: ("The copy at hand is still right.", None),
            404: NO_SALE,
            503: BUSY,
        },
        security=ANYBODY,
    ),
    Operation(
        "post",
        "/v1/sales/{sale}/completions",
        "report_completion",
        "Tell how the shop's own checkout ended",
        "Frees the place inside at once and ends the token. Repeating a report changes nothing; another"
        " order for the same admission is refused, so that it can be rolled back (W13).",
        "shop",
        (SALE,),
        {
            200: ("On record.", documents.CompletionDocument),
            400: refused("The body is not JSON (`malformed_json`)."),
            401: refused("The API key is missing or wrong (`api_key_required`)."),
            403: refused("`admission_forged` or `admission_other_sale`."),
            404: NO_SALE,
            409: refused("`admission_used`: the admission has ended with another order."),
            413: refused("`body_too_large`."),
            422: refused("`invalid_request`."),
            503: BUSY,
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
        security=ANYBODY,
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
        security=ANYBODY,
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
        security=ANYBODY,
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
        security=ANYBODY,
    ),
)
