"""A store that is not there is told within a second, and forgotten as soon as it is back (W14)."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from redis.exceptions import ResponseError

from fairdrop.drivers.store import Store
from fairdrop.embedded import Durability, EmbeddedServices
from fairdrop.errors import StoreUnavailable
from fairdrop.inventory import Figures, Inventory
from fairdrop.waiting_room import State, WaitingRoom
from tests.driven_sale import DrivenSale, Scripts

Call = Callable[[DrivenSale, WaitingRoom, Inventory], Awaitable[object]]

CALLS: dict[str, Call] = {
    "join": lambda sale, room, _: room.join(sale.ref, "ann"),
    "status": lambda sale, room, _: room.status(sale.ref, "ann"),
    "claim": lambda sale, room, _: room.claim(sale.ref, "ann"),
    "leave": lambda sale, room, _: room.leave(sale.ref, "ann"),
    "tick": lambda sale, room, _: room.tick(sale.ref),
    "reserve": lambda sale, _, stock: stock.reserve(sale.ref, sale.request("ann", ["seat", 1])),
    "start": lambda sale, _, stock: stock.start(sale.ref, "h", "ann"),
    "commit": lambda sale, _, stock: stock.commit(sale.ref, "h"),
    "expire": lambda sale, _, stock: stock.expire(sale.ref),
    "figures": lambda sale, _, stock: stock.figures(sale.ref, ["seat"]),
}


@pytest.fixture
async def own_services(tmp_path: Path) -> AsyncIterator[EmbeddedServices]:
    """A store of this test alone, which it may stop."""
    async with EmbeddedServices(
        tmp_path / "data",
        durability=Durability.PROCESS_DEATH,
        external_database_url="postgresql://nowhere",
    ) as services:
        yield services


@pytest.fixture
async def own_store(own_services: EmbeddedServices) -> AsyncIterator[Store]:
    """Connected as the product connects, with the product's timeout."""
    store = Store(own_services.store_url)
    yield store
    await store.close()


async def seconds_until_told(call: Awaitable[object]) -> float:
    """How long the caller waits for the error. The clock of this process, not of the store."""
    began = time.monotonic()
    with pytest.raises(StoreUnavailable):
        await call
    return time.monotonic() - began


async def figures_or_none(sale: DrivenSale) -> Figures | None:
    try:
        return await sale.figures()
    except StoreUnavailable:
        return None


@pytest.mark.parametrize("name", sorted(CALLS))
async def test_a_store_that_does_not_run_is_told_at_once(name: str, tmp_path: Path) -> None:
    store = Store(f"unix://{tmp_path}/nobody-listens.sock")
    sale = DrivenSale(Scripts(store))
    call = CALLS[name](sale, WaitingRoom(store), Inventory(store))
    assert await seconds_until_told(call) < 1
    with pytest.raises(StoreUnavailable):
        await store.ping()
    await store.close()


async def test_a_store_that_hangs_is_told_within_a_second_and_works_again_when_it_wakes(
    own_services: EmbeddedServices, own_store: Store
) -> None:
    sale = DrivenSale(Scripts(own_store))
    await sale.load({"seat": 5})
    room, stock = WaitingRoom(own_store), Inventory(own_store)
    await room.join(sale.ref, "first")
    pid = own_services.supervisor.pid_of("valkey")
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        # All at once, so that the test takes a second and not ten: each has a script of its own.
        waits = await asyncio.gather(
            *(seconds_until_told(call(sale, room, stock)) for call in CALLS.values())
        )
    finally:
        os.kill(pid, signal.SIGCONT)
    assert max(waits) < 1
    standing = await room.join(sale.ref, "ann")
    assert standing.place.state is State.WAITING
    assert (await room.status(sale.ref, "first")).place.position == 1


