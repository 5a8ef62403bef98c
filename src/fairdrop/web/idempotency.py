"""Idempotency-Key: a change that is asked for again is answered as it was the first time (H3).

As the IETF draft "The Idempotency-Key HTTP Header Field" has it: the same key with the same request
gives the first answer again (with ``Idempotency-Replayed: true``), 409 while the first one is under
way, and 422 with another request. Keys belong to who asks, live for a day in PostgreSQL, and an answer
is kept before it is sent. Answers that say "try again" (5xx, 429) are not kept: trying again is the point.

Reservations keep their keys in the store, beside what they take; refunds in their own rows.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from fairdrop.errors import DatabaseUnavailable

from .wire import Problem, send_problem, send_raw, unavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from fairdrop.checkout import Answers, KnownAnswer

    from .wire import Header, Message, Receive, Scope, Send

    Application = Callable[[Scope, Receive, Send], Awaitable[None]]

CHANGES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
HEADER = b"idempotency-key"

_KEY = re.compile(rb"[A-Za-z0-9_.:-]{1,64}")
_REPLAYED: Header = (b"idempotency-replayed", b"true")
_SERVER_ERROR = 500
_TOO_MANY = 429


def key_of(scope: Scope) -> bytes | None:
    """The request's key, if it has one (the draft's quotes are left off)."""
    for name, value in scope["headers"]:
        if name == HEADER:
            return bytes(value).strip(b'"')
    return None


async def answer_once(  # noqa: PLR0913 - a request, and where its answer goes
    answers: Answers, client: str, body: bytes, app: Application, scope: Scope, send: Send
) -> None:
    """Have the application answer the request, or repeat the answer it gave before.

    ``client`` names who asks: keys of two clients never meet. Cost: two statements, or one.
    """
    key = key_of(scope)
    assert key is not None, "whoever has no key is not sent here"
    if _KEY.fullmatch(key) is None:
        await send_problem(send, _malformed())
        return
    name = key.decode()
    request = b"\0".join((scope["method"].encode(), scope["path"].encode(), body))
    digest = hashlib.blake2b(request, digest_size=16).hexdigest()
    try:
        begun = await answers.begin(client, name, digest)
        known = None if begun else await answers.known(client, name)
    except DatabaseUnavailable:
        await send_problem(send, unavailable("database_unavailable", "Try again in a moment."))
        return
    if begun:
        await _carry_out(answers, client, name, body, app, scope, send)
    elif known is None:
        await send_problem(send, _under_way())  # it has just ended without an answer to keep
    else:
        await _repeat(known, digest, send)


async def _repeat(known: KnownAnswer, digest: str, send: Send) -> None:
    if known.fingerprint != digest:
        await send_problem(
            send,
            Problem(
                422,
                "idempotency_key_reused",
                "This Idempotency-Key came with another request before.",
            ),
        )
    elif known.status is None:
        await send_problem(send, _under_way())
    else:
        headers = [
            (b"content-type", (known.content_type or "").encode()),
            (b"cache-control", b"no-store"),
            _REPLAYED,
        ]
        await send_raw(send, known.status, headers, known.body or b"")


async def _carry_out(  # noqa: PLR0913 - a request, and where its answer goes
    answers: Answers,
    client: str,
    key: str,
    body: bytes,
    app: Application,
    scope: Scope,
    send: Send,
) -> None:
    """Run the application on the body that was read; keep its answer, then send it."""
    messages: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def collect(message: Message) -> None:
        messages.append(message)

    kept = False
    try:
        await app(scope, receive, collect)
        start = messages[0]
        kept = start["status"] < _SERVER_ERROR and start["status"] != _TOO_MANY
        if kept:
            content = b"".join(message.get("body", b"") for message in messages[1:])
            headers = dict(start.get("headers", ()))
            content_type = headers.get(b"content-type", b"application/json").decode("latin-1")
            with suppress(DatabaseUnavailable):  # then the key is taken for abandoned after a while
                await answers.keep(client, key, start["status"], content_type, content)
    finally:
        if not kept:
            with suppress(DatabaseUnavailable):
                await answers.forget(client, key)
    for message in messages:
        await send(message)


def _under_way() -> Problem:
    return Problem(
        409,
        "request_under_way",
        "The first request with this Idempotency-Key is still under way.",
        headers=((b"retry-after", b"1"),),
    )


def _malformed() -> Problem:
    return Problem(
        400,
        "idempotency_key_malformed",
        "An Idempotency-Key has 1 to 64 letters, digits, or _ . : -",
    )
