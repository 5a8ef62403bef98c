"""The pure part of the audit: what the store has of a sale against what the database has."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fairdrop.checkout.model import order_of_hold
from fairdrop.checkout.rules import HoldEnding, OrderState, end_hold

from .model import Difference, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

FREE, HELD, SOLD, RETIRED = 1, 2, 4, 8
_WORDS = {FREE: "free", HELD: "held", SOLD: "sold", RETIRED: "out of sale"}
LIVE = ("RESERVED", "PAYMENT_PENDING")
REPORTED = 100
"""Serials of one variant and kind that are named; a broken store may have millions."""


class Hold(NamedTuple):
    """A hold as the store has it; units as (variant, serial)."""

    id: str
    deadline_ms: int
    units: frozenset[tuple[str, int]]

    @property
    def order(self) -> str:
        """The id of the order that decides about it, if there is one yet."""
        return order_of_hold(self.id)[0]

    @property
    def is_late(self) -> bool:
        """Whether it holds units taken anew for money that came late (O7)."""
        return order_of_hold(self.id)[1]


class OrderOfHold(NamedTuple):
    """What a hold's order says."""

    state: str


class StoredStock(NamedTuple):
    """A variant as the store has it: counts, the range of serials never issued, those returned."""

    quantity: int
    held: int
    sold: int
    next_serial: int
    last_serial: int
    returned: list[int]

    @property
    def free(self) -> int:
        """Units that can be taken."""
        return max(0, self.last_serial - self.next_serial + 1) + len(self.returned)


class KnownVariant(NamedTuple):
    """A variant as the database has it."""

    id: str
    quantity: int
    last_serial: int
    retired: list[int]


class Unit(NamedTuple):
    """A unit row of an order; ``state`` is HELD or SOLD."""

    serial: int
    order: str
    state: str


class Serials:
    """Where every serial of one variant is: a byte for each, so that millions fit."""

    def __init__(self, sale: str, variant: str, last_serial: int) -> None:
        """Nothing is anywhere yet."""
        self._subject = (("sale", sale), ("variant", variant))
        self._marks = bytearray(last_serial + 1)
        self._told: dict[Kind, int] = {}
        self.differences: list[Difference] = []

    def put(self, serial: int, place: int) -> None:
        """The store has the serial there, or the catalogue has it out of sale; in one place only."""
        before = self._mark(serial, place)
        if before:
            self._tell(Kind.SERIAL_TWICE, serial, _places(before), f"also {_WORDS[place]}")

    def put_range(self, first: int, last: int, place: int) -> None:
        """All serials from first to last, which are nowhere yet, are there."""
        made = len(self._marks) - 1
        if last > made:
            self._tell(Kind.SERIAL_UNKNOWN, last, f"serials up to {made}", _WORDS[place])
        first, last = max(1, first), min(last, made)
        if first <= last:
            self._marks[first : last + 1] = bytes([place]) * (last - first + 1)

    def row(self, unit: Unit, *, in_its_hold: bool) -> None:
        """An order has the serial: the store must not give it to anybody else, nor hold it for them.

        Whether the order's hold has all of its units is the holds' check.
        """
        place = SOLD if unit.state == "SOLD" else HELD
        before = self._mark(unit.serial, place)
        if before & (FREE | RETIRED):
            found = f"also {_WORDS[place]}, by order {unit.order}"
            self._tell(Kind.FREE_UNIT_TAKEN, unit.serial, _places(before), found)
        elif before & HELD and not in_its_hold:
            found = f"{_WORDS[place]}, by order {unit.order}"
            self._tell(Kind.SERIAL_TWICE, unit.serial, "held for somebody else", found)

    def _mark(self, serial: int, place: int) -> int:
        """Note the place; the places where the serial was before."""
        if not 0 < serial < len(self._marks):
            made = len(self._marks) - 1
            self._tell(Kind.SERIAL_UNKNOWN, serial, f"serials up to {made}", _WORDS[place])
            return 0
        before = self._marks[serial]
        self._marks[serial] = before | place
        return before

    def lost(self) -> None:
        """Tell of the serials that are nowhere: nobody has them and nobody can buy them."""
        at = self._marks.find(0, 1)
        while at != -1:
            self._tell(Kind.SERIAL_LOST, at, "free, held, sold or out of sale", "nowhere")
            if self._told[Kind.SERIAL_LOST] > REPORTED:
                return
            at = self._marks.find(0, at + 1)

    def _tell(self, kind: Kind, serial: int, expected: str, found: str) -> None:
        self._told[kind] = self._told.get(kind, 0) + 1
        if self._told[kind] <= REPORTED:
            subject = (*self._subject, ("serial", str(serial)))
            self.differences.append(Difference(kind, subject, expected, found))


