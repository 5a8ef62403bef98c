"""Asks an ASGI application in this process, without a server between."""

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from starlette.types import ASGIApp


@dataclass(frozen=True)
class Answer:
    """What the application sent, byte for byte: nothing is decompressed."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


async def ask(app: ASGIApp, url: str, *, method: str = "GET", **headers: str) -> Answer:
    """One request; header names are written with ``_`` for ``-``."""
    parts = urlsplit(url)
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(parts.path),
        "raw_path": parts.path.encode(),
        "root_path": "",
        "query_string": parts.query.encode(),
        "headers": [
            (name.replace("_", "-").lower().encode(), value.encode())
            for name, value in headers.items()
        ],
    }
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start, *rest = sent
    return Answer(
        start["status"],
        {name.decode(): value.decode() for name, value in start["headers"]},
        b"".join(message.get("body", b"") for message in rest),
    )
