"""Random histories of buyers, bank, operator and workers, against a model of a sale (O8, H7).

After every step the states of all orders, the store's figures and the ledger are those of the
model. At the end everything that was put off is done: then every captured payment is a confirmed
order or a refund, and every unit is free or sold.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from unittest import mock

from hypothesis import example, given, note, settings
from hypothesis import strategies as st

from fairdrop import faults
from fairdrop.checkout import Order, RefundRefusal, Wanted
from fairdrop.checkout.settle import BATCH
from fairdrop.embedded import BackgroundServices
from fairdrop.errors import StoreUnavailable
from fairdrop.ids import new_id
from fairdrop.payments import GatewayUnavailable, IntentStatus
from tests.integration.checkout.scripted_gateway import ScriptedGateway
from tests.integration.checkout.shop import Shop, checkout_database, new_shop, shop_parts
from tests.property.sale_model import ALIVE, RETRIES, Purchase, World
from tests.property.searching import histories, on_the_store, pick

PRICE, TOTAL = 1_000, 1_100
UNITS = 4
BUYERS = ("ann", "bob", "cid", "dan")

Step = tuple[str, Any]
which = st.integers(0, 11)
hears = st.booleans()

steps = st.one_of(
    st.tuples(st.just("buy"), st.tuples(st.sampled_from(BUYERS), st.integers(1, 2))),
    st.tuples(st.just("reserve"), st.tuples(st.sampled_from(BUYERS), st.integers(1, 3))),
    st.tuples(st.just("start"), which),
    st.tuples(st.just("pay"), st.tuples(which, st.sampled_from(["well", "well", "deaf", "mute"]))),
    st.tuples(st.just("success"), st.tuples(which, st.integers(0, 2))),
    st.tuples(st.just("success"), st.tuples(which, st.integers(0, 2))),
    st.tuples(st.just("decline"), which),
    st.tuples(st.just("cancel"), st.tuples(which, hears)),
    st.tuples(st.sampled_from(["release", "give_back"]), which),
    st.tuples(st.just("deadline"), which),
    st.tuples(st.just("deadline"), which),
    st.tuples(st.sampled_from(["settle", "settle", "sweep"]), hears),
    st.tuples(st.sampled_from(["ask", "die_settling"]), st.none()),
    st.tuples(st.just("refund"), hears),
)


class Died(BaseException):
    """What no handler of ours may catch: the process is gone."""


class History:
    """The real shop and the model, side by side."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.world = World(UNITS)
        self.holds: list[str] = []

    def one_of(self, number: int) -> list[tuple[str, Purchase]]:
        return pick(list(zip(self.holds, self.world.purchases, strict=True)), number)

    def hold_of(self, purchase: Purchase) -> str:
        at = next(i for i, one in enumerate(self.world.purchases) if one is purchase)
        return self.holds[at]

    async def step(self, kind: str, what: Any) -> None:
        if kind in ("buy", "reserve"):
            await self.reserve(*what, order=kind == "buy")
        elif kind in ("settle", "sweep"):
            await getattr(self, kind)(store_hears=what)
        elif kind in ("ask", "die_settling"):
            await getattr(self, kind)()
        elif kind == "refund":
            await self.refund(gateway_answers=what)
        else:
            number, *more = what if isinstance(what, tuple) else (what,)
            for hold, purchase in self.one_of(number):
                await getattr(self, kind)(hold, purchase, *more)
        await self.compare()

    # ------------------------------------------------------------ steps

    async def reserve(self, buyer: str, units: int, *, order: bool) -> None:
        answer = await self.shop.try_reserve(buyer, units)
        assert answer.outcome == self.world.reserve(buyer, units)
        if answer.outcome == "RESERVED":
            self.holds.append(str(answer.hold))
            if order:
                await self.start(self.holds[-1], self.world.purchases[-1])
                await self.pay(self.holds[-1], self.world.purchases[-1], "well")

    async def release(self, hold: str, purchase: Purchase) -> None:
        answer = await self.shop.parts.inventory.release(self.shop.sale.ref, hold, purchase.buyer)
        assert answer.outcome == self.world.release(purchase)

    async def give_back(self, hold: str, purchase: Purchase) -> None:
        if purchase.state in ("HELD", "LOST"):
            return
        answer = await self.shop.parts.refunds.grant(
            hold, Wanted(reason="asked"), key=new_id(), actor="test"
        )
        said = answer.value if isinstance(answer, RefundRefusal) else "granted"
        assert said == self.world.give_back(purchase)

    async def start(self, hold: str, purchase: Purchase) -> None:
        answer = await self.shop.start(purchase.buyer, hold)
        said = answer.state if isinstance(answer, Order) else answer
        assert said == self.world.start(purchase)

    async def pay(self, hold: str, purchase: Purchase, gateway: str) -> None:
        broken = {"deaf": "break_before", "mute": "break_after"}.get(gateway)
        was_open = purchase.intent != "NONE"
        if broken:
            getattr(self.shop.gateway, broken).add("create")
        try:
            answer = await self.shop.parts.checkout.pay(hold, purchase.buyer)
            said = answer.state if isinstance(answer, Order) else answer
        except GatewayUnavailable:
            said = None
        finally:
            self.shop.gateway.break_before.clear()
            self.shop.gateway.break_after.clear()
        expected = self.world.pay(purchase, gateway)
        if said is None:
            assert broken
            assert expected == "PAYMENT_PENDING"
        else:
            assert said == expected
            assert not broken or was_open or expected != "PAYMENT_PENDING"

    async def success(self, hold: str, purchase: Purchase, times: int) -> None:
        """The money is taken, and told of so many times: not at all, once, twice."""
        if self.world.take_money(purchase):
            for _ in range(times):
                await self.shop.deliver(self.shop.gateway.take_money(hold))
                self.world.tell("success", purchase)
            self.shop.gateway.take_money(hold)

    async def decline(self, hold: str, purchase: Purchase) -> None:
        if purchase.intent == "OPEN":
            await self.shop.deliver(self.shop.gateway.decline(hold))
            self.world.tell("decline", purchase)

    async def cancel(self, hold: str, purchase: Purchase, store_hears: bool) -> None:
        with self.silence(store_hears):
            answer = await self.shop.parts.checkout.cancel(self.shop.sale.ref, hold, purchase.buyer)
        said = answer.state if isinstance(answer, Order) else answer
        assert said == self.world.cancel(purchase, store_hears=store_hears)

    async def deadline(self, hold: str, purchase: Purchase) -> None:
        if purchase.state in (*ALIVE, "HELD"):
            purchase.overdue = True
            await self.shop.let_deadline_pass(hold)

    async def settle(self, *, store_hears: bool) -> None:
        if store_hears:
            await self.shop.settle()
        else:  # the process dies right after the commit
            await self.shop.parts.settlement._commit("take_due", BATCH)
            await self.shop.make_inbox_due()
        self.world.settle(store_hears=store_hears)

    async def sweep(self, *, store_hears: bool) -> None:
        if store_hears:
            for hold, purchase in zip(self.holds, self.world.purchases, strict=True):
                if purchase.in_store and (purchase.overdue or purchase.state != "HELD"):
                    await self.shop.make_due_in_store(hold)
            await self.shop.sweep()
        else:
            with self.silence(store_hears):
                await self.shop.sweep_orders()
        self.world.sweep(store_hears=store_hears)

    async def ask(self) -> None:
        await self.shop.check_payments_now()
        self.world.ask_gateway()

    async def die_settling(self) -> None:
        """The process dies with everything written and nothing committed: nothing has happened."""

        def passing(point: faults.Point) -> None:
            if point is faults.Point.SETTLING:
                raise Died

        with mock.patch.object(faults, "passing", passing), suppress(Died):
            await self.shop.parts.settlement.settle()

    async def refund(self, *, gateway_answers: bool) -> None:
        if not gateway_answers:
            self.shop.gateway.break_after.add("refund")
        await self.shop.pay_refunds_now()
        self.shop.gateway.break_after.clear()
        self.world.pay_refunds(gateway_answers=gateway_answers)

    def silence(self, store_hears: bool) -> Any:
        """The process dies before it has told the store."""
        replacement = (
            self.shop.parts.inventory.free
            if store_hears
            else mock.Mock(side_effect=StoreUnavailable("dead"))
        )
        return mock.patch.object(self.shop.parts.inventory, "free", replacement)

    # ------------------------------------------------------------ looking

    async def compare(self) -> None:
        world = self.world
        assert await self.shop.stock() == (world.free(), world.held(), world.sold)
        for hold, purchase in zip(self.holds, world.purchases, strict=True):
            order = await self.shop.parts.checkout.order(hold, purchase.buyer)
            if order is None:
                assert purchase.state in ("HELD", "LOST"), purchase
            elif purchase.state == "LOST":
                assert order.lines == []  # never an order: a row that says that it is over
            else:
                assert order.state == purchase.state, purchase
        assert len(await self.shop.units()) == world.units_of_orders()
        sums: dict[str, int] = dict.fromkeys(world.books(TOTAL), 0)
        for _, account, _, debit, credit in await self.shop.entries():
            sums["REVENUE" if account in ("SALES", "FEES") else account] += debit - credit
        assert sums == world.books(TOTAL)

    async def finish(self) -> None:
        """Everything that was put off happens; nothing is lost, and nothing is stuck."""
        for kind, what in (
            ("ask", None),
            ("settle", True),
            ("sweep", True),
            ("ask", None),
            ("settle", True),
            ("refund", False),
            ("refund", True),
            ("settle", True),
        ):
            await self.step(kind, what)
        gateway = self.shop.gateway
        for hold, purchase in zip(self.holds, self.world.purchases, strict=True):
            if purchase.intent != "PAID":
                continue
            intent = gateway.intent_of(hold)
            assert intent.status is IntentStatus.SUCCEEDED
            kept = intent.amount_received_minor - intent.amount_refunded_minor
            assert purchase.state in ("CONFIRMED", "REFUNDED")
            assert kept == (purchase.units * TOTAL if purchase.state == "CONFIRMED" else 0)
        assert len(gateway.taken) == sum(one.intent == "PAID" for one in self.world.purchases)
        assert self.world.held() == sum(
            one.units for one in self.world.purchases if one.state in (*ALIVE, "HELD")
        )


