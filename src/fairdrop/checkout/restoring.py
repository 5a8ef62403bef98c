"""Receipts that come back after the store lost the line: the crowd is the backup (W15).

What a receipt says was signed by us, so it is true of the epoch that it names. What it cannot say is
what happened to the place since: that the admission was used up is in the database, that the buyer
has units is in the store, which was filled from the database. Everything else is decided by one
script, which gives each place back once, and never more than the cap of people inside.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from fairdrop.batching import Batcher
from fairdrop.drivers.database import Queries
from fairdrop.waiting_room import EntryReceipt, PositionReceipt, Presented, RestoreOutcome

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from fairdrop.catalog import Sale
    from fairdrop.drivers.database import Database
    from fairdrop.waiting_room import Admission, AdmissionTokens, Receipts, WaitingRoom

SQL = Queries("fairdrop.checkout", "restoring")


class ReceiptRefusal(StrEnum):
    """Why a receipt proves nothing here; each is the ``code`` of the answer."""

    FORGED = "receipt_forged"
    OTHER_SALE = "receipt_other_sale"
    OTHER_VISITOR = "receipt_other_visitor"
    VOID = "receipt_void"
    OF_LOBBY = "receipt_of_lobby"


class _Used(NamedTuple):
    """What the database knows of an admission."""

    over: bool
    order: str | None
    """The order under way that it has."""


class Restoration:
    """Takes receipts. Any number of processes may do so side by side."""

    def __init__(
        self,
        database: Database,
        waiting_room: WaitingRoom,
        receipts: Receipts,
        admissions: AdmissionTokens,
        drawn_place: Callable[[str, str], Awaitable[int | None]],
    ) -> None:
        """Take the database, the line, and what reads the proofs.

        ``drawn_place`` says which position the draw of a sale gave to an entry id; None before it
        is drawn, and for an entry that was not in it.
        """
        self._drawn_place = drawn_place
        self._database = database
        self._waiting_room = waiting_room
        self._receipts = receipts
        self._admissions = admissions
        self._look_up: Batcher[tuple[str, str], _Used] = Batcher(
            "admissions_used", self._used, max_batch=256
        )

    async def present(
        self, sale: Sale, visitor: str, receipt: str, token: str, *, now_s: float
    ) -> RestoreOutcome | ReceiptRefusal:
        """Give the visitor back what the receipt proves, and the token if they were inside.

        A token that is over, or proves nothing, counts for nothing: the place in the line is kept.
        Raises StoreUnavailable, DatabaseUnavailable or Overloaded. Costs a share of a batch of the
        script, and with a token a share of a query.
        """
        place = self._proved(sale, visitor, receipt)
        if isinstance(place, EntryReceipt):
            place = await self._drawn(sale, place)
        if isinstance(place, ReceiptRefusal):
            return place
        if place.epoch >= sale.epoch:
            return RestoreOutcome.HAS_PLACE
        presented = Presented(visitor, place.position)
        admission = self._alive(sale, visitor, token, now_s)
        if admission is not None:
            used = await self._look_up.submit((sale.id, admission.jti))
            if used.over:
                return RestoreOutcome.PLACE_USED
            presented = Presented(
                visitor,
                place.position,
                admission.jti,
                admission.iat,
                admission.exp * 1_000,
                used.order or False,
            )
        return await self._waiting_room.restore(sale.ref, presented)

    async def _drawn(self, sale: Sale, receipt: EntryReceipt) -> PositionReceipt | ReceiptRefusal:
        """A receipt of the lobby is one of the place that was drawn, once the store lost both."""
        position = None
        if receipt.epoch < sale.epoch:
            position = await self._drawn_place(sale.id, receipt.entry)
        if position is None:
            return ReceiptRefusal.OF_LOBBY
        return PositionReceipt(receipt.sale, receipt.visitor, receipt.epoch, position)

    def _proved(
        self, sale: Sale, visitor: str, text: str
    ) -> PositionReceipt | EntryReceipt | ReceiptRefusal:
        receipt = self._receipts.read(text)
        if receipt is None:
            return ReceiptRefusal.FORGED
        if receipt.sale != sale.id:
            return ReceiptRefusal.OTHER_SALE
        if receipt.visitor != visitor:
            return ReceiptRefusal.OTHER_VISITOR
        if receipt.epoch < sale.receipts_from:
            return ReceiptRefusal.VOID
        return receipt

    def _alive(self, sale: Sale, visitor: str, token: str, now_s: float) -> Admission | None:
        verified = self._admissions.verify(token, sale=sale.id, buyer=visitor, now_s=now_s)
        if isinstance(verified, StrEnum) or verified.epoch < sale.receipts_from:
            return None
        return verified

    async def _used(self, items: Sequence[tuple[str, str]]) -> list[_Used]:
        async with self._database.connection() as connection:
            rows = await connection.fetch(
                SQL["admissions_used"],
                [UUID(sale) for sale, _ in items],
                [admission for _, admission in items],
            )
        return [_Used(row["over"], row["order_id"]) for row in rows]
