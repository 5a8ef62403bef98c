"""What the checkout does at the moment, told to the adaptive pace (W10).

Web workers add up what they served and tell the store once a second, so that all of them are seen
together. Only sales whose pace is adaptive are counted; for the others a request costs a look-up.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from fairdrop.errors import StoreUnavailable

if TYPE_CHECKING:
    from fairdrop.catalog import Catalog
    from fairdrop.ids import SaleRef
    from fairdrop.waiting_room import WaitingRoom

_log = structlog.get_logger(__name__)
TELL_EVERY_S = 1.0
_FAILURES = range(500, 600)


@dataclass(slots=True)
class _Seen:
    requests: int = 0
    slow: int = 0
    failed: int = 0


class CheckoutWatch:
    """Counts the answers of the checkout's steps: reservations, orders and payments."""

    def __init__(self, catalog: Catalog, waiting_room: WaitingRoom) -> None:
        """Nothing was seen yet; nothing runs while nothing is."""
        self._catalog = catalog
        self._waiting_room = waiting_room
        self._seen: dict[SaleRef, _Seen] = {}
        self._telling: asyncio.Task[None] | None = None

    def note(self, sale_name: str, seconds: float, status: int) -> None:
        """One answer for the sale of this id or slug; ``status`` is below 400 for any success."""
        sale = self._catalog.known(sale_name)
        if sale is None or not sale.adaptive:
            return
        seen = self._seen.setdefault(sale.ref, _Seen())
        seen.requests += 1
        seen.slow += seconds * 1_000 > sale.latency_target_ms
        seen.failed += status in _FAILURES
        if self._telling is None:
            self._telling = asyncio.get_running_loop().create_task(self._tell())

    async def _tell(self) -> None:
        """Tell what comes together in a second; what the store does not hear is forgotten."""
        await asyncio.sleep(TELL_EVERY_S)
        seen, self._seen = self._seen, {}
        self._telling = None
        for sale, counted in seen.items():
            try:
                await self._waiting_room.observe(
                    sale, counted.requests, counted.slow, counted.failed
                )
            except StoreUnavailable as error:
                _log.warning("observation_lost", sale=sale.id, error=str(error))
