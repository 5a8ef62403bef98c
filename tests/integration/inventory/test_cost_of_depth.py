"""Reserving gets no slower as units sell and holds pile up (case 40).

What a test can say without a clock: the script does the same work, command by command, and none of
the commands looks at more than it touches. How long that takes is told by
``benchmarks/store_at_depth.py``.
"""

from __future__ import annotations

from collections import Counter

from fairdrop.inventory import ReserveRequest
from tests.driven_sale import DrivenSale

CONSTANT = {"hget", "hmget", "hset", "hdel", "llen", "lpop", "rpush", "zmscore"} | {
    "exists",
    "expire",
    "time",
}
LOGARITHMIC = {"zadd", "zrem"}
"""In the size of the sorted set; the rest of the cost of each is that of its arguments."""


async def commands_of(
    sale: DrivenSale, *requests: ReserveRequest, outcome: str = "RESERVED"
) -> Counter[str]:
    """How often the script calls each command of the store for one batch."""

    async def calls() -> Counter[str]:
        stats = await sale.scripts.store.redis.info("commandstats")
        return Counter({name.removeprefix("cmdstat_"): row["calls"] for name, row in stats.items()})

    before = await calls()
    answers = await sale.reserve_all(*requests)
    done = await calls() - before
    assert {answer.outcome for answer in answers} == {outcome}
    for own in ("info", "eval", "evalsha", "ping", "hello"):
        done.pop(own, None)
    return Counter({name: number for name, number in done.items() if "|" not in name})


async def pile_up(sale: DrivenSale, holds: int) -> None:
    """Holds of one unit each, half of them sold afterwards."""
    first = (await sale.figures()).holds
    for start in range(first, first + holds, 500):
        names = [f"hold-{n}" for n in range(start, min(start + 500, first + holds))]
        await sale.reserve_all(
            *(ReserveRequest(name, None, name, "", "", ["seat", 1]) for name in names)
        )
        await sale.scripts.commit(sale.ref, names[::2])


async def test_the_script_does_the_same_work_however_many_holds_there_are(
    sale: DrivenSale,
) -> None:
    await sale.load({"seat": 1_000_000, "box": 1_000_000})
    people = [f"v{n}" for n in range(30)]
    await sale.admit(*people)
    # Scripts are known to the server from here on, so that no batch brings one along.
    await sale.reserve("v0", ["seat", 1])
    work = []
    for turn, deeper_by in enumerate((0, 1_000, 20_000)):
        await pile_up(sale, deeper_by)
        buyers = people[1 + 5 * turn : 6 + 5 * turn]
        work.append(
            await commands_of(sale, *(sale.request(v, ["seat", 1, "box", 2]) for v in buyers))
        )
    assert (await sale.figures()).holds > 10_000
    assert work[0] == work[1] == work[2]
    assert set(work[0]) <= CONSTANT | LOGARITHMIC


async def test_sold_out_costs_no_more_than_a_success_and_writes_its_answer_alone(
    sale: DrivenSale,
) -> None:
    """Case 34: for one request and for a batch; also where another line could have been had."""
    await sale.load({"seat": 12, "box": 100}, order_limit=20, buyer_limit=20)
    people = [f"v{n}" for n in range(24)]
    await sale.admit(*people)
    await sale.reserve("v0", ["seat", 1])  # the server knows the script from here on
    for batch in (1, 10):
        buyers, people = people[1 : 1 + batch], people[batch:]
        requests = [sale.request(buyer, ["box", 1, "seat", 1]) for buyer in buyers]
        success = await commands_of(sale, *requests)
        held = (await sale.stock("seat")).held
        requests = [sale.request(buyer, ["box", 1, "seat", 13]) for buyer in people[1 : 1 + batch]]
        people = people[batch:]
        refused = await commands_of(sale, *requests, outcome="SOLD_OUT")
        assert all(number <= success[name] for name, number in refused.items()), (refused, success)
        writes = {name: refused[name] for name in ("hset", "zadd", "lpop", "rpush", "hdel")}
        assert {name: number for name, number in writes.items() if number} == {"hset": 1}
        assert (await sale.stock("seat")).held == held
