"""A shop whose workers may stop anywhere: the real scripts, the stock's model, and the orders' rows.

Each worker's job is a generator. Between two ``yield`` lies one atomic step: one call of the store
or one transaction. A history decides who takes the next step; a job that is never resumed is a
process that died, and one that is resumed late is a process that was paused.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from fairdrop.drivers.store import Store
from fairdrop.inventory import VariantLoad
from tests.driven_sale import DrivenSale, Scripts
from tests.property.models import StockModel
from tests.property.orders import Orders

BUYERS = ("ann", "bob", "cid")
VARIANTS = ("seat", "box")
HOLD_TTL_MS, PAYMENT_TTL_MS = 10_000, 5_000
Job = AsyncIterator[None]


class Shop:
    """Every call of a script is compared with the model at once."""

    def __init__(self, store: Store) -> None:
        self.sale = DrivenSale(Scripts(store))
        self.model = StockModel(order_limit=3, buyer_limit=5, hold_ttl_ms=HOLD_TTL_MS)
        self.orders = Orders()
        self.admissions: dict[str, str] = {}
        self.answers: dict[tuple[str, str], tuple[dict[str, int], str, Any]] = {}
        self.late_attempts = 0

    async def open(self, seats: int, boxes: int) -> None:
        for variant, units in zip(VARIANTS, (seats, boxes), strict=True):
            self.model.restock(variant, units)
        await self.sale.load(
            {"seat": seats, "box": boxes},
            order_limit=self.model.order_limit,
            buyer_limit=self.model.buyer_limit,
            hold_ttl_ms=HOLD_TTL_MS,
            lease_ttl_ms=10**9,
        )
        for buyer in BUYERS:
            await self.admit(buyer)

    # ------------------------------------------------------------ one step each

    async def admit(self, buyer: str) -> None:
        """A new admission, the one before (if any) being over."""
        await self.sale.leave(buyer)
        self.admissions[buyer] = f"{buyer}-{len(self.answers)}-{self.sale.now_ms}"
        self.model.renew(buyer)
        await self.sale.join(buyer)
        await self.sale.tick()
        batch = [(buyer, self.admissions[buyer])]
        line = await self.sale.scripts.claim(self.sale.ref, batch, now_ms=self.sale.now_ms)
        self.admissions[buyer] = line.places[0].admission

    async def restock(self, variant: str, units: int) -> None:
        last = self.model.last[variant] + units
        self.model.restock(variant, last)
        await self.sale.load([VariantLoad(variant, last, last)])

    async def reduce(self, variant: str, units: int) -> None:
        key = f"{variant}-{units}-{self.sale.now_ms}-{self.model.last}-{self.model.retired}"
        reduced = await self.sale.reduce(variant, units, key)
        if reduced.status == "REDUCED":
            # Sent again because the connection broke: the same serials, and no more.
            assert await self.sale.reduce(variant, units, key) == reduced
        enough = units <= len(self.model.free[variant])
        assert reduced.status == ("REDUCED" if enough else "TOO_FEW_FREE")
        assert len(reduced.retired) == (units if enough else 0)
        self.model.reduce(variant, set(reduced.retired))
        assert reduced.free == len(self.model.free[variant])

    # ------------------------------------------------------------ jobs

    async def buy(self, buyer: str, key: str, lines: dict[str, int]) -> Job:
        """Reserve, start checkout, write the row."""
        hold = await self._reserve(buyer, key, lines)
        yield
        if hold is None:
            return
        now_ms = self.sale.now_ms
        started = await self.sale.start(hold, buyer)
        assert started.outcome == self.model.start(hold, buyer, now_ms)
        yield
        if started.outcome == "STARTED":
            units = {(variant, serial) for variant, serials in started.lines for serial in serials}
            self.orders.insert(hold, buyer, units, started.deadline_ms)

    async def release(self, hold: str, buyer: str) -> Job:
        assert (await self.sale.release(hold, buyer)).outcome == self.model.release(hold, buyer)
        yield

    async def change(self, hold: str, buyer: str, wanted: dict[str, int]) -> Job:
        """Other quantities, up or down; a refusal leaves everything as it was (case 14)."""
        held = self.model.holds[hold]
        before = {variant: set(serials) for variant, serials in held.units.items()}
        deadline_ms, now_ms = held.deadline_ms, self.sale.now_ms
        expected = self.model.change(hold, buyer, wanted, self.admissions[buyer], now_ms)
        lines = [part for line in wanted.items() for part in line]
        answer = await self.sale.change(hold, buyer, lines)
        assert answer.outcome == expected, (answer, expected)
        if expected == "CHANGED":
            units = {variant: set(serials) for variant, serials in answer.lines}
            quantities = {variant: len(serials) for variant, serials in before.items()} | wanted
            assert {v: len(s) for v, s in units.items()} == {
                v: n for v, n in quantities.items() if n
            }
            assert answer.deadline_ms == deadline_ms
            self.model.have(hold, units)
        yield

    async def begin_payment(self, order: str) -> Job:
        deadline_ms = self.orders.extend(order, PAYMENT_TTL_MS, self.sale.now_ms)
        yield
        if deadline_ms is not None:
            assert await self.sale.extend(order, deadline_ms) == self.model.extend(
                order, deadline_ms
            )

    async def settle(self, order: str) -> Job:
        """Money came: the row first, the store after; late money takes units of its own."""
        state = self.orders.paid(order)
        yield
        if state == "CONFIRMED":
            await self._commit(self.orders.rows[order].hold)
        elif state == "EXPIRED":
            # Each attempt has a hold of its own, so that whoever still has to free the order's
            # first one cannot free this.
            self.late_attempts += 1
            hold = f"{order}.{self.late_attempts}"
            taken = await self._take_late(order, hold)
            yield
            if taken is None:
                return
            units, lease_ms = taken
            sold = self.orders.paid_late(order, hold, units, lease_ms, self.sale.now_ms)
            yield
            await (self._commit(hold) if sold else self._free(hold))

    async def cancel(self, order: str) -> Job:
        cancelled = self.orders.cancel(order)
        yield
        if cancelled:
            await self._free(order)

    async def expire_orders(self) -> Job:
        """The row first, the store after."""
        over = self.orders.expire(self.sale.now_ms)
        yield
        for order in over:
            await self._free(order)
            yield

    async def sweep(self) -> Job:
        """The store's deadlines: reservations end, and rows are asked about the rest."""
        swept = await self.sale.expire()
        assert swept.holds == self.model.expire(self.sale.now_ms)
        yield
        for hold, buyer in swept.undecided:
            row = self.orders.tombstone(hold.partition(".")[0], buyer)
            ours = row.hold == hold
            yield
            if ours and row.state == "RESERVED":
                await self.sale.extend(hold, row.deadline_ms)
                self.model.extend(hold, row.deadline_ms)
            elif ours and row.state == "CONFIRMED":
                await self._commit(hold)
            else:
                await self._free(hold)
            yield

    # ------------------------------------------------------------ steps of jobs

    async def _reserve(self, buyer: str, key: str, lines: dict[str, int]) -> str | None:
        admission, now_ms = self.admissions[buyer], self.sale.now_ms
        hold = f"hold-{len(self.answers)}-{buyer}-{key}"
        answer = await self.sale.reserve(
            buyer,
            [part for line in lines.items() for part in line],
            hold=hold,
            key=key,
            fingerprint=repr(sorted(lines.items())),
            admission=admission,
        )
        if (buyer, key) in self.answers:
            asked, expected, first = self.answers[buyer, key]
            if asked != lines:
                expected, first = "KEY_REUSED", None
        else:
            expected, first = self.model.reserve(buyer, admission, lines, now_ms), None
        if first is not None:
            expected = "REPLAYED" if expected == "RESERVED" else expected
            assert (answer.hold, answer.lines) == (first.hold, first.lines)
        assert answer.outcome == expected, (answer, expected)
        if expected == "RESERVED":
            taken = {variant: set(serials) for variant, serials in answer.lines}
            assert {variant: len(serials) for variant, serials in taken.items()} == lines
            self.model.take(hold, buyer, admission, taken, now_ms)
        if expected not in {"NOT_ADMITTED", "ALREADY_RESERVED", "KEY_REUSED", "REPLAYED"}:
            self.answers.setdefault((buyer, key), (lines, expected, answer))
        return answer.hold if isinstance(answer.hold, str) else None

    async def _take_late(self, order: str, hold: str) -> tuple[set[tuple[str, int]], int] | None:
        buyer, lines = self.orders.rows[order].buyer, {"seat": 1}
        expected = self.model.late(lines)
        answer = await self.sale.take_late(buyer, hold, ["seat", 1])
        assert answer.outcome == expected
        if expected == "SOLD_OUT":
            return None
        taken = {variant: set(serials) for variant, serials in answer.lines}
        self.model.take(hold, buyer, None, taken, self.sale.now_ms)
        units = {(variant, serial) for variant, serials in answer.lines for serial in serials}
        return units, answer.deadline_ms

    async def _commit(self, hold: str) -> None:
        assert await self.sale.commit(hold) == self.model.commit(hold)

    async def _free(self, hold: str) -> None:
        assert (await self.sale.free(hold)).outcome == self.model.release(hold, None)
