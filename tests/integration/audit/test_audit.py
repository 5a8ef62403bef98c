"""The audit finds each difference that is planted, and nothing where there is none (O11)."""

from __future__ import annotations

import msgspec
import pytest

from fairdrop.audit import Difference, Kind, audit
from fairdrop.clock import now_ms
from tests.integration.audit import plants_books, plants_gateway, plants_store
from tests.integration.audit.busy_shop import BusyShop
from tests.integration.audit.planting import PLANTS, Plant
from tests.integration.audit.plants_gateway import a_charge, a_refund

PLANTED_IN = (plants_store, plants_books, plants_gateway)
"""Importing them fills the list."""


async def differences(shop: BusyShop) -> list[Difference]:
    return await audit(shop.parts, pause_s=0)


async def test_a_shop_to_which_everything_has_happened_is_clean(shop: BusyShop) -> None:
    assert await differences(shop) == []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "plant" in metafunc.fixturenames:
        names = [plant.__name__ for _, plant in PLANTS]
        metafunc.parametrize(("kinds", "plant"), PLANTS, ids=names)


async def test_what_is_broken_is_found_and_named(
    shop: BusyShop, kinds: set[Kind], plant: Plant
) -> None:
    await plant(shop)
    found = await differences(shop)
    assert {difference.kind for difference in found} == kinds, "\n".join(
        difference.words for difference in found
    )
    for difference in found:
        assert difference.subject
        assert difference.expected != difference.found
        assert difference.kind in difference.words


async def test_what_may_still_be_on_its_way_is_no_difference(shop: BusyShop) -> None:
    """The near misses: a payment and a refund of this minute, and a hold whose time is just over."""
    order = shop.orders["pending"]
    shop.gateway.taken.append(a_charge(shop, order.id, order.total_minor, created_ms=now_ms()))
    (refund,) = await shop.fetch("SELECT id, amount_minor FROM refunds WHERE state = 'PENDING'")
    paid = a_refund(str(refund["id"]), refund["amount_minor"])
    shop.gateway.keys_of_refunds[str(refund["id"])] = msgspec.structs.replace(
        paid, created_ms=now_ms()
    )
    name, hold = await shop.a_reservation()
    await shop.write_hold(name, [*hold[:2], now_ms() - 1_000, *hold[3:]])
    assert await differences(shop) == []


def test_every_kind_of_difference_is_planted_once() -> None:
    assert set().union(*(kinds for kinds, _ in PLANTS)) == set(Kind)
