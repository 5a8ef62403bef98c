"""What a door is asked and what it says, without any framework."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from fairdrop.errors import FairdropError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairdrop.waiting_room.signing_keys import Admission


class DoorUnavailable(FairdropError):
    """Fairdrop did not answer, and what is known is too old: nobody is let in (W14)."""


class Completion(StrEnum):
    """What Fairdrop says to a report about an admission."""

    RECORDED = "recorded"
    USED = "admission_used"


class Visit(NamedTuple):
    """A request: its ``headers`` by lower-case name; ``address`` is the whole URL as the browser knows it.

    ``body`` is needed for the one request that :meth:`Door.wants_body` names, and empty otherwise.
    """

    method: str
    path: str
    address: str
    headers: Mapping[str, str]
    body: bytes = b""


class Passed(NamedTuple):
    """Go on. ``admission`` is None where the path needs none; ``set_cookies`` go with the answer."""

    admission: Admission | None
    set_cookies: tuple[str, ...] = ()


class Answer(NamedTuple):
    """Answer this instead of going on."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""
