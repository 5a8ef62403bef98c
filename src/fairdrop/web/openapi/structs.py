"""Answers of the data plane that the code writes without a struct of their own, for the document."""

from __future__ import annotations

from typing import Any

import msgspec


class Problem(msgspec.Struct):
    """What went wrong (RFC 9457); nothing was changed. Some codes carry more members."""

    type: str
    title: str
    status: int
    code: str
    detail: str


class PublicSaleSummary(msgspec.Struct):
    """A sale in the list of all."""

    id: str
    slug: str
    name: str
    mode: str
    opens_at: str
    closes_at: str | None
    timezone: str
    currency: str


class PublicSaleList(msgspec.Struct):
    """The newest sales, newest first."""

    sales: list[PublicSaleSummary]


class LeftDocument(msgspec.Struct):
    """The visitor has no place any more."""

    state: str
    left: bool


class ReceivedDocument(msgspec.Struct):
    """The webhook is stored, and will be settled."""

    received: bool


class JwkSet(msgspec.Struct):
    """Public keys (RFC 7517) that verify admission tokens."""

    keys: list[dict[str, Any]]


class DrawParameters(msgspec.Struct):
    """What is public of a draw so far; null is what is not known or not revealed yet."""

    format: str
    state: str
    sale: dict[str, str]
    opens_at: str
    lobby_ms: int
    window_ms: int
    commitment: str
    entries: int | None
    root: str | None
    fixed_at: str | None
    beacon: dict[str, Any]
    seed: str | None
    drawn_at: str | None
    files: list[str]
    keys: list[dict[str, Any]]


class LiveDocument(msgspec.Struct):
    """The process lives."""

    live: bool


class ReadyDocument(msgspec.Struct):
    """Whether everything needed answers; `checks` tells of each part, `ok` or what is wrong."""

    ready: bool
    checks: dict[str, str]
