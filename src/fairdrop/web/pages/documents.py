"""A document that is the same for everyone: bytes in memory, sent as they are.

At an opening everybody asks for the same page, so a request costs no file access, no template and
no compression: both forms of the body are made once. The tag is weak because one tag stands for
both forms, which say the same.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from .headers import Header

_WORTH_COMPRESSING_BYTES = 512


@dataclass(frozen=True, slots=True)
class Document:
    """An ASGI application that answers GET and HEAD with one fixed document."""

    body: bytes
    compressed: bytes | None
    media_type: str
    etag: bytes
    headers: tuple[Header, ...]

    @classmethod
    def of(cls, body: bytes, *, media_type: str, headers: tuple[Header, ...]) -> Document:
        """The document with this body; compresses it once, where that makes it smaller."""
        compressed = None
        if len(body) >= _WORTH_COMPRESSING_BYTES:
            smaller = gzip.compress(body, mtime=0)
            compressed = smaller if len(smaller) < len(body) else None
        digest = hashlib.sha256(body).hexdigest()[:20]
        return cls(body, compressed, media_type, f'W/"{digest}"'.encode(), headers)

    def with_headers(self, headers: tuple[Header, ...]) -> Document:
        """The same document, sent with other headers."""
        return Document(self.body, self.compressed, self.media_type, self.etag, headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the document, or 304 when the client's copy is still right."""
        del receive  # A request for a document has no body that we would read.
        asked = _values(scope, b"if-none-match")
        headers = [*self.headers, (b"etag", self.etag), (b"vary", b"accept-encoding")]
        if not {self.etag, b"*"}.isdisjoint(asked):
            await send({"type": "http.response.start", "status": 304, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
            return
        body = self.body
        if self.compressed is not None and _takes_gzip(_values(scope, b"accept-encoding")):
            body = self.compressed
            headers.append((b"content-encoding", b"gzip"))
        headers.append((b"content-type", self.media_type.encode()))
        headers.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send(
            {"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body}
        )


def _values(scope: Scope, name: bytes) -> list[bytes]:
    """The comma-separated values of a request header, over all its lines."""
    return [
        part.strip()
        for key, value in scope["headers"]
        if key == name
        for part in value.split(b",")
        if part.strip()
    ]


def _takes_gzip(encodings: list[bytes]) -> bool:
    for encoding in encodings:
        name, _, weight = encoding.partition(b";")
        if name.strip().lower() in (b"gzip", b"*"):
            return weight.strip().replace(b" ", b"").rstrip(b"0") not in (b"q=", b"q=0.")
    return False