@settings(on_the_store, max_examples=40)
@given(history=histories(steps, length=30))
@example(  # the same buyer begins anew, and the first order's money comes after all
    [
        ("buy", ("ann", 1)),
        ("deadline", 0),
        ("sweep", True),
        ("buy", ("ann", 2)),
        ("success", (0, 1)),
        ("settle", True),
    ]
)
@example(  # refunded before the store has heard that it was sold: the units stay sold
    [
        ("buy", ("ann", 2)),
        ("success", (0, 1)),
        ("die_settling", None),
        ("settle", False),
        ("give_back", 0),
        ("refund", False),
        ("sweep", True),
        ("reserve", ("bob", 3)),
    ]
)
@example(  # dies after the commit, with late money in the same batch, and nothing left at first
    [
        ("buy", ("ann", 2)),
        ("buy", ("bob", 2)),
        ("deadline", 0),
        ("sweep", False),
        ("success", (0, 2)),
        ("success", (1, 1)),
        ("settle", False),
        ("settle", True),
    ]
)
async def test_every_history_of_orders_and_money_goes_as_the_model_says(
    services: BackgroundServices, history: list[Step]
) -> None:
    gateway = ScriptedGateway()
    url = await checkout_database(services)
    async with shop_parts(services.store_url, url, gateway) as parts:
        shop = await new_shop(
            parts,
            gateway,
            UNITS,
            prices=(PRICE,),
            payment_attempts=RETRIES,
            buyer_limit=1_000,
        )
        for buyer in BUYERS:
            await shop.admit(buyer)
        real = History(shop)
        for number, (kind, what) in enumerate(history):
            note(f"{number}: {kind} {what}")
            await real.step(kind, what)
        await real.finish()
