"""Telling the store what the database has decided, after the commit (H7).

A store that does not hear of it loses nothing: its list of deadlines keeps the hold, and the sweep
asks the order's row again.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from fairdrop.errors import Overloaded, StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

_log = structlog.get_logger(__name__)


async def tell_store(step: str, calls: Iterable[Awaitable[object]]) -> int:
    """Make the calls, coalesced as they are; returns how many the store has answered.

    Logs, once, what it did not answer.
    """
    made: list[Awaitable[object]] = []
    failed: BaseException | None = None
    try:
        for call in calls:
            made.append(call)  # noqa: PERF402 - what was made before one is refused is kept
    except (StoreUnavailable, Overloaded) as error:
        failed = error
    answers = await asyncio.gather(*made, return_exceptions=True)
    told = 0
    for answer in answers:
        if not isinstance(answer, BaseException):
            told += 1
        elif isinstance(answer, StoreUnavailable | Overloaded):
            failed = answer
        else:
            raise answer
    if failed is not None:
        _log.warning("store_not_told", step=step, calls=len(answers) - told, error=str(failed))
    return told
