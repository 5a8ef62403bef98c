"""Orders as the database has them: rows that change in transactions, and units with a unique key.

Small enough to be right by reading. The real ones are tested where they live; here they stand for
"the row decides" while the store's scripts are under test.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Order:
    """A row. ``hold`` names the hold in the store whose units are this order's."""

    buyer: str
    state: str
    hold: str
    deadline_ms: int
    units: set[tuple[str, int]]


@dataclass
class Orders:
    """Every method is one transaction."""

    rows: dict[str, Order] = field(default_factory=dict)
    units: dict[tuple[str, int], str] = field(default_factory=dict)  # unique: unit -> order

    def insert(self, order: str, buyer: str, units: set[tuple[str, int]], deadline_ms: int) -> bool:
        """False if the row is there already: a replay, or a tombstone."""
        if order in self.rows:
            return False
        self._take(order, units)
        self.rows[order] = Order(buyer, "RESERVED", order, deadline_ms, units)
        return True

    def tombstone(self, order: str, buyer: str) -> Order:
        """The row; one that is over already if it was never written."""
        return self.rows.setdefault(order, Order(buyer, "EXPIRED", order, 0, set()))

    def expire(self, now_ms: int) -> list[str]:
        """Orders that end here; their units may go back."""
        over = [
            order
            for order, row in self.rows.items()
            if row.state == "RESERVED" and row.deadline_ms <= now_ms
        ]
        for order in over:
            self._end(order, "EXPIRED")
        return over

    def cancel(self, order: str) -> bool:
        row = self.rows.get(order)
        if row is None or row.state != "RESERVED":
            return False
        self._end(order, "CANCELLED")
        return True

    def extend(self, order: str, by_ms: int, now_ms: int) -> int | None:
        """Paying begins: the deadline moves. None if the order is over."""
        row = self.rows.get(order)
        if row is None or row.state != "RESERVED" or row.deadline_ms <= now_ms:
            return None
        row.deadline_ms += by_ms
        return row.deadline_ms

    def paid(self, order: str) -> str:
        """Money is there: CONFIRMED, or the state that it came too late for."""
        row = self.rows[order]
        if row.state == "RESERVED":
            row.state = "CONFIRMED"
        return row.state

    def paid_late(
        self, order: str, hold: str, units: set[tuple[str, int]], lease_ms: int, now_ms: int
    ) -> bool:
        """New units for an order that gave its own up, while the hold on them is good."""
        row = self.rows[order]
        if row.state != "EXPIRED" or lease_ms <= now_ms:
            return False
        self._take(order, units)
        row.state, row.hold, row.units = "CONFIRMED", hold, units
        return True

    def sold(self, variant: str) -> set[int]:
        return {
            serial
            for row in self.rows.values()
            if row.state == "CONFIRMED"
            for name, serial in row.units
            if name == variant
        }

    def _take(self, order: str, units: set[tuple[str, int]]) -> None:
        for unit in units:
            assert unit not in self.units, (
                f"{unit} would be sold twice: {self.units[unit]}, {order}"
            )
            self.units[unit] = order

    def _end(self, order: str, state: str) -> None:
        row = self.rows[order]
        row.state = state
        for unit in row.units:
            del self.units[unit]
        row.units = set()
