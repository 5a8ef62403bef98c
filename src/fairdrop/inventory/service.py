"""The inventory's use cases: reserve, change, start, release, commit, expire, and the stock itself."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from fairdrop.drivers.sale_scripts import CoalescedScript, SaleScript

from .model import (
    Change,
    Changed,
    ChangeRequest,
    CommitOutcome,
    Committed,
    Expired,
    Extended,
    ExtendOutcome,
    Figures,
    GivenBack,
    HoldLoad,
    Lines,
    Loaded,
    Reduced,
    Release,
    Released,
    Reservation,
    Reserved,
    ReserveRequest,
    Start,
    Started,
    VariantLoad,
)

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping, Sequence

    from fairdrop.drivers.store import Store
    from fairdrop.ids import SaleRef

_PACKAGE = "fairdrop.inventory"
SWEEP_LIMIT = 80
"""Holds looked at in one run of ``expire``: about 0.7 ms of the store's time (case 37)."""
SWEEP_UNITS = 2_000
"""Units freed in one run of ``expire``: holds of many units each cost no more (case 37)."""
RESERVE_LIMIT = 40
"""Reservations of one script call: the 99th percentile of its time was 0.8 to 1.0 ms at 20,000 a second,
on two cores with everything else running (case 37)."""
COMMIT_LIMIT = 256
"""Holds committed in one run of ``commit``: well under 1 ms of the store's time (case 37)."""
LOOK_AGAIN_MS = 3_000
"""How long an undecided hold is left to the worker that was told of it."""


