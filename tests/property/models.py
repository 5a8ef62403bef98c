"""The line and the stock as one would explain them, without a store: plain sets and counters.

The scripts are right when, after any history, they say what these models say.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

PERSON = 1_000_000
"""One person in millionths, so that rate (in thousandths a second) x milliseconds is exact."""


@dataclass
class LineModel:
    """One waiting room. A visitor is in at most one of line, called, inside and missed."""

    rate_milli: int
    cap: int
    claim_ttl_ms: int
    lease_ttl_ms: int
    burst_ms: int = 1_000
    mode: str = "open"
    line: dict[str, int] = field(default_factory=dict)  # visitor -> position
    called: dict[str, tuple[int, int]] = field(default_factory=dict)  # position, claim deadline
    inside: dict[str, tuple[int, int, str]] = field(default_factory=dict)  # .., lease, admission
    missed: dict[str, int] = field(default_factory=dict)
    tail: int = 0
    served: int = 0
    left: int = 0
    done: int = 0
    fronted: int = 0
    fronted_new: int = 0  # of these, who had no place before
    revoked: dict[str, int] = field(default_factory=dict)  # admission -> the end of its lease
    bucket: int | None = None  # millionths of a person; full before the first tick
    refilled_ms: int = 0

    def join(self, visitor: str, now_ms: int) -> tuple[str, int, int]:
        """(state, position, rank)."""
        if visitor in self.inside and self.inside[visitor][1] <= now_ms:
            del self.inside[visitor]
            self.left += 1
        if visitor in self.called and self.called[visitor][1] <= now_ms:
            self.missed[visitor] = self.called.pop(visitor)[0]
        if visitor in self.missed and self.mode != "closed":
            self.line[visitor] = self.missed.pop(visitor)
        elif not self._somewhere(visitor) and self.mode in {"open", "paused"}:
            self.tail += 1
            self.line[visitor] = self.tail
        elif visitor in self.missed or not self._somewhere(visitor):
            return "CLOSED" if self.mode in {"closed", "draining"} else "NOT_ENTERED", 0, 0
        return self.status(visitor, now_ms)

    def status(self, visitor: str, now_ms: int) -> tuple[str, int, int]:
        """(state, position, rank). Admission is looked at first."""
        if visitor in self.inside and self.inside[visitor][1] > now_ms:
            return "ADMITTED", self.inside[visitor][0], 0
        if visitor in self.called:
            position, claim_by_ms = self.called[visitor]
            return "READY" if claim_by_ms > now_ms else "MISSED", position, 0
        if visitor in self.line:
            position = self.line[visitor]
            return "WAITING", position, sum(other < position for other in self.line.values())
        if visitor in self.missed:
            return "MISSED", self.missed[visitor], 0
        return "CLOSED" if self.mode in {"closed", "draining"} else "NOT_ENTERED", 0, 0

    def front(self, visitor: str, *, first: bool) -> str:
        """The outcome; places at the front have negative numbers, those of the first ones lower."""
        base = -2_000_000_000 if first else -1_000_000_000
        past_line = visitor in self.called or visitor in self.inside or visitor in self.missed
        if past_line or self.line.get(visitor, 1) < base + 1_000_000_000:
            return "UNCHANGED"
        if self.mode in {"closed", "draining"}:
            return "SHUT"
        self.fronted += 1
        self.fronted_new += visitor not in self.line
        self.line[visitor] = base + self.fronted
        return "PLACED"

    def claim(self, visitor: str, admission: str, now_ms: int) -> str:
        """The state after the claim; a claim changes something only for people who are called."""
        state, position, _ = self.status(visitor, now_ms)
        if state == "READY":
            del self.called[visitor]
            self.inside[visitor] = (position, now_ms + self.lease_ttl_ms, admission)
            return "ADMITTED"
        return "NOT_ENTERED" if state == "CLOSED" else state

    def leave(self, visitor: str, now_ms: int) -> bool:
        there = self._somewhere(visitor)
        self._revoke(visitor, now_ms)
        for place in (self.line, self.called, self.inside, self.missed):
            place.pop(visitor, None)
        self.left += there
        return there

    def _revoke(self, visitor: str, now_ms: int) -> None:
        """Whoever goes out before the lease ends leaves a token that is revoked (W12)."""
        _, lease, admission = self.inside.get(visitor, (0, 0, ""))
        if lease > now_ms:
            self.revoked[admission] = lease

    def complete(self, visitor: str, admission: str, now_ms: int) -> bool:
        if visitor in self.inside and self.inside[visitor][2] == admission:
            self._revoke(visitor, now_ms)
            del self.inside[visitor]
            self.done += 1
            return True
        return False

    def tick(self, now_ms: int, limit: int) -> tuple[int, int, int]:
        """(called, missed, lapsed)."""
        absent = _over({v: place[1] for v, place in self.called.items()}, now_ms)[:limit]
        for visitor in absent:
            self.missed[visitor] = self.called.pop(visitor)[0]
        lapsed = _over({v: place[1] for v, place in self.inside.items()}, now_ms)[:limit]
        for visitor in lapsed:
            del self.inside[visitor]
        self.left += len(lapsed)
        room = min(self._refill(now_ms), self.cap - len(self.called) - len(self.inside), limit)
        if self.mode not in {"open", "draining"}:
            room = 0
        next_up = sorted(self.line, key=self.line.__getitem__)[: max(0, room)]
        for visitor in next_up:
            position = self.line.pop(visitor)
            self.called[visitor] = (position, now_ms + self.claim_ttl_ms)
            self.served = max(self.served, position)
        if self.bucket is not None:
            self.bucket -= PERSON * len(next_up)
        return len(next_up), len(absent), len(lapsed)

    def counted(self) -> dict[str, int]:
        return {
            "waiting": len(self.line),
            "called": len(self.called),
            "active": len(self.inside),
            "missed": len(self.missed),
            "joined": self.tail + self.fronted_new,
            "left": self.left,
            "done": self.done,
            "served": self.served,
            "tail": self.tail,
        }

    def _refill(self, now_ms: int) -> int:
        """Whole people that may be called now."""
        size = max(self.rate_milli * self.burst_ms, PERSON) if self.rate_milli else 0
        if self.bucket is None:
            self.bucket = size
        else:
            self.bucket += self.rate_milli * max(0, now_ms - self.refilled_ms)
        self.bucket = min(self.bucket, size)
        self.refilled_ms = max(self.refilled_ms, now_ms)
        return self.bucket // PERSON

    def _somewhere(self, visitor: str) -> bool:
        places: tuple[dict[str, object], ...] = (self.line, self.called, self.inside, self.missed)  # type: ignore[assignment]
        return any(visitor in place for place in places)


def _over(deadlines: dict[str, int], now_ms: int) -> list[str]:
    """Whose deadline has passed, the earliest first."""
    passed = [visitor for visitor, deadline_ms in deadlines.items() if deadline_ms <= now_ms]
    return sorted(passed, key=lambda visitor: (deadlines[visitor], visitor))


@dataclass
class Hold:
    """Units set aside: variant -> serials. ``started``: its order's row decides."""

    buyer: str
    admission: str | None
    deadline_ms: int
    started: bool
    units: dict[str, set[int]]

    @property
    def size(self) -> int:
        return sum(len(serials) for serials in self.units.values())


