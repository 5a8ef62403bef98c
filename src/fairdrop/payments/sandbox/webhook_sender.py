"""Sends webhooks until the merchant accepts them.

The table ``deliveries`` is the queue; memory holds only what is being sent or next to be, at most
READY_LIMIT. A delivery is struck off after a 2xx, so a crash anywhere sends it again: at least
once, never lost. Two ways lead into the ready queue: straight from the commit that made it due
(the usual way, no read), or by the pump, which reads the table when something falls due later,
when there was no room, and after a start.

Anything but a 2xx within SEND_TIMEOUT_S is tried again after FIRST_RETRY_MS, doubling to
MAX_RETRY_MS, for GIVE_UP_AFTER_MS. The signature is made at each sending, with its time.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

from fairdrop.payments import signatures
from fairdrop.payments.calls import Calls, NoAnswer

from . import operations
from .documents import DeliveryFigures

if TYPE_CHECKING:
    from fairdrop.clock import Clock

    from .record import Delivery, Record, Transaction

READY_LIMIT = 512
CONCURRENCY = 64
FIRST_RETRY_MS = 200
MAX_RETRY_MS = 30_000
GIVE_UP_AFTER_MS = 48 * 3_600_000
STRIKE_OFF_EVERY_S = 0.02
"""Accepted ones are struck off together: nobody waits for it, and each commit costs a disk write."""
SEND_TIMEOUT_S = 10
CONNECT_TIMEOUT_S = 2

_log = logging.getLogger(__name__)


def retry_after_ms(attempts: int) -> int:
    """How long to wait after so many failed attempts: 200 ms, 400 ms, … 30 s.

    >>> [retry_after_ms(attempts) for attempts in (1, 2, 3, 8, 9, 5_000)]
    [200, 400, 800, 25600, 30000, 30000]
    """
    doublings = min(attempts - 1, 16)
    return min(FIRST_RETRY_MS << doublings, MAX_RETRY_MS)


class WebhookSender:
    """Delivers the webhooks of one gateway to one URL."""

    def __init__(self, url: str, secret: bytes, clock: Clock) -> None:
        """Remember where to send and what to sign with; :meth:`start` starts."""
        self._calls = Calls(
            url,
            {"content-type": "application/json", "user-agent": "fairdrop-sandbox-gateway"},
            connect_timeout_s=CONNECT_TIMEOUT_S,
            timeout_s=SEND_TIMEOUT_S,
        )
        self._secret = secret
        self._clock = clock
        self._ready: asyncio.Queue[Delivery] = asyncio.Queue()
        self._held: set[int] = set()  # numbers in memory: ready, being sent, or being struck off
        self._accepted: list[int] = []
        self._postponed: list[tuple[int, int, int]] = []
        self._conclusions: asyncio.Task[None] | None = None
        self._table_has_more = True  # after a start: what the last process left
        self._next_due_ms: int | None = None
        self._pump_signal = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._record: Record | None = None
        self._counts = dict.fromkeys(("accepted", "refused", "given_up", "dropped", "copies"), 0)

    def start(self, record: Record) -> None:
        """Begin to send, with what an earlier process left first. Needs a running loop."""
        self._record = record
        spawn = asyncio.get_running_loop().create_task
        self._tasks = [spawn(self._pump()), *(spawn(self._send_all()) for _ in range(CONCURRENCY))]

    async def stop(self) -> None:
        """Stop sending. What was not accepted stays in the table."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._conclusions is not None:
            await self._conclusions
        self._calls.close()

    async def figures(self) -> DeliveryFigures:
        """What waits (from the table), and what this process has done."""
        assert self._record is not None, "figures are asked after start"
        return DeliveryFigures(
            pending=await self._record.run(operations.count_deliveries), **self._counts
        )

    def committed(self, transaction: Transaction) -> None:
        """Take note of what a commit made due. Never raises, never waits."""
        self._counts["dropped"] += transaction.dropped
        self._counts["copies"] += transaction.copies
        if transaction.released:
            self._table_has_more = True
            self._pump_signal.set()
        for delivery in transaction.deliveries:
            if delivery.due_ms > transaction.now_ms:
                self._expect(delivery.due_ms)
            elif self._table_has_more or len(self._held) >= READY_LIMIT:
                # Older ones wait in the table: no overtaking by the fast way.
                self._table_has_more = True
                self._pump_signal.set()
            else:
                self._make_ready(delivery)

    def _expect(self, due_ms: int) -> None:
        if self._next_due_ms is None or due_ms < self._next_due_ms:
            self._next_due_ms = due_ms
            self._pump_signal.set()

    def _make_ready(self, delivery: Delivery) -> None:
        self._held.add(delivery.seq)
        self._ready.put_nowait(delivery)

    async def _pump(self) -> None:
        """Fetch from the table whenever it has something due and there is room."""
        while True:
            if self._table_has_more and len(self._held) <= READY_LIMIT // 2:
                await self._fetch()
                continue
            wait_s = None
            if self._next_due_ms is not None:
                wait_s = (self._next_due_ms - self._clock()) / 1_000
                if wait_s <= 0:
                    self._next_due_ms = None
                    self._table_has_more = True
                    if len(self._held) <= READY_LIMIT // 2:
                        continue
                    wait_s = None
            self._pump_signal.clear()
            try:
                await asyncio.wait_for(self._pump_signal.wait(), wait_s)
            except TimeoutError:
                continue

    async def _fetch(self) -> None:
        assert self._record is not None, "the pump runs after start"
        self._table_has_more = False  # a commit during the read sets it again
        # Those held are due as well and come along, so ask for as many more.
        limit = 2 * READY_LIMIT
        try:
            due, next_due_ms = await self._record.run(
                partial(operations.due_deliveries, limit=limit)
            )
        except Exception:  # noqa: BLE001 - the pump must outlive whatever it was
            _log.exception("reading the webhooks to be sent failed; trying again")
            self._table_has_more = True
            await asyncio.sleep(1)
            return
        if next_due_ms is not None:
            self._expect(next_due_ms)
        room = READY_LIMIT - len(self._held)
        waiting = [delivery for delivery in due if delivery.seq not in self._held]
        for delivery in waiting[:room]:
            self._make_ready(delivery)
        if len(waiting) > room or len(due) == limit:
            self._table_has_more = True

    async def _send_all(self) -> None:
        while True:
            delivery = await self._ready.get()
            try:
                accepted = await self._send(delivery)
            except Exception:  # noqa: BLE001 - the sender must outlive it
                _log.exception("sending webhook %s failed", delivery.event)
                accepted = False
            self._conclude(delivery, accepted=accepted)

    async def _send(self, delivery: Delivery) -> bool:
        signature = signatures.sign(self._secret, delivery.body, self._clock() // 1_000)
        try:
            answer = await self._calls.call(
                "POST", body=delivery.body, headers={signatures.HEADER: signature}
            )
        except NoAnswer:
            return False
        return HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES

    def _conclude(self, delivery: Delivery, *, accepted: bool) -> None:
        now_ms = self._clock()
        if accepted:
            self._counts["accepted"] += 1
            self._accepted.append(delivery.seq)
        elif now_ms - delivery.created_ms > GIVE_UP_AFTER_MS:
            self._counts["given_up"] += 1
            _log.warning("webhook %s was never accepted; given up", delivery.event)
            self._accepted.append(delivery.seq)
        else:
            self._counts["refused"] += 1
            attempts = delivery.attempts + 1
            due_ms = now_ms + retry_after_ms(attempts)
            self._postponed.append((delivery.seq, attempts, due_ms))
        if self._conclusions is None:
            loop = asyncio.get_running_loop()
            self._conclusions = loop.create_task(self._write_conclusions())

    async def _write_conclusions(self) -> None:
        """Write down what was concluded since the last time, until there is nothing more."""
        assert self._record is not None, "conclusions follow sending"
        while self._accepted or self._postponed:
            await asyncio.sleep(STRIKE_OFF_EVERY_S)
            accepted, self._accepted = self._accepted, []
            postponed, self._postponed = self._postponed, []
            write = partial(_write_both, accepted=accepted, postponed=postponed)
            try:
                await self._record.run(write)
            except Exception:  # noqa: BLE001 - sending must go on
                # They stay in the table as they were, and are sent once more than needed.
                _log.exception("striking webhooks off failed")
                self._expect(self._clock() + FIRST_RETRY_MS)
            self._held.difference_update(accepted)
            self._held.difference_update(seq for seq, _, _ in postponed)
            for _, _, due_ms in postponed:
                self._expect(due_ms)
            if self._table_has_more:
                self._pump_signal.set()
        self._conclusions = None


def _write_both(
    tx: Transaction, accepted: list[int], postponed: list[tuple[int, int, int]]
) -> None:
    operations.accept_deliveries(tx, accepted)
    operations.postpone_deliveries(tx, postponed)
