"""The data plane's operations, described by hand; their schemas come from the structs that serve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from fairdrop.draw import Inclusion
from fairdrop.web.control_plane.problems import MEDIA_TYPE as PROBLEM_MEDIA_TYPE
from fairdrop.web.data_plane import documents

from .operation import REQUIRED_HEADERS
from .operations import OPERATIONS
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

if TYPE_CHECKING:
    from .operation import Operation

_REFERENCE = "#/components/schemas/{name}"

TAGS = [
    {"name": "line", "description": "Data plane: see sales, join the line, claim a turn."},
    {"name": "checkout", "description": "Data plane: reserve units, order, pay."},
    {
        "name": "shop",
        "description": "Data plane: what protects and follows a checkout of the shop's own.",
    },
    {"name": "gateways", "description": "What payment gateways call."},
    {"name": "operation", "description": "What load balancers and monitoring call."},
]

_TOO_MANY = (
    "Too many requests of one address or one visitor (`too_many_requests`); `Retry-After`,"
    " `RateLimit` and `RateLimit-Policy` say when to come back."
)
_UNLIMITED = ("list_revocations", "report_completion", "receive_webhook")
"""Asked by servers, or the same for everybody."""

_MAY_BE_BARE = ("release",)
"""Without a body they mean all there is."""

_STRUCTS: tuple[type[msgspec.Struct], ...] = (
    Problem,
    PublicSaleList,
    LeftDocument,
    ReceivedDocument,
    JwkSet,
    DrawParameters,
    Inclusion,
    LiveDocument,
    ReadyDocument,
    documents.ReceiptRequest,
    documents.ProofDocument,
    documents.PublicDocument,
    documents.StatusDocument,
    documents.RestoreRequest,
    documents.TicketDocument,
    documents.ReservationRequest,
    documents.ReservationDocument,
    documents.ReservationChange,
    documents.PartialRelease,
    documents.ReleasedDocument,
    documents.OrderRequest,
    documents.OrderDocument,
    documents.CompletionRequest,
    documents.CompletionDocument,
    documents.RevocationsDocument,
)


def described() -> tuple[dict[str, Any], dict[str, Any]]:
    """The schemas by name, and the path items."""
    references, schemas = msgspec.json.schema_components(_STRUCTS, ref_template=_REFERENCE)
    of = dict(zip(_STRUCTS, references, strict=True))
    items: dict[str, Any] = {}
    for operation in OPERATIONS:
        items.setdefault(operation.path, {})[operation.method] = _item(operation, of)
    return dict(schemas), items


def _item(operation: Operation, of: dict[type[msgspec.Struct], dict[str, Any]]) -> dict[str, Any]:
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
    if operation.path.startswith("/v1/") and operation.name not in _UNLIMITED:
        item["responses"]["429"] = _answer(_TOO_MANY, Problem, of)
    if operation.about:
        item["description"] = operation.about
    if operation.parameters:
        item["parameters"] = [
            {
                "in": place,
                "name": name,
                "description": about,
                "required": place == "path" or name in REQUIRED_HEADERS,
                "schema": schema,
            }
            for place, name, about, schema in operation.parameters
        ]
    if operation.body is not None:
        content = {"application/json": {"schema": of[operation.body]}}
        item["requestBody"] = {"required": operation.name not in _MAY_BE_BARE, "content": content}
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
