"""The door for WSGI applications.

::

    app = FairdropMiddleware(app, Door("https://tickets.example.org", "midnight-drop"))

The admission is in ``environ["fairdrop.admission"]``; None where none is needed.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from wsgiref.util import request_uri

from .model import Answer, Visit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .door import Door

    Environ = dict[str, Any]
    StartResponse = Callable[..., Any]
    App = Callable[[Environ, StartResponse], Iterable[bytes]]

ADMISSION = "fairdrop.admission"
_FORM_LIMIT = 8_192


class FairdropMiddleware:
    """Wraps a WSGI application with a door."""

    def __init__(self, app: App, door: Door) -> None:
        """Take the application and the door."""
        self._app = app
        self._door = door

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Decide, then go on or answer."""
        if not self._door.concerns(_path(environ)):
            return self._app(environ, start_response)
        decided = self._door.decide(_visit(environ, self._door))
        if isinstance(decided, Answer):
            phrase = HTTPStatus(decided.status).phrase
            start_response(f"{decided.status} {phrase}", list(decided.headers))
            return [decided.body]
        environ[ADMISSION] = decided.admission
        cookies = [("Set-Cookie", cookie) for cookie in decided.set_cookies]
        if not cookies:
            return self._app(environ, start_response)

        def with_cookies(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            return start_response(status, [*headers, *cookies], *rest)

        return self._app(environ, with_cookies)


def _path(environ: Environ) -> str:
    return str(environ.get("PATH_INFO", "")) or "/"


def _visit(environ: Environ, door: Door) -> Visit:
    headers = {
        name[5:].replace("_", "-").lower(): value
        for name, value in environ.items()
        if name.startswith("HTTP_")
    }
    method, path = environ["REQUEST_METHOD"], _path(environ)
    body = b""
    if door.wants_body(method, path):
        try:
            length = min(int(environ.get("CONTENT_LENGTH") or 0), _FORM_LIMIT)
        except ValueError:
            length = 0
        body = environ["wsgi.input"].read(length)
    return Visit(method, path, request_uri(environ), headers, body)
