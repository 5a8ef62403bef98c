"""Random histories of buyers, bank, operator and workers, against a model of a sale (O8, O9, H7, H8).

After every step the states of all orders, the store's figures and the ledger are those of the
model; a step may also be that the store loses everything. At the end everything that was put off is
done: then every captured payment is a confirmed order or a refund, every unit is free or sold, and
somebody buys all that are free.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any
from unittest import mock

import msgspec
import pytest
from hypothesis import example, given, note, settings
from hypothesis import strategies as st

from fairdrop import faults
from fairdrop.checkout import Order, RefundRefusal, Wanted
from fairdrop.checkout.settle import BATCH
from fairdrop.drivers.sale_scripts import SaleNotLoaded
from fairdrop.embedded import BackgroundServices
from fairdrop.errors import StoreUnavailable
from fairdrop.ids import new_id
from fairdrop.payments import GatewayUnavailable, IntentStatus
from tests.integration.checkout.scripted_gateway import ScriptedGateway
from tests.integration.checkout.shop import Shop, checkout_database, new_shop, shop_parts
from tests.integration.checkout.test_rebuilding import lose_the_sale, rebuild
from tests.property.sale_model import ALIVE, RETRIES, Purchase, World
from tests.property.sale_stories import STORIES, TOTAL, Step
from tests.property.searching import histories, on_the_store, pick

PRICE = 1_000
UNITS = 4
BUYERS = ("ann", "bob", "cid", "dan")
LAST_BUYER = "eve"
EVERYBODY = (*BUYERS, LAST_BUYER)

which = st.integers(0, 11)
hears = st.booleans()
wanted = st.sampled_from(["all", "unit", "unit", 600, TOTAL, 2 * TOTAL + 1])

steps = st.one_of(
    st.tuples(st.just("buy"), st.tuples(st.sampled_from(BUYERS), st.integers(1, 2))),
    st.tuples(st.just("sale"), st.tuples(st.sampled_from(BUYERS), st.integers(1, 3), hears)),
    st.tuples(st.just("reserve"), st.tuples(st.sampled_from(BUYERS), st.integers(1, 3))),
    st.tuples(st.just("start"), which),
    st.tuples(st.just("pay"), st.tuples(which, st.sampled_from(["well", "well", "deaf", "mute"]))),
    st.tuples(st.just("success"), st.tuples(which, st.integers(0, 2))),
    st.tuples(st.just("success"), st.tuples(which, st.integers(0, 2))),
    st.tuples(st.just("decline"), which),
    st.tuples(st.just("cancel"), st.tuples(which, hears)),
    st.tuples(st.just("release"), which),
    st.tuples(st.just("give_back"), st.tuples(which, wanted, hears, hears)),
    st.tuples(st.just("give_back"), st.tuples(which, wanted, hears, hears)),
    st.tuples(st.sampled_from(["tell_refund", "lose_store"]), which),
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
        self.world = World(UNITS, TOTAL, shop.sale.capture == "manual")
        self.holds: list[str] = []

    def one_of(self, number: int) -> list[tuple[str, Purchase]]:
        return pick(list(zip(self.holds, self.world.purchases, strict=True)), number)

    def hold_of(self, purchase: Purchase) -> str:
        at = next(i for i, one in enumerate(self.world.purchases) if one is purchase)
        return self.holds[at]

    async def step(self, kind: str, what: Any) -> None:
        if kind in ("buy", "reserve"):
            await self.reserve(*what, order=kind == "buy")
        elif kind == "sale":
            await self.sale(*what)
        elif kind == "lose_store":
            await self.lose_store(dies=not what % 3)
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

    async def sale(self, buyer: str, units: int, store_hears: bool) -> None:
        """A whole purchase, whose settlement may die."""
        known = len(self.holds)
        await self.reserve(buyer, units, order=True)
        if len(self.holds) > known:
            await self.success(self.holds[-1], self.world.purchases[-1], 1)
            if self.world.manual:
                await self.settle(store_hears=True)
                await self.ask()
            await self.settle(store_hears=store_hears)

    async def release(self, hold: str, purchase: Purchase) -> None:
        answer = await self.shop.parts.inventory.release(self.shop.sale.ref, hold, purchase.buyer)
        assert answer.outcome == self.world.release(purchase)

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
        """The money is taken or set aside, and told of so many times: not at all, once, twice."""
        told = self.world.agree(purchase)
        if told is not None:
            gateway = self.shop.gateway
            act = gateway.set_aside if told == "authorised" else gateway.take_money
            for _ in range(times):
                await self.shop.deliver(act(hold))
                self.world.tell(told, purchase)
            act(hold)

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
            while await self.shop.parts.refunds.return_units():
                pass
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

    async def give_back(
        self, hold: str, purchase: Purchase, what: str | int, to_pool: bool, store_hears: bool
    ) -> None:
        if purchase.state in ("HELD", "LOST"):
            return
        asked = Wanted(reason="asked", to_pool=to_pool)
        if what == "unit":
            order = await self.shop.parts.checkout.order(hold, purchase.buyer)
            assert order is not None
            line = order.lines[0]  # its units one after the other; then the last one once more
            serial = line.serials[min(purchase.refunded_units, purchase.units - 1)]
            asked = msgspec.structs.replace(asked, units=[(line.variant, serial)])
        elif what != "all":
            asked = msgspec.structs.replace(asked, amount_minor=int(what))
        with self.silence(store_hears):
            answer = await self.shop.parts.refunds.grant(hold, asked, key=new_id(), actor="test")
        said = answer.value if isinstance(answer, RefundRefusal) else "granted"
        expected = self.world.give_back(purchase, what, to_pool=to_pool, store_hears=store_hears)
        assert said == expected

    async def tell_refund(self, hold: str, purchase: Purchase) -> None:
        """The gateway tells, again, of every refund of the order that it has paid."""
        if purchase.intent != "NONE":
            await self.shop.deliver(*self.shop.gateway.refund_events(hold))
            if purchase.refund == "PAID":
                self.world.tell("refund", purchase)

    async def lose_store(self, *, dies: bool) -> None:
        """Everything of the sale is gone. Until it is filled again nothing is sold (W14)."""
        await lose_the_sale(self.shop)
        with pytest.raises(SaleNotLoaded):
            await self.shop.try_reserve(BUYERS[0], 1)
        if dies:  # whoever fills it first, with the new epoch written and the store still empty
            dead = mock.Mock(side_effect=StoreUnavailable("dead"))
            unfilled = mock.patch.object(self.shop.parts.inventory, "load", dead)
            with unfilled, pytest.raises(StoreUnavailable):
                await rebuild(self.shop)
        await rebuild(self.shop)
        for buyer in EVERYBODY:
            await self.shop.admit(buyer)
        self.world.lose_store()

    @contextmanager
    def silence(self, store_hears: bool) -> Iterator[None]:
        """The process dies before it has told the store."""
        dead = mock.Mock(side_effect=StoreUnavailable("dead"))
        calls = dict.fromkeys(("free", "commit", "give_back"), dead)
        parts = self.shop.parts
        with ExitStack() as silenced:
            if not store_hears:
                silenced.enter_context(mock.patch.multiple(parts.inventory, **calls))
                silenced.enter_context(mock.patch.object(parts.waiting_room, "complete", dead))
            yield

    # ------------------------------------------------------------ looking

    async def compare(self) -> None:
        world = self.world
        assert await self.shop.stock() == (world.free(), world.held(), world.sold)
        assert await self.shop.inside() == len(EVERYBODY) - len(world.used_up)
        for hold, purchase in zip(self.holds, world.purchases, strict=True):
            order = await self.shop.parts.checkout.order(hold, purchase.buyer)
            if order is None:
                assert purchase.state in ("HELD", "LOST"), purchase
            elif purchase.state == "LOST":
                assert order.lines == []  # never an order: a row that says that it is over
            else:
                assert order.state == purchase.state, purchase
        assert len(await self.shop.units()) == world.units_of_orders()
        sums: dict[str, int] = dict.fromkeys(world.books(), 0)
        for _, account, _, debit, credit in await self.shop.entries():
            sums["REVENUE" if account in ("SALES", "FEES") else account] += debit - credit
        assert sums == world.books()

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
        assert all(one.intent != "ASIDE" for one in self.world.purchases)
        for hold, purchase in zip(self.holds, self.world.purchases, strict=True):
            if purchase.intent == "WITHDRAWN":
                assert gateway.intent_of(hold).status is IntentStatus.CANCELED
            if purchase.intent != "PAID":
                continue
            intent = gateway.intent_of(hold)
            assert intent.status is IntentStatus.SUCCEEDED
            kept = intent.amount_received_minor - intent.amount_refunded_minor
            assert purchase.state in ("CONFIRMED", "PARTIALLY_REFUNDED", "REFUNDED")
            assert kept == purchase.units * TOTAL - purchase.back_minor
        assert len(gateway.taken) == sum(one.intent == "PAID" for one in self.world.purchases)
        assert self.world.held() == sum(
            one.units for one in self.world.purchases if one.state in (*ALIVE, "HELD")
        )
        await self.buy_what_is_left()

    async def buy_what_is_left(self) -> None:
        """What the store calls free is nobody's: it can be ordered, and each unit once."""
        if self.world.free():
            await self.step("buy", (LAST_BUYER, self.world.free()))
            assert self.world.purchases[-1].state == "PAYMENT_PENDING"
            assert self.world.free() == 0


def every_story(test: Any) -> Any:
    """As examples of hypothesis, before those that it draws."""
    for history, manual in STORIES.values():
        test = example(history=history, manual=manual)(test)
    return test


@settings(on_the_store, max_examples=32)
@given(history=histories(steps, length=30), manual=st.booleans())
@every_story
async def test_every_history_of_orders_and_money_goes_as_the_model_says(
    services: BackgroundServices, history: list[Step], manual: bool
) -> None:
    gateway = ScriptedGateway()
    url = await checkout_database(services)
    async with shop_parts(services.store_url, url, gateway) as parts:
        shop = await new_shop(
            parts,
            gateway,
            UNITS,
            UNITS,  # of another kind that nobody wants: the line never stops at sell-out
            prices=(PRICE, 1),
            payment_attempts=RETRIES,
            buyer_limit=1_000,
            capture="manual" if manual else "automatic",
        )
        for buyer in EVERYBODY:
            await shop.admit(buyer)
        real = History(shop)
        for number, (kind, what) in enumerate(history):
            note(f"{number}: {kind} {what}")
            await real.step(kind, what)
        await real.finish()
