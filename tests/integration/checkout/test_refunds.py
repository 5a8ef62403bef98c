"""Refunds by the unit, units that go on sale again, and the fee (O9): booked, paid out, counted."""

from __future__ import annotations

import itertools
from unittest import mock

import pytest

from fairdrop.checkout import Granted, Order, OrderState, RefundRefusal, Wanted
from fairdrop.checkout.model import late_hold
from fairdrop.errors import StoreUnavailable
from fairdrop.ids import new_id
from tests.integration.checkout.conftest import NewShop
from tests.integration.checkout.shop import Shop

S = OrderState


async def ask(shop: Shop, order: Order, **wanted: object) -> Granted | RefundRefusal:
    answer: Granted | RefundRefusal = await shop.parts.refunds.grant(
        order.id,
        Wanted(**{"reason": "goodwill", **wanted}),  # type: ignore[arg-type]
        key=new_id(),
        actor="test",
    )
    return answer


async def grant(shop: Shop, order: Order, **wanted: object) -> Granted:
    answer = await ask(shop, order, **wanted)
    assert isinstance(answer, Granted), answer
    return answer


async def done(shop: Shop, order: Order) -> Order:
    """The gateway has paid, and told."""
    await shop.pay_refunds_now()
    await shop.settle()
    return await shop.now(order)


def unit(order: Order, number: int) -> tuple[str, int]:
    line = order.lines[0]
    return line.variant, line.serials[number]


async def test_a_unit_is_refunded_at_its_price_with_its_share_of_the_fee(sell: NewShop) -> None:
    shop = await sell(5)
    order = await shop.paid(3)  # 135.00 and 13.50
    granted = await grant(shop, order, units=[unit(order, 1)])
    assert (granted.refund.amount_minor, granted.refund.fee_minor) == (4_950, 450)
    assert (await done(shop, order)).state is S.PARTIALLY_REFUNDED
    assert sorted(entry for entry in await shop.entries(order) if entry[0] != "PAYMENT") == [
        ("REFUND_OWED", "FEES", "EUR", 450, 0),
        ("REFUND_OWED", "REFUND_LIABILITY", "EUR", 0, 4_950),
        ("REFUND_OWED", "SALES", "EUR", 4_500, 0),
        ("REFUND_PAID", "GATEWAY_CLEARING", "EUR", 0, 4_950),
        ("REFUND_PAID", "REFUND_LIABILITY", "EUR", 4_950, 0),
    ]
    assert await shop.stock() == (2, 0, 3)  # nobody gets the unit: it was not asked for


@pytest.mark.parametrize("order_of_units", list(itertools.permutations(range(3))))
async def test_all_units_one_by_one_give_back_exactly_what_was_paid(
    sell: NewShop, order_of_units: tuple[int, ...]
) -> None:
    """Case 24: 3 × 3.33 and a fee of 1.00 that no third divides."""
    shop = await sell(5, prices=(333,))
    order = await shop.paid(3)
    for number in order_of_units:
        await grant(shop, order, units=[unit(order, number)])
        order = await done(shop, order)
    assert (order.state, order.refunded_minor) == (S.REFUNDED, order.total_minor)
    for account in ("SALES", "FEES", "REFUND_LIABILITY", "GATEWAY_CLEARING"):
        rows = [entry for entry in await shop.entries(order) if entry[1] == account]
        assert sum(debit - credit for _, _, _, debit, credit in rows) == 0, account


async def test_a_unit_is_refunded_once_and_only_by_its_own_order(sell: NewShop) -> None:
    shop = await sell(6)
    order, other = await shop.paid(2), await shop.paid(2)
    await grant(shop, order, units=[unit(order, 0)], to_pool=True)
    await done(shop, order)
    for wrong in (unit(order, 0), unit(other, 0), (order.lines[0].variant, 99)):
        answer = await ask(shop, order, units=[wrong])
        assert answer is RefundRefusal.NOT_THEIR_UNIT
    assert len(await shop.refunds(order)) == 1


async def test_units_that_go_back_to_the_pool_are_sold_again_once(sell: NewShop) -> None:
    """O9 and H1: the last unit comes back, is bought by somebody else, and is one."""
    shop = await sell(2)
    first, second = await shop.admit(), await shop.admit()  # the line stops at sell-out
    order = await shop.paid(2)
    assert (await shop.try_reserve(first, 1)).outcome == "SOLD_OUT"
    await grant(shop, order, units=[unit(order, 0)], to_pool=True)
    assert await shop.stock() == (1, 0, 1)
    assert await shop.units(order) == [("SOLD", order.lines[0].serials[1])]
    other = await shop.order_of(first, await shop.reserve(first, 1))
    await shop.pay(other)
    await shop.deliver(shop.gateway.take_money(other.id))
    await shop.settle()
    await shop.now(other, S.CONFIRMED)
    assert other.lines[0].serials == [order.lines[0].serials[0]]
    assert (await shop.try_reserve(second, 1)).outcome == "SOLD_OUT"
    await done(shop, order)
    await shop.parts.refunds.return_units()
    assert await shop.stock() == (0, 0, 2)


async def test_a_unit_that_went_back_no_longer_counts_to_its_buyer_s_limit(sell: NewShop) -> None:
    """H6."""
    shop = await sell(5, buyer_limit=2)
    order = await shop.paid(2)
    await shop.admit(order.buyer)
    assert (await shop.try_reserve(order.buyer, 1)).outcome == "BUYER_LIMIT"
    await grant(shop, order, units=[unit(order, 0)], to_pool=True)
    assert (await shop.try_reserve(order.buyer, 2)).outcome == "BUYER_LIMIT"
    assert (await shop.try_reserve(order.buyer, 1)).outcome == "RESERVED"


