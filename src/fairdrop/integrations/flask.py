"""The door for Flask.

::

    fairdrop = Fairdrop(app, url="https://tickets.example.org", sale="midnight-drop", protect=["/checkout"])

:func:`admission` gives the admission of the request at hand, ``fairdrop.door`` reports completions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flask import request

from .door import Door
from .wsgi import ADMISSION, FairdropMiddleware

if TYPE_CHECKING:
    from flask import Flask

    from fairdrop.waiting_room import Admission


class Fairdrop:
    """The extension: puts the door before everything else that the application does."""

    def __init__(self, app: Flask, **settings: Any) -> None:
        """Take the application, and what :class:`~fairdrop.integrations.Door` takes."""
        self.door = Door(**settings)
        app.wsgi_app = FairdropMiddleware(app.wsgi_app, self.door)  # type: ignore[method-assign]
        app.extensions["fairdrop"] = self


def admission() -> Admission | None:
    """The admission of the request at hand; None on a path that needs none."""
    found: Admission | None = request.environ.get(ADMISSION)
    return found