class Inventory:
    """The stock of every sale. Calls are coalesced; each raises StoreUnavailable (W14)."""

    def __init__(self, store: Store) -> None:
        """Load the scripts; nothing is sent yet."""
        self._reserve: CoalescedScript[ReserveRequest, Reservation] = CoalescedScript(
            SaleScript(store, _PACKAGE, "reserve", Reserved),
            lambda reply: reply.outcomes,
            max_batch=RESERVE_LIMIT,
        )
        self._change: CoalescedScript[ChangeRequest, Change] = CoalescedScript(
            SaleScript(store, _PACKAGE, "change", Changed), lambda reply: reply.outcomes
        )
        self._start: CoalescedScript[tuple[str, str, Sequence[str]], Start] = CoalescedScript(
            SaleScript(store, _PACKAGE, "start", Started),
            lambda reply: reply.outcomes,
            max_in_flight=1,
        )
        self._release: CoalescedScript[tuple[str, str | None, list[str | int]], Release] = (
            CoalescedScript(
                SaleScript(store, _PACKAGE, "release", Released), lambda reply: reply.outcomes
            )
        )
        self._commit_many = SaleScript(store, _PACKAGE, "commit", Committed)
        self._commit: CoalescedScript[str, CommitOutcome] = CoalescedScript(
            self._commit_many, lambda reply: reply.outcomes, max_batch=COMMIT_LIMIT
        )
        self._extend: CoalescedScript[tuple[str, int], ExtendOutcome] = CoalescedScript(
            SaleScript(store, _PACKAGE, "extend", Extended), lambda reply: reply.outcomes
        )
        self._expire = SaleScript(store, _PACKAGE, "expire", Expired)
        self._load = SaleScript(store, _PACKAGE, "load", Loaded)
        self._reduce = SaleScript(store, _PACKAGE, "reduce", Reduced)
        self._give_back = SaleScript(store, _PACKAGE, "give_back", GivenBack)
        self._figures = SaleScript(store, _PACKAGE, "figures", Figures)

    def reserve(self, sale: SaleRef, request: ReserveRequest) -> asyncio.Future[Reservation]:
        """Check and take, all or nothing, for one admission (H1, H3, H6)."""
        return self._reserve.submit(sale, request)

    def take_late(
        self, sale: SaleRef, buyer: str, order: str, quantities: Mapping[str, int]
    ) -> asyncio.Future[Reservation]:
        """Take new units for an order whose money came late (O7); idempotent by the order's id."""
        lines: list[str | int] = [part for line in quantities.items() for part in line]
        return self._reserve.submit(sale, ReserveRequest(buyer, None, order, "", "", lines))

    def change(self, sale: SaleRef, request: ChangeRequest) -> asyncio.Future[Change]:
        """Have other quantities in a reservation, all or nothing, until the same deadline (H4, H5)."""
        return self._change.submit(sale, request)

    def start(
        self, sale: SaleRef, hold: str, buyer: str, verified: Sequence[str] = ()
    ) -> asyncio.Future[Start]:
        """Hand the hold over to its order: from here the order's row decides (H7).

        ``verified`` are marks that checkout adds to those of the reservation (H6).
        """
        return self._start.submit(sale, (hold, buyer, verified))

    def release(self, sale: SaleRef, hold: str, buyer: str) -> asyncio.Future[Release]:
        """Give a buyer's hold back, as long as no checkout has begun (H5)."""
        return self._release.submit(sale, (hold, buyer, []))

    def free(
        self, sale: SaleRef, hold: str, lost: list[str | int] | None = None
    ) -> asyncio.Future[Release]:
        """Give back the units of a hold whose order's row says that they are free (H7).

        ``lost`` alternates variants and serials which turned out to be another order's (H8).
        """
        return self._release.submit(sale, (hold, None, lost or []))

    def commit(self, sale: SaleRef, hold: str) -> asyncio.Future[CommitOutcome]:
        """What the hold held is sold."""
        return self._commit.submit(sale, hold)

    async def commit_many(self, sale: SaleRef, holds: Sequence[str]) -> None:
        """The same for a caller that has many at hand, without the cost of a future each."""
        for at in range(0, len(holds), COMMIT_LIMIT):
            await self._commit_many(sale, holds[at : at + COMMIT_LIMIT])

    def extend(self, sale: SaleRef, hold: str, deadline_ms: int) -> asyncio.Future[ExtendOutcome]:
        """Follow the order's deadline, which has moved (H4)."""
        return self._extend.submit(sale, (hold, deadline_ms))

    async def expire(self, sale: SaleRef, *, now_ms: int = 0) -> Expired:
        """One bounded sweep; safe to run in any number of places at once (H4)."""
        return await self._expire(sale, [SWEEP_LIMIT, LOOK_AGAIN_MS, SWEEP_UNITS], now_ms=now_ms)

    async def load(  # noqa: PLR0913 - the whole state of a sale
        self,
        sale: SaleRef,
        version: int,
        config: Mapping[str, str | int],
        variants: Sequence[VariantLoad],
        *,
        holds: Sequence[HoldLoad] = (),
        bought: Mapping[str, int] | None = None,
        line: tuple[int, int, int] = (0, 0, 0),
    ) -> Loaded:
        """Write a sale into the store, or bring it up to date; repeating it changes nothing.

        ``line`` is the position that the line goes on behind, the one served last, and for how many
        milliseconds nobody is called, since a lost line is being restored (W15).
        """
        return await self._load(
            sale,
            [version, dict(config), list(variants), list(holds), dict(bought or {}), list(line)],
        )

    async def reduce(self, sale: SaleRef, variant: str, units: int, key: str) -> Reduced:
        """Take free units out of sale, never held or sold ones; with the same key once (H9).

        Raises ValueError for less than one unit: more stock comes by :meth:`load`.
        """
        if units < 1:
            raise ValueError("stock is reduced by at least one unit")
        return await self._reduce(sale, [variant, units, key])

    async def give_back(self, sale: SaleRef, refund: str, buyer: str, lines: Lines) -> GivenBack:
        """Units that were sold to the buyer are free again (O9); once, by the refund's id."""
        return await self._give_back(sale, [refund, buyer, lines])

    async def figures(self, sale: SaleRef, variants: Sequence[str]) -> Figures:
        """The live figures, in one read (H10)."""
        return await self._figures(sale, list(variants))


def fingerprint(body: bytes) -> str:
    """What tells two requests with one idempotency key apart: the body, in short.

    Text, because msgpack in the store's Lua does not know the type for bytes.
    """
    return hashlib.blake2b(body, digest_size=12).hexdigest()