def _places(marks: int) -> str:
    return " and ".join(word for place, word in _WORDS.items() if marks & place)


def check_counts(
    sale: str, variant: KnownVariant, stock: StoredStock, in_holds: int
) -> Iterator[Difference]:
    """The counts of one variant against one another, the holds and the database."""
    subject = (("sale", sale), ("variant", variant.id))
    total = stock.free + stock.held + stock.sold
    if total != stock.quantity:
        yield Difference(
            Kind.STOCK_SUM,
            subject,
            f"free + held + sold = {stock.quantity}",
            f"{stock.free} + {stock.held} + {stock.sold} = {total}",
        )
    if stock.quantity != variant.quantity:
        yield Difference(
            Kind.STOCK_QUANTITY,
            subject,
            f"{variant.quantity} units, as in the database",
            f"{stock.quantity} in the store",
        )
    if in_holds != stock.held:
        yield Difference(
            Kind.STOCK_HELD, subject, f"{in_holds} held, as the holds say", str(stock.held)
        )


def check_sold(
    sale: str, variant: str, stock: StoredStock, sold: int, not_told: int
) -> Iterator[Difference]:
    """Units sold: what the database says, without those that the store has yet to be told of."""
    if stock.sold != sold - not_told:
        waiting = f" ({not_told} more to be told)" if not_told else ""
        yield Difference(
            Kind.STOCK_SOLD,
            (("sale", sale), ("variant", variant)),
            f"{sold - not_told} sold, as in the database{waiting}",
            f"{stock.sold} in the store",
        )


def check_hold(
    sale: str,
    hold: Hold,
    order: OrderOfHold | None,
    units: Mapping[str, set[tuple[str, int]]],
    overdue_before_ms: int,
) -> Iterator[Difference]:
    """One hold against its order, None when there is none; ``units`` are its unit rows by state.

    What the order says is to become of the hold may wait until the hold's deadline and a sweep have
    passed: the store follows.
    """
    subject = (("sale", sale), ("hold", hold.id))
    overdue = hold.deadline_ms < overdue_before_ms
    sold = units.get("SOLD", set())
    ending = HoldEnding.FREE
    if order is not None:
        all_sold = bool(hold.units) and hold.units <= sold
        ending = end_hold(OrderState(order.state), sold=all_sold, late_hold=hold.is_late)
    if ending is HoldEnding.EXTEND:
        rows = units.get("HELD", set())
        if rows != hold.units:
            expected = f"the units of the order: {_units(rows)}"
            yield Difference(Kind.HOLD_DIFFERS, subject, expected, _units(hold.units))
            return
    if overdue and ending is not HoldEnding.EXTEND:
        expected = "sold" if ending is HoldEnding.COMMIT else "released at its deadline"
        found = "held, and no order" if order is None else f"held, and the order {order.state}"
        yield Difference(Kind.HOLD_OVERDUE, subject, expected, found)


def _units(units: Iterable[tuple[str, int]]) -> str:
    return ", ".join(f"{variant} {serial}" for variant, serial in sorted(units)) or "none"
