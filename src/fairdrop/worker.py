"""The background worker: everything that happens without a buyer asking for it.

Each loop is safe to run in any number of workers at once: a script or a row lock decides. A loop
that meets a part that is away logs it, waits a moment and goes on; nothing it does is lost by
doing it later.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from fairdrop.checkout import load_all_due, note_sold_out
from fairdrop.clock import now_ms
from fairdrop.draw import Step
from fairdrop.drivers.sale_scripts import SaleNotLoaded
from fairdrop.errors import DatabaseUnavailable, FairdropError, StoreUnavailable
from fairdrop.outbox import RELAY_BATCH

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from fairdrop.app import Parts
    from fairdrop.catalog import Sale

_log = structlog.get_logger(__name__)

PAUSE_AFTER_ERROR_S = 0.5
RUSH = 20
"""Webhooks that came within one interval of the settlement, from which on they come in a rush."""
RUSH_INTERVALS = 3
MAILS_IN_RUSH = 4
SALES_INTERVAL_S = 0.5
KEYS_INTERVAL_S = 60.0
ADAPT_LOOKS = 10
"""How often in an interval a worker asks whether a step of the adaptive pace is due."""
DRAW_INTERVAL_S = 0.02
"""A look at a set in this process: people wait for their number."""
UNFINISHED_INTERVAL_MS = 2_000
"""How often draws are looked for that a worker left when it died, or whose store lost the lobby."""


class Worker:
    """Runs the loops of one worker process."""

    def __init__(self, parts: Parts) -> None:
        """Take the parts; nothing runs yet."""
        self._parts = parts
        self._sales: dict[str, Sale] = {}
        self._errors: dict[str, int] = {}
        self._to_draw: set[str] = set()
        self._drawing: set[str] = set()
        self._unfinished_ms = 0
        self._rush = False

    async def run(self) -> None:
        """Run until cancelled."""
        settings = self._parts.settings
        loops: list[tuple[str, Callable[[], Awaitable[float]]]] = [
            ("sales", self._keep_loaded),
            ("tick", lambda: self._tick(settings.tick_interval_ms / 1_000)),
            ("adapt", lambda: self._adapt(settings.adapt_interval_ms)),
            ("draw", lambda: self._draw(group)),
            ("settle", lambda: self._settle(settings.settle_interval_ms / 1_000)),
            ("sweep orders", lambda: self._sweep_orders(settings.sweep_interval_ms / 1_000)),
            ("sweep store", lambda: self._sweep_store(settings.sweep_interval_ms / 1_000)),
            ("load stock", self._load_stock),
            ("completions", lambda: self._tell_completions(settings.sweep_interval_ms / 1_000)),
            # Two loops: a gateway that answers slowly about payments keeps no refund waiting.
            (
                "check payments",
                lambda: self._check_payments(settings.reconcile_interval_ms / 1_000),
            ),
            ("relay", lambda: self._relay(settings.relay_interval_ms / 1_000)),
            ("mails", lambda: self._send_mails(settings.mail_interval_ms / 1_000)),
            ("idempotency keys", self._purge_keys),
            ("pay refunds", lambda: self._pay_refunds(settings.reconcile_interval_ms / 1_000)),
        ]
        async with asyncio.TaskGroup() as group:
            for name, step in loops:
                group.create_task(self._loop(name, step), name=name)

    async def _loop(self, name: str, step: Callable[[], Awaitable[float]]) -> None:
        """Repeat the step; it says how long to wait until the next time."""
        while True:
            try:
                pause = await step()
                if self._errors.pop(name, 0):
                    _log.info("loop_recovered", loop=name)
            except FairdropError as error:
                self._errors[name] = self._errors.get(name, 0) + 1
                if self._errors[name] == 1:
                    _log.warning("loop_waits", loop=name, error=str(error))
                pause = PAUSE_AFTER_ERROR_S
            except Exception:  # noqa: BLE001 - whatever it was, the loops go on
                # A bug in one step must not stop the others, nor this one for other sales.
                _log.exception("loop_failed", loop=name)
                pause = PAUSE_AFTER_ERROR_S
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                # Below, a cancellation that meets a breaking connection gets lost and the error
                # wins (asyncio.wait_for before Python 3.12): the worker would never stop.
                raise asyncio.CancelledError
            await asyncio.sleep(pause)

    async def _keep_loaded(self) -> float:
        running = await self._parts.catalog.running()
        loaded: dict[str, Sale] = {}

        async def load(sale: Sale) -> None:
            loaded[sale.id] = await self._parts.loader.keep_loaded(sale)

        try:
            await _each(running, load)
        finally:
            known = {**self._sales, **loaded}
            self._sales = {sale.id: known[sale.id] for sale in running if sale.id in known}
        return SALES_INTERVAL_S

    async def _tick(self, interval_s: float) -> float:
        await _each(self._sales.values(), self._tick_sale)
        return interval_s

    async def _tick_sale(self, sale: Sale) -> None:
        ticked = await self._parts.waiting_room.tick(sale.ref)
        while ticked.more:
            ticked = await self._parts.waiting_room.tick(sale.ref)
        (self._to_draw.add if ticked.to_fill else self._to_draw.discard)(sale.id)
        if ticked.mode != sale.mode:
            await self._parts.catalog.note_mode(sale, ticked.mode)
        if ticked.sold_out != sale.sold_out:
            await note_sold_out(self._parts.database, sale, sold_out=ticked.sold_out)

    async def _draw(self, group: asyncio.TaskGroup) -> float:
        """Hold the draws that are due, each in a task of its own: one may wait for its beacon."""
        looked_ms = now_ms()
        due = set(self._to_draw)
        if looked_ms - self._unfinished_ms >= UNFINISHED_INTERVAL_MS:
            self._unfinished_ms = looked_ms
            due |= await self._parts.draws.unfinished()
        for sale_id in due - self._drawing:
            sale = self._sales.get(sale_id)
            if sale is not None:
                self._drawing.add(sale_id)
                group.create_task(self._hold_draw(sale), name=f"draw of {sale_id}")
        return DRAW_INTERVAL_S

    async def _hold_draw(self, sale: Sale) -> None:
        try:
            step = await self._parts.draws.hold(sale.ref)
            if step is not Step.FILLED:
                await asyncio.sleep(PAUSE_AFTER_ERROR_S)
        except FairdropError as error:
            _log.warning("draw_waits", sale=sale.id, error=str(error))
            await asyncio.sleep(PAUSE_AFTER_ERROR_S)
        except Exception:  # noqa: BLE001 - whatever it was, the loops and the other draws go on
            _log.exception("draw_failed", sale=sale.id)
            await asyncio.sleep(PAUSE_AFTER_ERROR_S)
        finally:
            self._to_draw.discard(sale.id)
            self._drawing.discard(sale.id)

    async def _adapt(self, interval_ms: int) -> float:
        async def adapt(sale: Sale) -> None:
            step = await self._parts.waiting_room.adapt(
                sale.ref,
                interval_ms,
                lowest_milli=round(sale.rate_min_per_s * 1_000),
                highest_milli=round(sale.rate_max_per_s * 1_000),
                cap=sale.cap,
            )
            if step is not None:
                _log.info(
                    "pace_adapted", sale=sale.id, rate_milli=step.rate_milli, reason=step.reason
                )

        await _each([sale for sale in self._sales.values() if sale.adaptive], adapt)
        return interval_ms / ADAPT_LOOKS / 1_000

    async def _settle(self, interval_s: float) -> float:
        """A rush is settled less often, many orders to a commit: each of its batches costs much alike."""
        self._rush = await self._parts.settlement.drain() >= RUSH
        return RUSH_INTERVALS * interval_s if self._rush else interval_s

    async def _sweep_orders(self, interval_s: float) -> float:
        epochs = {sale.id: sale.epoch for sale in self._sales.values()}
        await self._parts.sweeper.sweep_orders(epochs)
        return interval_s

    async def _load_stock(self) -> float:
        await load_all_due(self._parts.stock_loading, list(self._sales.values()))
        return SALES_INTERVAL_S

    async def _sweep_store(self, interval_s: float) -> float:
        await _each(self._sales.values(), self._parts.sweeper.sweep_store)
        return interval_s

    async def _tell_completions(self, interval_s: float) -> float:
        await self._parts.completions.tell_untold()
        return interval_s

    async def _check_payments(self, interval_s: float) -> float:
        return 0.0 if await self._parts.reconciler.check_payments() else interval_s

    async def _relay(self, interval_s: float) -> float:
        """Whole batches follow one another; what is less waits for more to share its commit."""
        return 0.0 if await self._parts.relay.publish() >= RELAY_BATCH else interval_s

    async def _send_mails(self, interval_s: float) -> float:
        """A batch at a time, no faster than mail servers like it: buyers' orders come first.

        A mail takes some ten times of a processor what settling its order took: in a rush mails go
        at a quarter of their pace.
        """
        mailer = self._parts.mailer
        sent = 0 if mailer is None else await mailer.send_due()
        if not sent:
            return interval_s
        pause = sent / self._parts.settings.mails_per_s
        return MAILS_IN_RUSH * pause if self._rush else pause

    async def _purge_keys(self) -> float:
        return 0.0 if await self._parts.answers.purge() else KEYS_INTERVAL_S

    async def _pay_refunds(self, interval_s: float) -> float:
        paid = await self._parts.reconciler.pay_refunds()
        return 0.0 if paid + await self._parts.refunds.return_units() else interval_s


async def _each(sales: Iterable[Sale], step: Callable[[Sale], Awaitable[object]]) -> None:
    """Do the step for every sale: trouble with one of them never stops the others.

    Raises the first error at the end; at once where a part is away that all of them need.
    """
    first: Exception | None = None
    for sale in list(sales):
        try:
            await step(sale)
        except SaleNotLoaded as error:
            first = first or error
        except (StoreUnavailable, DatabaseUnavailable):
            raise
        except Exception as error:  # noqa: BLE001 - raised once the others had their turn
            first = first or error
    if first is not None:
        raise first
