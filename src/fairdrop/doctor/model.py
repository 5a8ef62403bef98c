"""What the doctor finds."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Verdict(StrEnum):
    """How serious a finding is."""

    WELL = "well"
    NOTE = "note"
    """Worth knowing; nothing is broken."""
    WRONG = "wrong"


class Finding(NamedTuple):
    """One thing that was looked at."""

    about: str
    verdict: Verdict
    words: str
    advice: str = ""
    """What to do; empty when there is nothing to do."""


class Waiting(NamedTuple):
    """Work of one kind that waits to be done by itself."""

    kind: str
    waiting: int
    left_lying: int
    """Past their time by more than a minute: nobody takes them."""
    oldest_s: float
    tries: int
    error: str | None
