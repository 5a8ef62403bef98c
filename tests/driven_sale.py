"""A sale on a real store whose time the test passes in.

The services take the store's own time for most calls. To let ten minutes pass in a test, the
scripts are called here as the services call them, with ``now_ms`` besides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fairdrop.access.limits import Counted
from fairdrop.access.proofs import Spent
from fairdrop.drivers.keys import sale_key
from fairdrop.drivers.sale_scripts import SaleScript
from fairdrop.drivers.store import Store
from fairdrop.ids import SaleRef, new_id
from fairdrop.inventory import model as inventory
from fairdrop.inventory.model import (
    Change,
    ChangeRequest,
    CommitOutcome,
    Expired,
    ExtendOutcome,
    Figures,
    HoldLoad,
    Loaded,
    Reduced,
    Release,
    Reservation,
    ReserveRequest,
    Start,
    VariantFigures,
    VariantLoad,
)
from fairdrop.waiting_room import model as waiting_room
from fairdrop.waiting_room.model import Entrants, Filled, LeaveOutcome, Line, Place, Ticked

OPENED_MS = 1_800_000_000_000
"""When every driven sale begins, unless told otherwise."""

CONFIG: Mapping[str, str | int] = {
    "mode": "open",
    "rate_milli": 1_000_000,
    "burst_ms": 1_000,
    "cap": 1_000,
    "claim_ttl_ms": 60_000,
    "lease_ttl_ms": 300_000,
    "hold_ttl_ms": 600_000,
    "order_limit": 4,
    "buyer_limit": 4,
    "opens_ms": 0,
    "closes_ms": 0,
}


HoldContent = tuple[str, str | bool, int, int, inventory.Lines]
"""A hold in the store: (buyer, admission, deadline, phase, lines); marks are left out."""


def unpack_holds(raw: Mapping[Any, Any]) -> dict[str, HoldContent]:
    """The hash ``holds`` by hold id."""
    return {
        name.decode(): msgspec.convert(msgspec.msgpack.decode(packed)[:5], HoldContent)
        for name, packed in raw.items()
    }


def entry_of(visitor: str) -> str:
    """The entry id that a driven sale offers for a visitor."""
    return f"e-{visitor}".ljust(22, "_")[:22]


class Scripts:
    """Every script of the store, each callable with a sale, a batch and a time."""

    def __init__(self, store: Store) -> None:
        def script(package: str, name: str, reply: type[Any]) -> SaleScript[Any]:
            return SaleScript(store, f"fairdrop.{package}", name, reply)

        self.store = store
        self.join = script("waiting_room", "join", waiting_room.Line)
        self.status = script("waiting_room", "status", waiting_room.Line)
        self.claim = script("waiting_room", "claim", waiting_room.Line)
        self.leave = script("waiting_room", "leave", waiting_room.Left)
        self.front = script("waiting_room", "front", waiting_room.Fronted)
        self.revocations = script("waiting_room", "revocations", waiting_room.RevokedPage)
        self.observe = script("waiting_room", "observe", waiting_room.Observed)
        self.measures = script("waiting_room", "measures", waiting_room.Measures)
        self.adapt = script("waiting_room", "adapt", waiting_room.Adapted)
        self.restore = script("waiting_room", "restore", waiting_room.Restored)
        self.grace = script("waiting_room", "grace", waiting_room.Grace)
        self.called = script("waiting_room", "called", waiting_room.Called)
        self.tick = script("waiting_room", "tick", waiting_room.Ticked)
        self.spend = script("access", "spend", Spent)
        self.rates = script("access", "rates", Counted)
        self.entrants = script("waiting_room", "entrants", waiting_room.Entrants)
        self.fill = script("waiting_room", "fill", waiting_room.Filled)
        self.reserve = script("inventory", "reserve", inventory.Reserved)
        self.change = script("inventory", "change", inventory.Changed)
        self.start = script("inventory", "start", inventory.Started)
        self.release = script("inventory", "release", inventory.Released)
        self.commit = script("inventory", "commit", inventory.Committed)
        self.extend = script("inventory", "extend", inventory.Extended)
        self.expire = script("inventory", "expire", inventory.Expired)
        self.load = script("inventory", "load", inventory.Loaded)
        self.give_back = script("inventory", "give_back", inventory.GivenBack)
        self.reduce = script("inventory", "reduce", inventory.Reduced)
        self.figures = script("inventory", "figures", inventory.Figures)


@dataclass
class DrivenSale:
    """One sale; ``now_ms`` moves by :meth:`pass_ms` alone."""

    scripts: Scripts
    ref: SaleRef = field(default_factory=lambda: SaleRef(new_id(), 1))
    now_ms: int = OPENED_MS
    variants: tuple[str, ...] = ()
    version: int = 0

    def pass_ms(self, milliseconds: int) -> None:
        self.now_ms += milliseconds

    # ------------------------------------------------------------ setting up

    async def load(
        self,
        stock: Mapping[str, int] | Sequence[VariantLoad] = (),
        *,
        holds: Sequence[HoldLoad] = (),
        bought: Mapping[str, int] | None = None,
        line: tuple[int, int, int] = (0, 0, 0),
        **config: str | int,
    ) -> Loaded:
        """Load or bring up to date, as the next version; figures then show these variants."""
        if isinstance(stock, Mapping):
            stock = [VariantLoad(name, units, units) for name, units in stock.items()]
        self.variants = tuple(dict.fromkeys([*self.variants, *(v.variant for v in stock)]))
        self.version += 1
        fields = config if self.version > 1 else {**CONFIG, **config}
        loaded: Loaded = await self.scripts.load(
            self.ref,
            [self.version, fields, list(stock), list(holds), dict(bought or {}), line],
            now_ms=self.now_ms,
        )
        return loaded

    async def admit(self, *visitors: str) -> None:
        """Through the whole waiting room; the admission of visitor ``x`` is ``adm-x``."""
        await self.join(*visitors)
        await self.tick()
        places = await self.claim(*visitors)
        assert {place.state for place in places} <= {waiting_room.State.ADMITTED}, places

    # ------------------------------------------------------------ the waiting room

    async def join(self, *visitors: str) -> list[Place]:
        return (await self.join_line(*visitors)).places

    async def join_line(self, *visitors: str) -> Line:
        batch = [(visitor, entry_of(visitor)) for visitor in visitors]
        line: Line = await self.scripts.join(self.ref, batch, now_ms=self.now_ms)
        return line

    async def status(self, *visitors: str) -> list[Place]:
        return (await self.status_line(*visitors)).places

    async def status_line(self, *visitors: str) -> Line:
        line: Line = await self.scripts.status(self.ref, list(visitors), now_ms=self.now_ms)
        return line

    async def fill(self, first: int, *visitors: str) -> Filled:
        filled: Filled = await self.scripts.fill(self.ref, [first, list(visitors)])
        return filled

    async def entrants(self, first: int = 0, count: int = 1_000) -> Entrants:
        entrants: Entrants = await self.scripts.entrants(self.ref, [first, count])
        return entrants

    async def claim(self, *visitors: str) -> list[Place]:
        batch = [(visitor, f"adm-{visitor}") for visitor in visitors]
        line: Line = await self.scripts.claim(self.ref, batch, now_ms=self.now_ms)
        return line.places

    async def leave(self, *visitors: str) -> list[LeaveOutcome]:
        batch = [(visitor, None, False) for visitor in visitors]
        outcomes: list[LeaveOutcome] = (
            await self.scripts.leave(self.ref, batch, now_ms=self.now_ms)
        ).outcomes
        return outcomes

    async def complete(self, visitor: str, admission: str | None = None) -> LeaveOutcome:
        batch = [(visitor, admission or f"adm-{visitor}", True)]
        outcome: LeaveOutcome = (
            await self.scripts.leave(self.ref, batch, now_ms=self.now_ms)
        ).outcomes[0]
        return outcome

    async def front(
        self, *visitors: str, first: bool = False, early: bool = False
    ) -> list[waiting_room.FrontOutcome]:
        batch = [(visitor, 1 if first else 2, early) for visitor in visitors]
        fronted: waiting_room.Fronted = await self.scripts.front(self.ref, batch)
        return fronted.outcomes

    async def revocations(
        self, offset: int = 0, limit: int = 1_000, characters: int = 30
    ) -> waiting_room.RevokedPage:
        page: waiting_room.RevokedPage = await self.scripts.revocations(
            self.ref, [offset, limit, characters], now_ms=self.now_ms
        )
        return page

    async def restore(
        self, visitor: str, position: int, *more: str | int | bool
    ) -> waiting_room.RestoreOutcome:
        """Present a receipt that was checked: (admission, issued_s, lease_ms, hold) if there was one."""
        item = waiting_room.Presented(visitor, position, *more)  # type: ignore[arg-type]
        reply: waiting_room.Restored = await self.scripts.restore(
            self.ref, [item], now_ms=self.now_ms
        )
        return reply.outcomes[0]

    async def grace(self, milliseconds: int) -> int:
        reply: waiting_room.Grace = await self.scripts.grace(
            self.ref, [milliseconds], now_ms=self.now_ms
        )
        return reply.restoring_until_ms

    async def called(self, from_ms: int = 0, limit: int = 1_000) -> waiting_room.Called:
        called: waiting_room.Called = await self.scripts.called(
            self.ref, [from_ms, limit], now_ms=self.now_ms
        )
        return called

    async def tick(self, limit: int = 500) -> Ticked:
        ticked: Ticked = await self.scripts.tick(self.ref, [limit], now_ms=self.now_ms)
        return ticked

    # ------------------------------------------------------------ the inventory

    async def reserve(
        self,
        buyer: str,
        lines: Sequence[str | int],
        *,
        hold: str | None = None,
        key: str | None = None,
        fingerprint: str = "body",
        admission: str | None = None,
        verified: Sequence[str] = (),
    ) -> Reservation:
        """One request; without a key it is one of its own."""
        request = self.request(
            buyer,
            lines,
            hold=hold,
            key=key,
            fingerprint=fingerprint,
            admission=admission,
            verified=verified,
        )
        return (await self.reserve_all(request))[0]

    def request(
        self,
        buyer: str,
        lines: Sequence[str | int],
        *,
        hold: str | None = None,
        key: str | None = None,
        fingerprint: str = "body",
        admission: str | None = None,
        verified: Sequence[str] = (),
    ) -> ReserveRequest:
        fresh = new_id()
        admission = f"adm-{buyer}" if admission is None else admission
        return ReserveRequest(
            buyer, admission, hold or fresh, key or fresh, fingerprint, list(lines), list(verified)
        )

    async def reserve_all(self, *requests: ReserveRequest) -> list[Reservation]:
        """Several requests in one batch."""
        reply = await self.scripts.reserve(self.ref, list(requests), now_ms=self.now_ms)
        outcomes: list[Reservation] = reply.outcomes
        return outcomes

    async def take_late(self, buyer: str, order: str, lines: Sequence[str | int]) -> Reservation:
        return (await self.reserve_all(ReserveRequest(buyer, None, order, "", "", list(lines))))[0]

    async def change(
        self,
        hold: str,
        buyer: str,
        lines: Sequence[str | int],
        *,
        key: str = "",
        fingerprint: str = "body",
    ) -> Change:
        """Other quantities: those to have, or (below 0) units to give back."""
        request = ChangeRequest(buyer, hold, key, fingerprint, list(lines))
        reply = await self.scripts.change(self.ref, [request], now_ms=self.now_ms)
        changed: Change = reply.outcomes[0]
        return changed

    async def start(self, hold: str, buyer: str, verified: Sequence[str] = ()) -> Start:
        batch = [(hold, buyer, list(verified))]
        reply = await self.scripts.start(self.ref, batch, now_ms=self.now_ms)
        started: Start = reply.outcomes[0]
        return started

    async def release(self, hold: str, buyer: str) -> Release:
        released: Release = (await self.scripts.release(self.ref, [(hold, buyer, [])])).outcomes[0]
        return released

    async def free(self, hold: str, lost: Sequence[str | int] = ()) -> Release:
        reply = await self.scripts.release(self.ref, [(hold, None, list(lost))])
        released: Release = reply.outcomes[0]
        return released

    async def commit(self, hold: str) -> CommitOutcome:
        outcome: CommitOutcome = (await self.scripts.commit(self.ref, [hold])).outcomes[0]
        return outcome

    async def extend(self, hold: str, deadline_ms: int) -> ExtendOutcome:
        reply = await self.scripts.extend(self.ref, [(hold, deadline_ms)])
        outcome: ExtendOutcome = reply.outcomes[0]
        return outcome

    async def expire(
        self, limit: int = 200, look_again_ms: int = 3_000, units: int = 2_000
    ) -> Expired:
        expired: Expired = await self.scripts.expire(
            self.ref, [limit, look_again_ms, units], now_ms=self.now_ms
        )
        return expired

    async def reduce(self, variant: str, units: int, key: str | None = None) -> Reduced:
        reduced: Reduced = await self.scripts.reduce(
            self.ref, [variant, units, key or new_id()], now_ms=self.now_ms
        )
        return reduced

    async def figures(self) -> Figures:
        figures: Figures = await self.scripts.figures(
            self.ref, list(self.variants), now_ms=self.now_ms
        )
        return figures

    async def stock(self, variant: str) -> VariantFigures:
        return (await self.figures()).variants[self.variants.index(variant)]

    # ------------------------------------------------------------ looking inside

    def key(self, name: str, suffix: str = "") -> str:
        return sale_key(self.ref.id, self.ref.epoch, name) + suffix

    async def returned(self, variant: str) -> list[int]:
        """The serials that came back and wait to be taken again."""
        raw = await self.scripts.store.redis.lrange(self.key("ret", f":{variant}"), 0, -1)
        return [int(serial) for serial in raw]

    async def holds(self) -> dict[str, HoldContent]:
        return unpack_holds(await self.scripts.store.redis.hgetall(self.key("holds")))

    async def keys_in_store(self) -> list[bytes]:
        """Every key of this sale at its epoch, for tests that compare before and after."""
        found = self.scripts.store.redis.scan_iter(match=f"{self.key('cfg')[:-3]}*", count=1_000)
        return sorted([key async for key in found])

    async def lose(self) -> None:
        """What a store that was flushed or failed over knows of the sale: nothing."""
        keys = await self.keys_in_store()
        if keys:
            await self.scripts.store.redis.delete(*keys)
