"""One request and its answer: limits, bodies, problem documents, and the way into ASGI.

Handlers get a :class:`Call` and return an :class:`Answer`; refusals are answers too (RFC 9457
problem documents with a ``code`` for machines). Only broken infrastructure raises, and is
translated here, once.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sqlite3
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs

import msgspec

from fairdrop.errors import Overloaded

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

MAX_BODY_BYTES = 16_384
BODY_TIMEOUT_S = 10

Body = TypeVar("Body")

_IDEMPOTENCY_KEY = re.compile(r"[A-Za-z0-9_.:-]{1,100}")
_log = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode


class Call(msgspec.Struct, frozen=True):
    """What a handler sees of a request."""

    path: dict[str, str]
    headers: list[tuple[bytes, bytes]]
    query_string: bytes
    body: bytes

    def header(self, name: bytes) -> str:
        """The header (name in lower case), empty if it was not sent."""
        for key, value in self.headers:
            if key == name:
                return value.decode("latin-1")
        return ""

    def query(self) -> dict[str, str]:
        """Query parameters; of repeated ones the last."""
        pairs = parse_qs(self.query_string.decode("latin-1"), keep_blank_values=True)
        return {name: values[-1] for name, values in pairs.items()}


class Answer(msgspec.Struct, frozen=True):
    """What goes back."""

    status: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...]


Handler = Callable[[Call], Awaitable[Answer]]

_JSON = ((b"content-type", b"application/json"), (b"cache-control", b"no-store"))
_PROBLEM = ((b"content-type", b"application/problem+json"), (b"cache-control", b"no-store"))
_RETRY = ((b"retry-after", b"1"),)


def json_answer(document: object, status: int = 200) -> Answer:
    """A JSON document."""
    return Answer(status, _encode(document), _JSON)


def problem(status: int, code: str, detail: str) -> Answer:
    """A problem document: ``code`` for machines, ``detail`` for the people who read logs."""
    document = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        "code": code,
    }
    headers = _PROBLEM + _RETRY if status == HTTPStatus.SERVICE_UNAVAILABLE else _PROBLEM
    return Answer(status, _encode(document), headers)


def read_body(decoder: msgspec.json.Decoder[Body], call: Call) -> Body | Answer:
    """The body as the decoder's type, or the problem to answer: 400 no JSON, 422 wrong shape."""
    try:
        return decoder.decode(call.body)
    except msgspec.ValidationError as error:
        return problem(422, "invalid_request", str(error))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return problem(400, "malformed_json", "The body is not JSON.")


def read_idempotency_key(call: Call) -> str | Answer:
    """The Idempotency-Key header, or the problem to answer."""
    key = call.header(b"idempotency-key")
    if not key:
        return problem(400, "idempotency_key_required", "Send an Idempotency-Key header.")
    if _IDEMPOTENCY_KEY.fullmatch(key) is None:
        return problem(
            400,
            "idempotency_key_malformed",
            "An Idempotency-Key has 1 to 100 characters: letters, digits, and _ . : -",
        )
    return key


class Endpoint:
    """A handler as an ASGI application for one route. An object, so Starlette adds nothing."""

    def __init__(self, handler: Handler) -> None:
        """Wrap the handler."""
        self._handler = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body within its limits, answer, and turn what broke into 5xx."""
        answer = await self._answer(scope, receive)
        headers = [*answer.headers, (b"content-length", b"%d" % len(answer.body))]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})

    async def _answer(self, scope: Scope, receive: Receive) -> Answer:
        body = await _receive_body(receive)
        if isinstance(body, Answer):
            return body
        call = Call(scope["path_params"], scope["headers"], scope["query_string"], body)
        try:
            return await self._handler(call)
        except Overloaded:
            return problem(503, "overloaded", "Too many requests wait; try again in a second.")
        except sqlite3.Error:
            _log.exception("the record failed")
            return problem(503, "record_unavailable", "The record cannot be written; try again.")
        except Exception:  # noqa: BLE001 - the edge: whatever it was, the caller gets a 500
            _log.exception("a handler failed")
            return problem(500, "internal", "This is a fault of the gateway.")


async def _receive_body(receive: Receive) -> bytes | Answer:
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body"):
        try:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                whole = await _receive_rest(receive, body)
        except TimeoutError:
            return problem(408, "body_timeout", f"The body took over {BODY_TIMEOUT_S} s.")
        if whole is None:
            return problem(400, "body_incomplete", "The connection ended within the body.")
        body = whole
    if len(body) > MAX_BODY_BYTES:
        return problem(413, "body_too_large", f"A body has at most {MAX_BODY_BYTES} bytes.")
    return body


async def _receive_rest(receive: Receive, start: bytes) -> bytes | None:
    """The whole body, or a little more than the limit of it; None if the sender went away."""
    chunks = [start]
    size = len(start)
    while size <= MAX_BODY_BYTES:
        message: Message = await receive()
        if message["type"] == "http.disconnect":
            return None
        chunk: bytes = message.get("body", b"")
        chunks.append(chunk)
        size += len(chunk)
        if not message.get("more_body"):
            break
    return b"".join(chunks)


async def not_found(_request: Any, _error: Exception) -> Any:
    """A path that the gateway does not have."""
    return _as_response(problem(404, "not_found", "There is nothing at this address."))


async def method_not_allowed(_request: Any, error: Exception) -> Any:
    """A method that the path does not take."""
    response = _as_response(problem(405, "method_not_allowed", "Not with this method."))
    allowed = (getattr(error, "headers", None) or {}).get("Allow")
    if allowed:
        response.headers["Allow"] = allowed
    return response


def _as_response(answer: Answer) -> Any:
    from starlette.responses import Response  # noqa: PLC0415 - only bad requests need it

    response = Response(answer.body, answer.status)
    for name, value in answer.headers:
        response.headers[name.decode()] = value.decode()
    return response
