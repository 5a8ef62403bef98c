"""Reading requests and sending answers as plain ASGI, with as little work a request as there can be."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, MutableMapping
    from datetime import datetime

    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    Header = tuple[bytes, bytes]

BODY_LIMIT = 16_384
"""Bytes that a request of the data plane may have; a checkout needs a few hundred."""
PROBLEM_TYPE = "https://fairdrop.dev/problems/"

_HEADERS = "fairdrop.headers"
"""Where a request's headers are kept by their names."""
_JSON: Header = (b"content-type", b"application/json")
_PROBLEM: Header = (b"content-type", b"application/problem+json")
_NO_STORE: Header = (b"cache-control", b"no-store")
encode = msgspec.json.Encoder().encode


def rfc3339(moment: datetime) -> str:
    """A moment in UTC as JSON carries it."""
    return moment.isoformat().replace("+00:00", "Z")


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """The request's headers by lower-case name; of repeated ones, the last. Made once a request."""
    headers: dict[bytes, bytes] | None = scope.get(_HEADERS)
    if headers is None:
        headers = scope[_HEADERS] = dict(scope["headers"])
    return headers


class Problem(Exception):
    """An answer that says what is wrong and what to do; raised anywhere below an endpoint."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: tuple[Header, ...] = (),
        **extra: Any,
    ) -> None:
        """``code`` is for programs, ``detail`` for people; ``extra`` members are added as they are."""
        super().__init__(code)
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = headers
        self.extra = extra

    def body(self) -> bytes:
        """The problem document."""
        return encode(
            {
                "type": PROBLEM_TYPE + self.code,
                "title": HTTPStatus(self.status).phrase,
                "status": self.status,
                "code": self.code,
                "detail": self.detail,
                **self.extra,
            }
        )


async def send_json(
    send: Send, body: bytes, status: int = 200, headers: tuple[Header, ...] = ()
) -> None:
    """Send a JSON body that no cache may keep."""
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [_JSON, _NO_STORE, (b"content-length", b"%d" % len(body)), *headers],
        }
    )
    await send({"type": "http.response.body", "body": body})


async def send_raw(send: Send, status: int, headers: list[Header], body: bytes = b"") -> None:
    """Send an answer with exactly these headers (and its length)."""
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [*headers, (b"content-length", b"%d" % len(body))],
        }
    )
    await send({"type": "http.response.body", "body": body})


async def send_tagged(
    send: Send, asked: bytes | None, etag: bytes, headers: list[Header], body: bytes
) -> None:
    """Send a JSON body with its entity tag, or 304 when If-None-Match (``asked``) names the tag."""
    fixed = [(b"etag", etag), *headers]
    if names_tag(asked, etag):
        await send_raw(send, 304, fixed)
    else:
        await send_raw(send, 200, [_JSON, *fixed], body)


def names_tag(asked: bytes | None, etag: bytes) -> bool:
    """Whether If-None-Match names the tag, by the weak comparison of RFC 9110, section 8.8.3.2."""
    if asked is None:
        return False
    opaque = etag.removeprefix(b"W/")
    tags = [tag.strip().removeprefix(b"W/") for tag in asked.split(b",")]
    return opaque in tags or tags == [b"*"]


async def send_problem(send: Send, problem: Problem) -> None:
    """Send a problem document."""
    body = problem.body()
    await send_raw(send, problem.status, [_PROBLEM, _NO_STORE, *problem.headers], body)


async def read_body(
    receive: Receive, headers: Mapping[bytes, bytes], limit: int = BODY_LIMIT
) -> bytes:
    """The whole body. Raises Problem 413 as soon as more than ``limit`` bytes have come, 400 for half a body.

    Servers may give a body and tell only afterwards that it was all: where the length was announced,
    that second message, which costs a switch to the server's own thread and back, is not waited for.
    """
    message = await receive()
    if message["type"] == "http.disconnect":
        # Not an empty body: some requests mean everything when they name nothing.
        raise _incomplete()
    body: bytes = message.get("body", b"")
    if not message.get("more_body") or headers.get(b"content-length") == b"%d" % len(body):
        if len(body) > limit:
            raise too_large(limit)
        return body
    parts, size = [body], len(body)
    while message.get("more_body"):
        if size > limit:
            raise too_large(limit)
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _incomplete()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
    if size > limit:
        raise too_large(limit)
    return b"".join(parts)


def cookie_of(headers: Mapping[bytes, bytes], name: bytes) -> str | None:
    """The cookie of this name; what else stands in the header is the business of others."""
    for part in headers.get(b"cookie", b"").split(b";"):
        found, _, value = part.strip().partition(b"=")
        if found == name:
            return value.strip(b'"').decode("latin-1")
    return None


def _incomplete() -> Problem:
    return Problem(400, "body_incomplete", "The connection ended before the body did.")


def too_large(limit: int) -> Problem:
    """The problem of a body beyond the limit."""
    return Problem(413, "body_too_large", f"Send at most {limit} bytes.")


def unavailable(code: str, detail: str, retry_after_s: int = 1) -> Problem:
    """The problem of a part that does not answer: nothing was promised, come back soon (W14)."""
    return Problem(503, code, detail, headers=((b"retry-after", b"%d" % retry_after_s),))
