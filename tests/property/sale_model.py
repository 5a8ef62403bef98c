"""A sale as it should be, holds, orders and money: no database, no store, none of our rules.

One sale, one kind of unit, buyers with one admission each. The database decides at once; the store
is a second book that follows (``in_store``), or does not, if a process died before telling it; it
may also lose everything, and is then filled from the database. The gateway is a third (``intent``).
Read :class:`World` from top to bottom: first what buyers do, then the bank, then our workers, then
refunds, then the books.
"""

from __future__ import annotations

from dataclasses import dataclass, field

RETRIES = 2
"""Declines that end an order."""

ALIVE = ("RESERVED", "PAYMENT_PENDING")
GIVEN_UP = ("EXPIRED", "PAYMENT_FAILED")
DEAD = (*GIVEN_UP, "CANCELLED")


@dataclass
class Purchase:
    """What became of one reservation."""

    buyer: str
    units: int
    visit: int = 0
    """Which of the buyer's admissions it was: a store that is lost takes them all with it."""
    state: str = "HELD"
    """HELD: a reservation, without an order yet. LOST: its time was over, or it was refused."""
    in_store: bool = True
    """The store still holds its units."""
    overdue: bool = False
    declines: int = 0
    intent: str = "NONE"
    """At the gateway: NONE, OPEN, ASIDE (agreed to, and not taken yet), PAID, WITHDRAWN."""
    secured: bool = False
    """We know that the money is set aside, and keep the units until it is taken."""
    counted: bool = False
    """We know of the money."""
    owns: bool = False
    """Its units are sold to it, whatever becomes of the money later."""
    bought_late: bool = False
    refund: str = "NONE"
    """The one on its way: NONE, DUE, PAID (at the gateway)."""
    owed_minor: int = 0
    """What is on its way back."""
    back_minor: int = 0
    """What has gone back, and we know of it."""
    refunded_units: int = 0
    """Units whose money went back as theirs."""
    returned: int = 0
    """Of these, units that are on sale again."""
    untold: int = 0
    """Of these, units that the store has not heard of."""


