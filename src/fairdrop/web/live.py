"""The live figures of sales: one read of the store a tick, however many people look (W6, W7)."""

from __future__ import annotations

import asyncio
import hashlib
import time
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from fairdrop.checkout import step_minor
from fairdrop.money import exponent
from fairdrop.waiting_room import read_outlook

from .data_plane.documents import OutlookDocument, PublicDocument, VariantDocument
from .wire import encode, rfc3339

if TYPE_CHECKING:
    from fairdrop.catalog import Sale
    from fairdrop.ids import SaleRef
    from fairdrop.inventory import Figures, Inventory

TICK_S = 0.25
"""How old figures may be: well below the second in which everybody must see a change (H10)."""


class LiveDocument(NamedTuple):
    """The public document, ready to send, and its entity tag."""

    body: bytes
    etag: bytes
    figures: Figures


class Live:
    """Figures and public documents, remembered for a tick; one read at a time for each sale."""

    def __init__(self, inventory: Inventory, *, push_url: str | None = None) -> None:
        """Start with nothing remembered; documents tell clients where the push process is."""
        self._inventory = inventory
        self._push_url = push_url
        self._documents: dict[SaleRef, tuple[float, int, LiveDocument]] = {}
        self._reading: dict[SaleRef, asyncio.Task[Figures]] = {}

    async def figures(self, sale: Sale) -> Figures:
        """The sale's figures now. Raises StoreUnavailable."""
        task = self._reading.get(sale.ref)
        if task is None:
            variants = [variant.id for variant in sale.variants]
            task = asyncio.get_running_loop().create_task(
                self._inventory.figures(sale.ref, variants)
            )
            self._reading[sale.ref] = task
            task.add_done_callback(lambda _: self._reading.pop(sale.ref, None))
        return await asyncio.shield(task)

    async def document(self, sale: Sale) -> LiveDocument:
        """The sale's public document, at most a tick old. Raises StoreUnavailable.

        Its entity tag stands for all it says but the server's time, which goes on when nothing else
        changes, and names the epoch: no copy from before a reset is ever taken for right (case 3).
        """
        known = self._documents.get(sale.ref)
        if known is not None and known[0] > time.monotonic() and known[1] == sale.version:
            return known[2]
        return await self.fresh(sale)

    async def fresh(self, sale: Sale) -> LiveDocument:
        """The document as of now: one read of the store. Raises StoreUnavailable."""
        figures = await self.figures(sale)
        known = self._documents.get(sale.ref)
        if known is not None and known[2].figures is figures and known[1] == sale.version:
            return known[2]  # who waited for the same read
        document = _public(sale, figures, self._push_url)
        timeless = encode(msgspec.structs.replace(document, server_time_ms=0))
        digest = hashlib.blake2b(timeless, digest_size=12).hexdigest()
        live = LiveDocument(encode(document), f'W/"{sale.epoch}-{digest}"'.encode(), figures)
        if len(self._documents) > 1_000:  # noqa: PLR2004 - far more sales than run at one time
            self._documents.clear()
        self._documents[sale.ref] = (time.monotonic() + TICK_S, sale.version, live)
        return live


def _outlook(sale: Sale, figures: Figures) -> OutlookDocument | None:
    """What the stock means to those who wait; None for a sale that keeps no stock here."""
    outlook = read_outlook(figures.pace.outlook)
    if outlook is None:
        return None
    state = "available"
    if outlook.free <= 0:
        state = "sold_out_may_return" if outlook.held > 0 else "sold_out"
    return OutlookDocument(state, figures.served + outlook.lasts_for(sale.order_limit))


def _public(sale: Sale, figures: Figures, push_url: str | None) -> PublicDocument:
    pace = figures.pace
    restoring = pace.restoring_until_ms > figures.now_ms
    return PublicDocument(
        id=sale.id,
        slug=sale.slug,
        name=sale.name,
        description=sale.description,
        timezone=sale.timezone,
        opens_at=rfc3339(sale.opens_at),
        closes_at=rfc3339(sale.closes_at) if sale.closes_at else None,
        mode=figures.mode,
        currency=sale.currency,
        currency_exponent=exponent(sale.currency),
        fee_bps=sale.fee_bps,
        fee_step_minor=step_minor(sale),
        order_limit=sale.order_limit,
        buyer_limit=sale.buyer_limit,
        hold_ttl_ms=sale.hold_ttl_ms,
        lobby_opens_at=rfc3339(sale.opens_at - timedelta(milliseconds=sale.lobby_ms))
        if sale.lobby_ms
        else None,
        window_ms=sale.window_ms,
        commitment=sale.commitment,
        lobby=figures.lobby,
        served=figures.served,
        tail=figures.tail,
        waiting=figures.waiting,
        called=figures.called,
        inside=figures.called + figures.active,
        rate_per_s=pace.pace_milli / 1_000,
        measured_rate_per_s=figures.measured_milli / 1_000,
        server_time_ms=figures.now_ms,
        variants=[
            VariantDocument(
                id=variant.id,
                product=variant.product,
                name=variant.name,
                price_minor=variant.price_minor,
                # The safety buffer is nobody's to buy, so it is not told as stock (H9).
                total=stock.quantity - stock.buffer,
                held=stock.held,
                sold=stock.sold,
                free=stock.free,
            )
            for variant, stock in zip(sale.variants, figures.variants, strict=True)
        ],
        outflow_per_s=pace.outflow_milli / 1_000 if pace.outflow_milli >= 0 else None,
        outlook=_outlook(sale, figures),
        line_full=0 <= pace.line_cap <= figures.waiting,
        restoring_until_ms=pace.restoring_until_ms if restoring else None,
        epoch=sale.epoch,
        push_url=push_url,
    )
