"""Every failure of the control plane as a problem document (RFC 9457)."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import structlog
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from fairdrop.errors import DatabaseUnavailable, Overloaded, StoreUnavailable
from fairdrop.web.wire import Problem, unavailable

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request

_log = structlog.get_logger(__name__)

MEDIA_TYPE = "application/problem+json"
PROBLEM_SCHEMA = "Problem"


def _documented(description: str) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{PROBLEM_SCHEMA}"}
    return {"description": description, "content": {MEDIA_TYPE: {"schema": schema}}}


PROBLEM_RESPONSES: dict[int | str, dict[str, Any]] = {
    401: _documented("The API key is missing or wrong (`api_key_required`)."),
    422: _documented("The request is not one that can be done (`invalid_request` and others)."),
    503: _documented("The store or the database does not answer, or no API key is set."),
}
"""What every operation may answer, for the OpenAPI document."""
BAD_BODY: dict[int | str, dict[str, Any]] = {
    400: _documented("The body is not JSON (`malformed_json`), or a header is missing."),
    413: _documented("The body is too large (`body_too_large`)."),
}
NOT_FOUND: dict[int | str, dict[str, Any]] = {404: _documented("There is no such thing.")}
CONFLICT: dict[int | str, dict[str, Any]] = {
    409: _documented("It is not possible as things stand; `code` says why.")
}

_CODES = {
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: ("body_too_large", None),
    HTTPStatus.NOT_FOUND: ("not_found", "There is nothing at this address."),
    HTTPStatus.METHOD_NOT_ALLOWED: ("method_not_allowed", "This address does not take the method."),
}


def install(app: FastAPI) -> None:
    """Have the application tell all of its failures as problem documents."""
    app.add_exception_handler(Problem, _told)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(StoreUnavailable, _store_unavailable)
    app.add_exception_handler(DatabaseUnavailable, _database_unavailable)
    app.add_exception_handler(Overloaded, _overloaded)
    app.add_exception_handler(Exception, _unexpected)


def answer(problem: Problem) -> Response:
    """The problem as a response."""
    headers = {name.decode(): value.decode() for name, value in problem.headers}
    return Response(problem.body(), problem.status, headers, MEDIA_TYPE)


async def _told(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem), "registered for Problem"
    return answer(error)


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError), "registered for RequestValidationError"
    errors = error.errors()
    if any(each["type"] == "json_invalid" for each in errors):
        return answer(Problem(400, "malformed_json", "The body is not a JSON document."))
    found = [
        {"field": ".".join(str(part) for part in each["loc"]), "detail": _sentence(each["msg"])}
        for each in errors
    ]
    first = found[0]
    more = f" ({len(found) - 1} more in `errors`.)" if len(found) > 1 else ""
    detail = f"{first['field']}: {first['detail']}{more}"
    return answer(Problem(422, "invalid_request", detail, errors=found))


def _sentence(message: str) -> str:
    text = message.removeprefix("Value error, ")
    return text if text.endswith(".") else f"{text}."


async def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException), "registered for HTTPException"
    status = HTTPStatus(error.status_code)
    code, detail = _CODES.get(status, (status.phrase.lower().replace(" ", "_"), None))
    headers = tuple((k.encode(), v.encode()) for k, v in (error.headers or {}).items())
    return answer(Problem(error.status_code, code, detail or str(error.detail), headers=headers))


async def _store_unavailable(_: Request, error: Exception) -> Response:
    _log.warning("store_unavailable", error=str(error))
    return answer(unavailable("store_unavailable", "The store does not answer. Try again."))


async def _database_unavailable(_: Request, error: Exception) -> Response:
    _log.warning("database_unavailable", error=str(error))
    return answer(unavailable("database_unavailable", "The database does not answer. Try again."))


async def _overloaded(_: Request, error: Exception) -> Response:
    assert isinstance(error, Overloaded), "registered for Overloaded"
    return answer(unavailable("overloaded", "Too many requests at once.", error.retry_after_s))


async def _unexpected(_: Request, error: Exception) -> Response:
    _log.error("unexpected_error", exc_info=error)
    return answer(Problem(500, "internal_error", "Something went wrong here; it has been logged."))