@dataclass
class World:
    """One sale. Each step returns the answer that its caller should get, if there is one."""

    quantity: int
    total_minor: int
    """What a unit costs, with its fee."""
    manual: bool = False
    """The bank sets money aside, and takes it when the units are secured (O4)."""
    sold: int = 0
    """In the store."""
    visit: int = 0
    purchases: list[Purchase] = field(default_factory=list)
    inbox: list[tuple[str, Purchase]] = field(default_factory=list)
    """What the gateway has told and nobody has settled, in order."""
    used_up: set[str] = field(default_factory=set)
    """Buyers whose admission has ended with a confirmed order; all others are inside (W13)."""

    def held(self) -> int:
        return sum(purchase.units for purchase in self.purchases if purchase.in_store)

    def free(self) -> int:
        return self.quantity - self.held() - self.sold

    # ------------------------------------------------------------ buyers

    def reserve(self, buyer: str, units: int) -> str:
        """One admission holds one thing at a time, and nothing after its order is confirmed."""
        if buyer in self.used_up:
            return "NOT_ADMITTED"
        before = [one for one in self.purchases if (one.buyer, one.visit) == (buyer, self.visit)]
        if any(one.in_store for one in before):
            return "ALREADY_RESERVED"
        if units > self.free():
            return "SOLD_OUT"
        self.purchases.append(Purchase(buyer, units, self.visit))
        return "RESERVED"

    def release(self, one: Purchase) -> str:
        """Units can be given back until checkout has begun (H5)."""
        if not one.in_store:
            return "NOTHING_HELD"
        if one.state != "HELD":
            return "ORDER_STARTED"
        one.state, one.in_store = "LOST", False
        return "RELEASED"

    def start(self, one: Purchase) -> str:
        """One admission, one order that is alive or confirmed (W13)."""
        if one.state == "LOST":
            return "no_reservation"
        if one.state == "HELD":
            if self.began_anew(one):
                one.state, one.in_store = "LOST", False
                return "already_ordered"
            one.state, one.overdue = "RESERVED", False
        return one.state

    def began_anew(self, one: Purchase) -> bool:
        return any(
            other.state in (*ALIVE, "CONFIRMED")
            for other in self.purchases
            if other is not one and (other.buyer, other.visit) == (one.buyer, one.visit)
        )

    def pay(self, one: Purchase, gateway: str) -> str:
        """``gateway``: well, deaf (never hears of it), or mute (hears, and cannot answer)."""
        if one.state in ("HELD", "LOST"):
            return "no_order"
        if one.state == "RESERVED" and not one.overdue:
            one.state = "PAYMENT_PENDING"
        if one.state != "PAYMENT_PENDING":
            return "order_not_payable"
        return self._open(one, gateway)

    def _open(self, one: Purchase, gateway: str) -> str:
        if one.intent == "NONE" and gateway != "deaf":
            one.intent = "OPEN"
        return one.state

    def cancel(self, one: Purchase, *, store_hears: bool) -> str:
        if one.state in ("HELD", "LOST"):
            return "no_order"
        if one.state in ALIVE and not one.secured:
            one.state = "CANCELLED"
        if one.state != "CANCELLED":
            return "order_not_cancellable"
        if store_hears:
            one.in_store = False
        return one.state

    # ------------------------------------------------------------ the bank

    def agree(self, one: Purchase) -> str | None:
        """The buyer pays: the bank takes the money, or sets it aside, once. What there is to tell."""
        if one.intent == "OPEN":
            one.intent = "ASIDE" if self.manual else "PAID"
        return {"ASIDE": "authorised", "PAID": "success"}.get(one.intent)

    def tell(self, kind: str, one: Purchase) -> None:
        """A webhook: authorised, success, decline or refund; as often as the gateway likes."""
        self.inbox.append((kind, one))

    # ------------------------------------------------------------ workers

    def settle(self, *, store_hears: bool) -> None:
        """Everything that was told, in order. Late money waits until the rest is done, and is
        left for the next time by a process that dies."""
        late: list[Purchase] = []
        waiting: list[tuple[str, Purchase]] = []
        for kind, one in self.inbox:
            if kind == "decline":
                self._decline(one, store_hears=store_hears)
            elif kind == "refund":
                self._refund_is_back(one)
            elif kind == "authorised":
                self._secure(one)
            elif one.counted:
                pass
            elif one.state in ALIVE:
                self._confirm(one, store_hears=store_hears)
            elif one.state in GIVEN_UP:
                waiting.append((kind, one))
                late += [one] if one not in late else []
            else:
                self._return_money(one)
                one.in_store = one.in_store and not store_hears
        self.inbox = waiting
        if store_hears:
            self.inbox = []
            self._settle_late(late)

    def _secure(self, one: Purchase) -> None:
        """The deadline is days away from now on. For an order that is over it is too late."""
        if one.state in ALIVE and not one.secured:
            one.state, one.secured, one.overdue = "PAYMENT_PENDING", True, False

    def _confirm(self, one: Purchase, *, store_hears: bool) -> None:
        one.state, one.counted, one.owns = "CONFIRMED", True, True
        if store_hears:
            self._sell(one)

    def _sell(self, one: Purchase) -> None:
        one.in_store = False
        self.sold += one.units
        self._use_up(one)

    def _use_up(self, one: Purchase) -> None:
        if one.visit == self.visit:
            self.used_up.add(one.buyer)

    def _decline(self, one: Purchase, *, store_hears: bool) -> None:
        if one.state != "PAYMENT_PENDING" or one.counted or one.secured:
            return
        one.declines += 1
        if one.declines == RETRIES:
            one.state = "PAYMENT_FAILED"
            one.in_store = one.in_store and not store_hears

    def _return_money(self, one: Purchase) -> None:
        one.state, one.counted, one.refund = "REFUND_PENDING", True, "DUE"
        one.owed_minor = one.units * self.total_minor

    def _settle_late(self, late: list[Purchase]) -> None:
        """New units for the oldest payment first; its old ones go back afterwards (O7)."""
        left = self.free()
        for one in late:
            if not self.began_anew(one) and one.units <= left:
                left -= one.units
                one.state, one.counted = "CONFIRMED", True
                one.owns = one.bought_late = True
                self.sold += one.units
                self._use_up(one)
            else:
                self._return_money(one)
        for one in late:
            one.in_store = False

    def sweep(self, *, store_hears: bool) -> None:
        """Rows first. The store then learns everything that it has not heard of yet."""
        for one in self.purchases:
            if one.overdue and one.state in ALIVE:
                one.state = "EXPIRED"
        if store_hears:
            self.tell_the_store()

    def tell_the_store(self) -> None:
        for one in self.purchases:
            if one.state == "HELD" and one.overdue:
                one.state, one.in_store = "LOST", False
            elif one.in_store and one.owns and not one.bought_late:
                self._sell(one)
            elif one.state not in (*ALIVE, "HELD"):
                one.in_store = False
            self._put_on_sale(one, one.untold)

    def ask_gateway(self) -> None:
        """Intents of dead orders are withdrawn, what is set aside for secured units is taken, and
        what nobody told of is told now."""
        for one in self.purchases:
            if one.intent in ("OPEN", "ASIDE") and one.state in DEAD:
                one.intent = "WITHDRAWN"
            if one.intent == "ASIDE" and one.secured:
                one.intent = "PAID"
            if one.intent == "ASIDE":
                self.tell("authorised", one)
            if one.intent == "PAID" and not one.counted:
                self.tell("success", one)

    def lose_store(self) -> None:
        """The store forgets everything, and is filled from the rows (H8). Who only held something has
        lost it; orders have their units, also those that it had not heard of. All come in again."""
        for one in self.purchases:
            if one.state == "HELD":
                one.state = "LOST"
            one.in_store, one.untold = one.state in ALIVE, 0
        self.sold = sum(one.units - one.returned for one in self.purchases if one.owns)
        self.visit += 1
        self.used_up = set()

    # ------------------------------------------------------------ refunds

    def give_back(self, one: Purchase, what: str | int, *, to_pool: bool, store_hears: bool) -> str:
        """An operator returns money: ``all`` that is left, that of one ``unit``, or an amount (O9).
        The units stay with the order unless they are put on sale again."""
        if one.state == "REFUND_PENDING":
            return "refund_under_way"
        if one.state not in ("CONFIRMED", "PARTIALLY_REFUNDED"):
            return "order_not_refundable"
        if what == "unit" and one.refunded_units == one.units:
            return "refund_unit_unknown"
        left = one.units * self.total_minor - one.back_minor
        units, owed = {
            "all": (one.units - one.refunded_units, left),
            "unit": (1, self.total_minor),
        }.get(str(what), (0, what))
        assert isinstance(owed, int)
        if owed > left:
            return "refund_too_much"
        one.state, one.refund, one.owed_minor = "REFUND_PENDING", "DUE", owed
        one.refunded_units += units
        if to_pool:
            one.returned += units
            one.untold += units
            if store_hears:
                self._put_on_sale(one, units)
        return "granted"

    def _put_on_sale(self, one: Purchase, units: int) -> None:
        """The store is told of units that are free again; first that they were sold at all."""
        if units and one.in_store:
            self._sell(one)
        self.sold -= units
        one.untold -= units

    def pay_refunds(self, *, gateway_answers: bool) -> None:
        """Each goes back once, however often the gateway has to be asked before it answers."""
        for one in self.purchases:
            if one.refund in ("DUE", "PAID"):
                one.refund = "PAID"
                if gateway_answers:
                    self.tell("refund", one)

    def _refund_is_back(self, one: Purchase) -> None:
        if one.refund != "PAID":
            return  # told before; what is on its way now is another refund
        one.back_minor += one.owed_minor
        one.refund, one.owed_minor = "NONE", 0
        whole = one.back_minor == one.units * self.total_minor
        one.state = "REFUNDED" if whole else "PARTIALLY_REFUNDED"

    # ------------------------------------------------------------ what the books should say

    def units_of_orders(self) -> int:
        """Rows of units: those of orders that are alive, and those that are sold."""
        return sum(
            one.units - one.returned for one in self.purchases if one.owns or one.state in ALIVE
        )

    def books(self) -> dict[str, int]:
        """Debit less credit of each account."""
        sums = {"GATEWAY_CLEARING": 0, "REVENUE": 0, "REFUND_LIABILITY": 0}
        for one in self.purchases:
            kept = one.units * self.total_minor - one.back_minor if one.counted else 0
            sums["GATEWAY_CLEARING"] += kept
            sums["REVENUE"] -= kept - one.owed_minor
            sums["REFUND_LIABILITY"] -= one.owed_minor
        return sums