async def test_a_store_that_was_killed_and_restarted_still_knows_everybody(
    own_services: EmbeddedServices, own_store: Store
) -> None:
    sale = DrivenSale(Scripts(own_store))
    await sale.load({"seat": 5}, cap=1)
    await sale.admit("inside")
    await sale.join("waiting")
    await sale.reserve("inside", ["seat", 2], hold="h")
    before = await sale.figures()
    pid = own_services.supervisor.pid_of("valkey")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    async with asyncio.timeout(30):
        while (after := await figures_or_none(sale)) is None:
            await asyncio.sleep(0.01)
    assert after == before
    # Scripts are not kept over a restart; the first call of each brings it along.
    assert (await sale.status("inside"))[0].state is State.ADMITTED
    assert (await sale.tick()).called == 0


async def test_callers_who_arrive_while_others_wait_for_a_hanging_store_are_told_in_time(
    own_services: EmbeddedServices, own_store: Store
) -> None:
    """Whoever has to queue behind batches that get no answer waits for those, and for their own."""
    sale = DrivenSale(Scripts(own_store))
    await sale.load({"seat": 5})
    room = WaitingRoom(own_store)
    await room.join(sale.ref, "first")
    pid = own_services.supervisor.pid_of("valkey")
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        arrivals = []
        for n in range(20):
            arrivals.append(
                asyncio.create_task(seconds_until_told(room.join(sale.ref, f"visitor-{n}")))
            )
            await asyncio.sleep(0)  # each a moment after the one before, in a batch of its own
            await asyncio.sleep(0)
        waits = await asyncio.gather(*arrivals)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert max(waits) < 1


@pytest.mark.parametrize(("setting", "value"), [("maxmemory", "1"), ("min-replicas-to-write", "1")])
async def test_a_store_that_refuses_writes_is_unavailable_and_takes_nothing(
    own_store: Store, setting: str, value: str
) -> None:
    sale = DrivenSale(Scripts(own_store))
    await sale.load({"seat": 5})
    await sale.admit("a")
    figures = await sale.figures()
    await own_store.redis.config_set(setting, value)
    for call in (
        sale.reserve("a", ["seat", 1]),
        sale.join("b"),
        DrivenSale(sale.scripts).load({"seat": 5}),
    ):
        with pytest.raises(StoreUnavailable):
            await call
    await own_store.redis.config_set(setting, "0")
    assert await sale.figures() == figures
    assert (await sale.reserve("a", ["seat", 1])).outcome == "RESERVED"


async def test_a_store_that_has_become_a_replica_is_unavailable(own_store: Store) -> None:
    sale = DrivenSale(Scripts(own_store))
    await sale.load({"seat": 5})
    await own_store.redis.replicaof("127.0.0.1", 1)
    with pytest.raises(StoreUnavailable):
        await sale.join("a")
    await own_store.redis.replicaof("NO", "ONE")
    assert (await sale.join("a"))[0].state is State.WAITING


async def test_a_connection_that_breaks_during_a_call_costs_the_caller_no_error(
    own_services: EmbeddedServices,
) -> None:
    """As when the server is restarted: the call is repeated once, on another connection."""
    store, other = (Store(own_services.store_url, timeout_s=30) for _ in range(2))
    sale = DrivenSale(Scripts(store))
    await sale.load({"seat": 5})
    await other.redis.client_pause(30_000, all=False)  # scripts wait
    joining = asyncio.create_task(sale.join("ann", "ann"))
    async with asyncio.timeout(30):
        while not (stuck := [c for c in await other.redis.client_list() if "b" in c["flags"]]):
            await asyncio.sleep(0.001)
    await other.redis.client_kill_filter(_id=stuck[0]["id"])
    await other.redis.client_unpause()
    assert [place.position for place in await joining] == [1, 1]
    await store.close()
    await other.close()


async def test_an_error_of_ours_in_a_script_is_not_taken_for_a_store_that_is_down(
    store: Store,
) -> None:
    sale = DrivenSale(Scripts(store))
    await sale.load({"seat": 5})
    with pytest.raises(ResponseError):
        await sale.scripts.join(sale.ref, [])  # no batch is empty
