"""One active reservation for a verified phone or payment method, decided where units are taken (H6)."""

from __future__ import annotations

import asyncio

import pytest

from fairdrop.drivers.store import Store
from fairdrop.inventory import HoldLoad, Inventory, ReserveOutcome, StartOutcome
from tests.driven_sale import DrivenSale

RESERVED, PERSON_LIMIT = ReserveOutcome.RESERVED, ReserveOutcome.PERSON_LIMIT


@pytest.fixture
async def selling(sale: DrivenSale) -> DrivenSale:
    await sale.load({"seat": 50}, order_limit=4, buyer_limit=50)
    await sale.admit("a", "b", "c")
    return sale


async def reserve(
    sale: DrivenSale, buyer: str, *marks: str, hold: str | None = None
) -> ReserveOutcome:
    return (await sale.reserve(buyer, ["seat", 1], hold=hold, verified=marks)).outcome


async def test_one_phone_behind_many_buyers_reserves_once_at_the_same_instant(
    selling: DrivenSale, store_url: str
) -> None:
    stores = [Store(store_url, timeout_s=30) for _ in range(3)]
    requests = [selling.request(buyer, ["seat", 1], verified=["phone"]) for buyer in "abc"]
    # The store's own clock here: the leases of these buyers are far in the future.
    answers = await asyncio.gather(
        *(
            Inventory(store).reserve(selling.ref, request)
            for store, request in zip(stores, requests, strict=True)
        )
    )
    for store in stores:
        await store.close()
    assert sorted(answer.outcome for answer in answers) == [PERSON_LIMIT, PERSON_LIMIT, RESERVED]
    assert (await selling.stock("seat")).held == 1


async def test_without_its_mark_the_same_phone_reserves_again(selling: DrivenSale) -> None:
    """The negative control: it is the mark that refuses the second one."""
    assert [await reserve(selling, buyer) for buyer in "ab"] == [RESERVED, RESERVED]


async def test_requests_of_one_batch_share_a_mark(selling: DrivenSale) -> None:
    requests = [selling.request(buyer, ["seat", 1], verified=["x", buyer]) for buyer in "abc"]
    answers = await selling.reserve_all(*requests)
    assert [answer.outcome for answer in answers] == [RESERVED, PERSON_LIMIT, PERSON_LIMIT]
    # The marks of those who were refused are free: nothing of a refusal stays behind.
    assert await reserve(selling, "b", "b") is RESERVED


@pytest.mark.parametrize("end", ["release", "change", "free", "commit", "sweep", "pass"])
async def test_a_mark_is_free_again_when_its_reservation_ends(
    selling: DrivenSale, end: str
) -> None:
    assert await reserve(selling, "a", "phone", "card", hold="h") is RESERVED
    assert await reserve(selling, "b", "card") is PERSON_LIMIT
    match end:
        case "release":
            await selling.release("h", "a")
        case "change":
            await selling.change("h", "a", ["seat", 0])
        case "free" | "commit":
            await selling.start("h", "a")
            assert await reserve(selling, "b", "card") is PERSON_LIMIT  # in checkout it counts too
            await getattr(selling, end)("h")
        case _:
            await selling.load(lease_ttl_ms=10**9)
            await selling.leave("c")
            await selling.admit("c")
            selling.pass_ms(600_000)
            if end == "sweep":
                await selling.expire()
            assert await reserve(selling, "c", "card", "phone") is RESERVED
            if end == "pass":
                await (
                    selling.expire()
                )  # the sweep ends the old one and leaves the mark of the new one
                names = await selling.scripts.store.redis.hkeys(selling.key("verified"))
                assert sorted(names) == [b"card", b"phone"]
            return
    assert await selling.scripts.store.redis.hlen(selling.key("verified")) == 0
    assert await reserve(selling, "b", "card") is RESERVED


async def test_checkout_adds_what_it_has_verified_and_refuses_a_second_reservation(
    selling: DrivenSale,
) -> None:
    for buyer in "ab":
        await reserve(selling, buyer, hold=buyer)
    started = await selling.start("a", "a", ["phone"])
    assert (started.outcome, started.verified) == (StartOutcome.STARTED, ["phone"])
    assert await selling.start("a", "a", ["phone"]) == started
    assert (await selling.start("b", "b", ["phone"])).outcome is StartOutcome.PERSON_LIMIT
    assert (await selling.holds())["b"][3] == 0  # still a reservation, which can be given back
    await selling.free("a")
    assert (await selling.start("b", "b", ["phone"])).outcome is StartOutcome.STARTED


async def test_a_rebuilt_store_knows_the_marks_of_orders_under_way(sale: DrivenSale) -> None:
    hold = HoldLoad("h", "a", False, sale.now_ms + 1_000, [("seat", [1])], ["phone"])
    await sale.load({"seat": 5}, holds=[hold])
    await sale.admit("b")
    assert await reserve(sale, "b", "phone") is PERSON_LIMIT
    await sale.free("h")
    assert await reserve(sale, "b", "phone") is RESERVED
