"""The door for Django.

It is set up in the settings::

    MIDDLEWARE = ["fairdrop.integrations.django.FairdropMiddleware", ...]
    FAIRDROP = {"url": "https://tickets.example.org", "sale": "midnight-drop", "protect": ["/checkout"]}

``FAIRDROP`` takes what :class:`~fairdrop.integrations.Door` takes. The admission is
``request.fairdrop``; None where none is needed. :func:`door` is the door itself, to report
completions with.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http import HttpResponse

from .door import Door
from .model import Answer, Visit

if TYPE_CHECKING:
    from collections.abc import Callable


@cache
def door() -> Door:
    """The one door of this process. Raises KeyError without ``FAIRDROP`` in the settings."""
    return Door(**settings.FAIRDROP)


class FairdropMiddleware:
    """Put it first, so that nothing is done for a request that does not come in."""

    def __init__(self, get_response: Callable[[Any], Any]) -> None:
        """Take the rest of the application."""
        self._get_response = get_response

    def __call__(self, request: Any) -> Any:
        """Decide, then go on or answer."""
        here = door()
        request.fairdrop = None
        if not here.concerns(request.path_info):
            return self._get_response(request)
        decided = here.decide(_visit(request, here))
        if isinstance(decided, Answer):
            response = HttpResponse(decided.body, status=decided.status)
            del response.headers["content-type"]
            for name, value in decided.headers:
                response.headers[name] = value
            return response
        request.fairdrop = decided.admission
        response = self._get_response(request)
        for cookie in decided.set_cookies:
            response.cookies.load(cookie)
        return response


def _visit(request: Any, here: Door) -> Visit:
    headers = {name.lower(): value for name, value in request.headers.items()}
    body = request.body if here.wants_body(request.method, request.path_info) else b""
    address = request.build_absolute_uri()
    return Visit(request.method, request.path_info, address, headers, body)