async def test_a_full_refund_puts_all_units_on_sale_again_when_asked_to(sell: NewShop) -> None:
    shop = await sell(5)
    order = await shop.paid(3)
    await grant(shop, order, to_pool=True)
    assert await shop.stock() == (5, 0, 0)
    assert (await done(shop, order)).state is S.REFUNDED
    assert await shop.units() == []


async def test_a_store_that_does_not_hear_of_units_is_told_again_and_once(
    sell: NewShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = await sell(5)
    order = await shop.paid(3)
    inventory = shop.parts.inventory
    give_back = inventory.give_back

    async def dead(*_: object) -> None:
        raise StoreUnavailable("dead")

    async def told_and_unheard(*arguments: object) -> None:
        await give_back(*arguments)  # type: ignore[arg-type]
        raise StoreUnavailable("the answer was lost")

    monkeypatch.setattr(inventory, "give_back", dead)
    await grant(shop, order, units=[unit(order, 0)], to_pool=True)
    assert await shop.stock() == (2, 0, 3)
    monkeypatch.setattr(inventory, "give_back", told_and_unheard)
    await shop.parts.refunds.return_units()
    monkeypatch.setattr(inventory, "give_back", give_back)
    for _ in range(2):
        await shop.parts.refunds.return_units()
        assert await shop.stock() == (3, 0, 2)


async def test_a_store_filled_anew_has_the_units_free_and_is_not_told_again(
    sell: NewShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H8: the rows were there before the new epoch; telling it would sell the unit twice."""
    shop = await sell(5)
    order = await shop.paid(3)

    async def dead(*_: object) -> None:
        raise StoreUnavailable("dead")

    with monkeypatch.context() as broken:
        broken.setattr(shop.parts.inventory, "give_back", dead)
        await grant(shop, order, units=[unit(order, 0)], to_pool=True)
    keys = [key async for key in shop.parts.store.redis.scan_iter(f"*{shop.sale.id}*")]
    await shop.parts.store.redis.delete(*keys)
    shop.sale = await shop.parts.loader.keep_loaded(shop.sale)
    assert await shop.stock() == (3, 0, 2)
    await shop.parts.refunds.return_units()
    assert await shop.stock() == (3, 0, 2)


@pytest.mark.parametrize("late", [False, True], ids=["in_time", "late"])
@pytest.mark.parametrize("first", ["refund", "sweep"])
async def test_units_sold_unheard_of_come_back_once(
    sell: NewShop, monkeypatch: pytest.MonkeyPatch, late: bool, first: str
) -> None:
    """H7: who settled has died before the store was told; then one of the two units is refunded."""
    dead = mock.Mock(side_effect=StoreUnavailable("dead"))
    shop = await sell(5)
    order = await shop.pending(2)
    if late:
        await shop.expire(order)
    await shop.deliver(shop.gateway.take_money(order.id))
    with monkeypatch.context() as broken:
        broken.setattr(shop.parts.inventory, "commit_many", dead)
        await shop.settle()
    order = await shop.now(order, S.CONFIRMED)
    assert await shop.stock() == (3, 2, 0)
    with monkeypatch.context() as broken:
        if first == "sweep":
            broken.setattr(shop.parts.inventory, "give_back", dead)
        await grant(shop, order, units=[unit(order, 0)], to_pool=True)
    for step in (first, "sweep", "refund"):
        if step == "sweep":
            await shop.make_due_in_store(late_hold(order.id) if late else order.id)
            await shop.sweep()
        else:
            await shop.parts.refunds.return_units()
    assert await shop.stock() == (4, 0, 1)
    assert await shop.inside() == 0  # W13: nor is the place forgotten
    serials = [line.serials for line in (await shop.order(4)).lines]
    assert order.lines[0].serials[1] not in serials[0], "what is sold is not sold again"


async def test_the_fee_stays_with_the_shop_when_it_says_so(sell: NewShop) -> None:
    shop = await sell(5)
    order = await shop.paid(2)
    granted = await grant(shop, order, keep_fee=True)
    assert (granted.refund.amount_minor, granted.refund.fee_minor) == (9_000, 0)
    assert (await done(shop, order)).state is S.PARTIALLY_REFUNDED
    fees = [entry for entry in await shop.entries(order) if entry[1] == "FEES"]
    assert fees == [("PAYMENT", "FEES", "EUR", 0, 900)]
    rest = await grant(shop, order)  # and goes back after all
    assert (rest.refund.amount_minor, rest.refund.fee_minor) == (900, 900)
    assert (await done(shop, order)).state is S.REFUNDED


async def test_a_unit_after_an_amount_never_exceeds_what_was_paid(sell: NewShop) -> None:
    """Case 25, across kinds of refunds."""
    shop = await sell(5)
    order = await shop.paid(2)  # 99.00
    await grant(shop, order, amount_minor=4_951)
    await done(shop, order)
    assert await ask(shop, order, units=[unit(order, 0)]) is RefundRefusal.TOO_MUCH  # by a cent
    await grant(shop, order, units=[unit(order, 0)], keep_fee=True)
    await done(shop, order)
    assert await ask(shop, order, amount_minor=450) is RefundRefusal.TOO_MUCH
    await grant(shop, order, amount_minor=449)
    assert (await done(shop, order)).state is S.REFUNDED