@dataclass
class StockModel:
    """The stock of one sale. A serial is free, held, sold or retired, and nothing else."""

    order_limit: int
    buyer_limit: int
    hold_ttl_ms: int
    free: dict[str, set[int]] = field(default_factory=dict)
    sold: dict[str, set[int]] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    retired: dict[str, set[int]] = field(default_factory=dict)
    holds: dict[str, Hold] = field(default_factory=dict)
    owned: Counter[str] = field(default_factory=Counter)  # held and bought, by buyer
    current: dict[str, str] = field(default_factory=dict)  # buyer -> hold of the admission
    used_up: set[str] = field(default_factory=set)  # admissions whose order is confirmed

    def restock(self, variant: str, last: int) -> None:
        for serials in (self.free, self.sold, self.retired):
            serials.setdefault(variant, set())
        before = self.last.setdefault(variant, 0)
        self.free[variant].update(range(before + 1, last + 1))
        self.last[variant] = max(before, last)

    def reserve(self, buyer: str, admission: str, lines: dict[str, int], now_ms: int) -> str:
        """What the answer to a first request is; :meth:`take` then applies RESERVED."""
        hold = self.holds.get(self.current.get(buyer, ""))
        if admission in self.used_up:
            return "NOT_ADMITTED"
        if hold is not None and (hold.started or hold.deadline_ms > now_ms):
            return "ALREADY_RESERVED"
        if hold is not None:  # over, although no sweep has met it
            self._give_back(self.current[buyer])
        if sum(lines.values()) > self.order_limit:
            return "ORDER_LIMIT"
        if self.owned[buyer] + sum(lines.values()) > self.buyer_limit:
            return "BUYER_LIMIT"
        return self.late(lines)

    def late(self, lines: dict[str, int]) -> str:
        """What the shop's own taking for a late payment answers: only the stock counts."""
        short = any(len(self.free[variant]) < units for variant, units in lines.items())
        return "SOLD_OUT" if short else "RESERVED"

    def take(
        self, hold: str, buyer: str, admission: str | None, units: dict[str, set[int]], now_ms: int
    ) -> None:
        """The serials that the store chose: each must be free."""
        for variant, serials in units.items():
            assert serials <= self.free[variant], f"{serials} of {variant} are not all free"
            self.free[variant] -= serials
        self.holds[hold] = Hold(
            buyer, admission, now_ms + self.hold_ttl_ms, admission is None, units
        )
        self.owned[buyer] += self.holds[hold].size
        if admission is not None:
            self.current[buyer] = hold

    def start(self, hold: str, buyer: str, now_ms: int) -> str:
        held = self.holds.get(hold)
        if held is None or held.buyer != buyer:
            return "NO_HOLD"
        if not held.started and held.deadline_ms <= now_ms:
            return "EXPIRED"
        held.started = True
        return "STARTED"

    def release(self, hold: str, buyer: str | None) -> str:
        """By its buyer, or (without one) because its order's row has said so."""
        held = self.holds.get(hold)
        if held is None or buyer not in {None, held.buyer}:
            return "NOTHING_HELD"
        if buyer is not None and held.started:
            return "ORDER_STARTED"
        self._give_back(hold)
        return "RELEASED"

    def change(
        self, hold: str, buyer: str, wanted: dict[str, int], admission: str, now_ms: int
    ) -> str:
        """Whether the hold may have so many units; :meth:`have` then applies CHANGED."""
        held = self.holds.get(hold)
        if held is None or held.buyer != buyer:
            return "NOTHING_HELD"
        if held.started:
            return "ORDER_STARTED"
        if held.deadline_ms <= now_ms:
            return "EXPIRED"
        has = {variant: len(serials) for variant, serials in held.units.items()}
        after = {**has, **wanted}
        more = {v: n - has.get(v, 0) for v, n in after.items() if n > has.get(v, 0)}
        added = sum(after.values()) - held.size
        if more and admission != held.admission:
            return "NOT_ADMITTED"
        if more and added > 0 and held.size + added > self.order_limit:
            return "ORDER_LIMIT"
        if more and added > 0 and self.owned[buyer] + added > self.buyer_limit:
            return "BUYER_LIMIT"
        if any(len(self.free[variant]) < units for variant, units in more.items()):
            return "SOLD_OUT"
        if not sum(after.values()):
            self._give_back(hold)
            return "RELEASED"
        return "CHANGED"

    def have(self, hold: str, units: dict[str, set[int]]) -> None:
        """The serials that the store says the hold has now: what is new was free."""
        held = self.holds[hold]
        for variant in {*held.units, *units}:
            before, after = held.units.get(variant, set()), units.get(variant, set())
            assert after - before <= self.free[variant], "a unit that was not free"
            self.free[variant] -= after - before
            self.free[variant] |= before - after
            self.owned[held.buyer] += len(after) - len(before)
        held.units = units

    def commit(self, hold: str) -> str:
        held = self.holds.pop(hold, None)
        if held is None:
            return "NOTHING_HELD"
        for variant, serials in held.units.items():
            self.sold[variant] |= serials
        if self.current.get(held.buyer) == hold:
            del self.current[held.buyer]
            self.used_up.add(held.admission or "")
        return "COMMITTED"

    def extend(self, hold: str, deadline_ms: int) -> str:
        held = self.holds.get(hold)
        if held is None or not held.started:
            return "NO_HOLD"
        held.deadline_ms = max(held.deadline_ms, deadline_ms)
        return "EXTENDED"

    def expire(self, now_ms: int) -> int:
        """Ends what is over and has no order; returns how many holds that were."""
        over = [
            name
            for name, held in self.holds.items()
            if not held.started and held.deadline_ms <= now_ms
        ]
        for name in over:
            self._give_back(name)
        return len(over)

    def reduce(self, variant: str, retired: set[int]) -> None:
        assert retired <= self.free[variant], "only free units are taken out of sale"
        self.free[variant] -= retired
        self.retired[variant] |= retired

    def renew(self, buyer: str) -> None:
        """The buyer's admission has ended, and there is a new one."""
        self.current.pop(buyer, None)

    def _give_back(self, hold: str) -> None:
        held = self.holds.pop(hold)
        for variant, serials in held.units.items():
            self.free[variant] |= serials
        self.owned[held.buyer] -= held.size
        if self.current.get(held.buyer) == hold:
            del self.current[held.buyer]

    def figures(self, variant: str) -> tuple[int, int, int, int]:
        """(quantity, free, held, sold)."""
        held = sum(len(hold.units.get(variant, ())) for hold in self.holds.values())
        free, sold = len(self.free[variant]), len(self.sold[variant])
        quantity = self.last[variant] - len(self.retired[variant])
        assert free + held + sold == quantity
        return quantity, free, held, sold
