"""The live figures that the console shows: the store's at once, the books' at most a moment old."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, NamedTuple

from fairdrop import ledger
from fairdrop.checkout import OrderDesk, StockLoad
from fairdrop.ledger import Account
from fairdrop.money import exponent
from fairdrop.waiting_room import read_outlook

from .documents import FiguresDocument, StockLoadDocument, VariantStock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairdrop.app import Parts
    from fairdrop.catalog import Sale
    from fairdrop.web.live import Live

BOOKS_FRESH_S = 1.0
SHARE_OF_TIME = 10
"""Reading the books takes at most a tenth of the time, however many orders there are and whoever
looks: what was read in 0.3 s serves for 3 s."""
_REMEMBERED = 1_000


class _Books(NamedTuple):
    orders: dict[str, int]
    revenue_minor: int
    fees_minor: int
    refund_liability_minor: int
    stock_load: StockLoad | None


class SaleFigures:
    """Figures of sales, read once however many consoles look."""

    def __init__(self, parts: Parts, live: Live) -> None:
        """Start with nothing remembered."""
        self._database = parts.database
        self._stock_loading = parts.stock_loading
        self._desk = OrderDesk(parts.database)
        self._live = live
        self._books: dict[str, tuple[float, _Books]] = {}
        self._reading: dict[str, asyncio.Task[_Books]] = {}

    async def of(self, sale: Sale) -> FiguresDocument:
        """The figures now. Raises StoreUnavailable or DatabaseUnavailable."""
        figures, books = await asyncio.gather(self._live.figures(sale), self._books_of(sale))
        pace, outlook = figures.pace, read_outlook(figures.pace.outlook)
        return FiguresDocument(
            mode=figures.mode,
            lobby=figures.lobby,
            waiting=figures.waiting,
            called=figures.called,
            inside=figures.called + figures.active,
            missed=figures.missed,
            joined=figures.joined,
            admitted=figures.admitted,
            left=figures.left,
            done=figures.done,
            served=figures.served,
            tail=figures.tail,
            rate_per_s=figures.rate_milli / 1_000,
            measured_rate_per_s=figures.measured_milli / 1_000,
            pace_per_s=pace.pace_milli / 1_000,
            pace_reason=pace.step_reason if sale.adaptive else "",
            pace_steps={"up": pace.steps_up, "down": pace.steps_down, "kept": pace.steps_kept},
            outflow_per_s=pace.outflow_milli / 1_000 if pace.outflow_milli >= 0 else None,
            line_cap=pace.line_cap if pace.line_cap >= 0 else None,
            forecast_until=figures.served + outlook.lasts_for(sale.order_limit)
            if outlook is not None
            else None,
            restoring_until_ms=pace.restoring_until_ms
            if pace.restoring_until_ms > figures.now_ms
            else None,
            restored=pace.restored,
            restored_inside=pace.restored_inside,
            lost_tail=pace.lost_tail,
            cap=sale.cap,
            server_time_ms=figures.now_ms,
            variants=[
                VariantStock(
                    id=variant.id,
                    name=f"{variant.product}, {variant.name}",
                    quantity=stock.quantity,
                    free=stock.free,
                    held=stock.held,
                    sold=stock.sold,
                    buffer=stock.buffer,
                )
                for variant, stock in zip(sale.variants, figures.variants, strict=True)
            ],
            orders=books.orders,
            revenue_minor=books.revenue_minor,
            fees_minor=books.fees_minor,
            refund_liability_minor=books.refund_liability_minor,
            currency=sale.currency,
            currency_exponent=exponent(sale.currency),
            stock_load=StockLoadDocument(**books.stock_load._asdict())
            if books.stock_load is not None
            else None,
        )

    async def _books_of(self, sale: Sale) -> _Books:
        known = self._books.get(sale.id)
        if known is not None and known[0] > time.monotonic():
            return known[1]
        task = self._reading.get(sale.id)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._read(sale))
            self._reading[sale.id] = task
            task.add_done_callback(lambda _: self._reading.pop(sale.id, None))
        return await asyncio.shield(task)

    async def _read(self, sale: Sale) -> _Books:
        began = time.monotonic()
        orders = await self._desk.counts(sale.id)
        async with self._database.connection() as connection:
            balances = await ledger.balances(connection, sale.id)
        earned = {
            balance.account: balance.credits_minor - balance.debits_minor
            for balance in balances
            if balance.currency == sale.currency
        }
        sales, fees, liability = (_of(earned, account) for account in _SHOWN)
        load = await self._stock_loading.state_of(sale)
        books = _Books(orders, sales, fees, liability, load)
        now = time.monotonic()
        if len(self._books) >= _REMEMBERED:
            self._books.clear()
        fresh_s = max(BOOKS_FRESH_S, SHARE_OF_TIME * (now - began))
        self._books[sale.id] = (now + fresh_s, books)
        return books


_SHOWN = (Account.SALES, Account.FEES, Account.REFUND_LIABILITY)


def _of(earned: Mapping[str, int], account: Account) -> int:
    return earned.get(account, 0)
