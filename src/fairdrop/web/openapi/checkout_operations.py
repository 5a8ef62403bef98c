"""The operations of a checkout: reservations, orders, payments, and what gateways tell."""

from __future__ import annotations

from fairdrop.web.data_plane import documents

from .operation import (
    ADMISSION,
    AN_ORDER,
    ANYBODY,
    BAD_BODY,
    BUSY,
    GATEWAY,
    KEY,
    KEY_MAYBE,
    NO_SALE,
    ONE_LINE,
    ORDER,
    QUANTITY_TO_HAVE,
    RESERVATION,
    SALE,
    SAY_WHO,
    SHOP_KEY,
    UNKNOWN,
    Operation,
    refused,
)
from .structs import ReceivedDocument

CHECKOUT = (
    Operation(
        "post",
        "/v1/sales/{sale}/reservations",
        "reserve",
        "Reserve units",
        "All lines or none. The units are held until `deadline_ms` and are nobody else's. A single"
        " line may come in the query instead of a body, which is answered a little sooner.",
        "checkout",
        (SALE, ADMISSION, KEY, SHOP_KEY, *ONE_LINE),
        {
            201: ("The units are held.", documents.ReservationDocument),
            400: BAD_BODY,
            401: refused(SAY_WHO + " Or there is no admission token (`admission_required`)."),
            403: refused(
                "`admission_forged`, `admission_expired`, `admission_revoked`,"
                " `admission_other_sale` or `admission_other_buyer`."
            ),
            404: NO_SALE,
            409: refused(
                "`sold_out`, `buyer_limit`, `person_limit`, `already_reserved` or `sale_closed`."
            ),
            413: refused("`body_too_large`."),
            422: refused(
                "`order_limit`, `unknown_variant`, `idempotency_key_reused` or `invalid_request`."
            ),
            503: BUSY,
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
        (SALE, RESERVATION, KEY_MAYBE, *ONE_LINE),
        {
            200: ("The units are free again.", documents.ReleasedDocument),
            400: BAD_BODY,
            401: UNKNOWN,
            404: refused("`no_such_sale` or `no_reservation`."),
            409: refused("`order_started`: cancel the order instead."),
            413: refused("`body_too_large`."),
            422: refused("`idempotency_key_reused` or `invalid_request`."),
            503: BUSY,
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
        (SALE, RESERVATION, KEY, *QUANTITY_TO_HAVE),
        {
            200: (
                "The reservation as it is now; RELEASED when nothing is left in it.",
                documents.ReservationDocument,
            ),
            400: BAD_BODY,
            401: UNKNOWN,
            403: refused("`admission_revoked`: more is wanted, and the turn is over."),
            404: refused("`no_such_sale` or `no_reservation`."),
            409: refused(
                "`sold_out`, `buyer_limit`, `sale_closed`, `order_started` or"
                " `reservation_expired`."
            ),
            413: refused("`body_too_large`."),
            422: refused(
                "`order_limit`, `unknown_variant`, `idempotency_key_reused` or `invalid_request`."
            ),
            503: BUSY,
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
        (SALE, SHOP_KEY),
        {
            201: AN_ORDER,
            400: BAD_BODY,
            401: UNKNOWN,
            404: refused("`no_such_sale` or `no_reservation`."),
            409: refused(
                "`reservation_expired`, `already_ordered`, `person_limit` or `units_lost`."
            ),
            413: refused("`body_too_large`."),
            422: refused("`invalid_request`."),
            503: BUSY,
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
        (ORDER,),
        {200: AN_ORDER, 401: UNKNOWN, 404: refused("`no_order`."), 503: BUSY},
    ),
    Operation(
        "post",
        "/v1/orders/{order}/pay",
        "pay",
        "Pay",
        "Gives `payment.url`, the gateway's page. Repeating it gives the same payment (O5).",
        "checkout",
        (ORDER,),
        {
            200: AN_ORDER,
            401: UNKNOWN,
            404: refused("`no_order`."),
            409: refused("`order_not_payable`."),
            502: refused("`gateway_refused`."),
            503: BUSY,
        },
    ),
    Operation(
        "post",
        "/v1/orders/{order}/cancel",
        "cancel",
        "Cancel an unpaid order",
        "Its units are free at once.",
        "checkout",
        (ORDER,),
        {
            200: AN_ORDER,
            401: UNKNOWN,
            404: refused("`no_order`."),
            409: refused("`order_not_cancellable`."),
            503: BUSY,
        },
    ),
    Operation(
        "post",
        "/v1/webhooks/{gateway}",
        "receive_webhook",
        "Tell of a payment",
        "The raw body with the gateway's signature header. Stored before it is answered (O6).",
        "gateways",
        (GATEWAY,),
        {
            200: ("Stored.", ReceivedDocument),
            400: refused("`body_malformed`."),
            401: refused("The signature is missing, wrong or stale."),
            404: refused("`no_such_gateway`."),
            413: refused("`body_too_large`."),
            503: BUSY,
        },
        security=ANYBODY,
    ),
)
