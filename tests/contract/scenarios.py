"""For every script, a short story that provokes each of its replies on a real server.

A scenario yields (the reply that its header promises, the reply that came).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from fairdrop.drivers.sale_scripts import SaleNotLoaded
from fairdrop.inventory.model import VariantLoad
from tests.driven_sale import DrivenSale

Provoked = AsyncIterator[tuple[str, str]]
Scenario = Callable[[DrivenSale], Provoked]

SCENARIOS: dict[str, Scenario] = {}


def scenario(told: Scenario) -> Scenario:
    SCENARIOS[told.__name__] = told
    return told


async def not_loaded(call: Awaitable[Any]) -> str:
    """NO_SALE is told to every caller as one exception."""
    try:
        await call
    except SaleNotLoaded:
        return "NO_SALE"
    return "answered as if the sale were loaded"


async def with_a_lobby(sale: DrivenSale) -> DrivenSale:
    """Another sale, in whose lobby somebody is."""
    other = DrivenSale(sale.scripts)
    await other.load(mode="lobby", opens_ms=other.now_ms + 1_000, lobby_ms=1_000)
    await other.join("early")
    return other


# ---------------------------------------------------------------- waiting room


@scenario
async def join(sale: DrivenSale) -> Provoked:
    yield "NO_SALE", await not_loaded(sale.join("a"))
    await sale.load(cap=1, mode="scheduled")
    yield "NOT_ENTERED", (await sale.join("a"))[0].state
    yield "LOBBY", (await (await with_a_lobby(sale)).join("early"))[0].state
    await sale.load(mode="open")
    line = await sale.join_line("a", "b")
    yield "OK", line.status
    yield "WAITING", line.places[1].state
    await sale.tick()
    yield "READY", (await sale.join("a"))[0].state
    await sale.claim("a")
    yield "ADMITTED", (await sale.join("a"))[0].state
    await sale.load(mode="closed")
    yield "CLOSED", (await sale.join("late"))[0].state
    await sale.load({"seat": 1}, mode="open", line_cap_milli=1_000)
    await sale.tick()
    await sale.join("one more")
    yield "LINE_FULL", (await sale.join("one too many"))[0].state


@scenario
async def status(sale: DrivenSale) -> Provoked:
    yield "NO_SALE", await not_loaded(sale.status("a"))
    yield "LOBBY", (await (await with_a_lobby(sale)).status("early"))[0].state
    await sale.load(cap=2)
    yield "NOT_ENTERED", (await sale.status("a"))[0].state
    await sale.join("a", "b", "c")
    await sale.tick()
    await sale.claim("a")
    line = await sale.status_line("a", "b", "c")
    yield "OK", line.status
    yield "ADMITTED", line.places[0].state
    yield "READY", line.places[1].state
    yield "WAITING", line.places[2].state
    sale.pass_ms(60_000)
    yield "MISSED", (await sale.status("b"))[0].state
    await sale.load(mode="closed")
    yield "CLOSED", (await sale.status("stranger"))[0].state


@scenario
async def claim(sale: DrivenSale) -> Provoked:
    yield "NO_SALE", await not_loaded(sale.claim("a"))
    yield "LOBBY", (await (await with_a_lobby(sale)).claim("early"))[0].state
    await sale.load(cap=2)
    await sale.join("a", "b", "c")
    await sale.tick()
    yield "ADMITTED", (await sale.claim("a"))[0].state
    yield "WAITING", (await sale.claim("c"))[0].state
    yield "NOT_ENTERED", (await sale.claim("stranger"))[0].state
    sale.pass_ms(60_000)
    yield "MISSED", (await sale.claim("b"))[0].state
    line = await sale.scripts.claim(sale.ref, [("a", "x")], now_ms=sale.now_ms)
    yield "OK", line.status


@scenario
async def leave(sale: DrivenSale) -> Provoked:
    yield "NO_SALE", await not_loaded(sale.leave("a"))
    await sale.load()
    await sale.join("a")
    yield "LEFT", (await sale.leave("a"))[0]
    yield "NOT_THERE", (await sale.leave("a"))[0]
    yield "OK", (await sale.scripts.leave(sale.ref, [("a", None, False)])).status


@scenario
async def front(sale: DrivenSale) -> Provoked:
    yield "NO_SALE", await not_loaded(sale.front("a"))
    await sale.load(mode="scheduled", opens_ms=sale.now_ms + 1_000)
    yield "TOO_EARLY", (await sale.front("a"))[0]
    yield "PLACED", (await sale.front("a", early=True))[0]
    yield "UNCHANGED", (await sale.front("a", early=True))[0]
    yield "OK", (await sale.scripts.front(sale.ref, [("a", 2, True)])).status
    await sale.load(mode="closed")
    yield "SHUT", (await sale.front("b", early=True))[0]


@scenario
async def revocations(sale: DrivenSale) -> Provoked:
    yield "NO_SALE", await not_loaded(sale.revocations())
    await sale.load()
    await sale.admit("a")
    await sale.leave("a")
    yield "OK", (await sale.revocations()).status


@scenario
async def called(sale: DrivenSale) -> Provoked:
    yield "NO_SALE", await not_loaded(sale.called())
    await sale.load()
    await sale.join("a")
    await sale.tick()
    yield "OK", (await sale.called()).status


@scenario
async def tick(sale: DrivenSale) -> Provoked:
    yield "NO_SALE", await not_loaded(sale.tick())
    await sale.load(cap=2)
    await sale.join("a", "b", "c")
    yield "OK", (await sale.tick()).status


@scenario
async def observe(sale: DrivenSale) -> Provoked:
    yield "NO_SALE", await not_loaded(sale.scripts.observe(sale.ref, [1, 0, 0]))
    await sale.load()
    yield "OK", (await sale.scripts.observe(sale.ref, [1, 0, 0])).status


@scenario
async def measures(sale: DrivenSale) -> Provoked:
    async def measured() -> str:
        reply = await sale.scripts.measures(sale.ref, [5_000], now_ms=sale.now_ms)
        return str(reply.status)

    yield "NO_SALE", await not_loaded(measured())
    await sale.load(adaptive=0)
    yield "NOT_DUE", await measured()
    await sale.load(adaptive=1)
    yield "DUE", await measured()


@scenario
async def adapt(sale: DrivenSale) -> Provoked:
    async def adapted() -> str:
        batch = [0, 5_000, 2_000, "up:healthy", 0, 0, 0]
        return str((await sale.scripts.adapt(sale.ref, batch, now_ms=sale.now_ms)).status)

    yield "NO_SALE", await not_loaded(adapted())
    await sale.load(adaptive=1, rate_min_milli=1_000, rate_max_milli=9_000)
    yield "ADAPTED", await adapted()
    yield "TOO_LATE", await adapted()


@scenario
async def restore(sale: DrivenSale) -> Provoked:
    yield "NO_SALE", await not_loaded(sale.restore("a", 1))
    await sale.load(bought={"c": 1})
    yield "RESTORED", await sale.restore("a", 1)
    yield "HAS_PLACE", await sale.restore("a", 1)
    yield "ADMITTED_AGAIN", await sale.restore("b", 2, "adm-b", 0, sale.now_ms + 1)
    yield "PLACE_USED", await sale.restore("c", 3)
    batch = [("a", 1, False, 0, 0, False)]
    yield "OK", (await sale.scripts.restore(sale.ref, batch, now_ms=sale.now_ms)).status
    await sale.load(mode="closed")
    yield "SALE_CLOSED", await sale.restore("d", 4)


@scenario
async def grace(sale: DrivenSale) -> Provoked:
    yield "NO_SALE", await not_loaded(sale.grace(1_000))
    await sale.load()
    yield "OK", (await sale.scripts.grace(sale.ref, [1_000], now_ms=sale.now_ms)).status


# ---------------------------------------------------------------- access


@scenario
async def rates(sale: DrivenSale) -> Provoked:
    yield "OK", (await sale.scripts.rates(sale.ref, [("requests:a", 1)])).status


@scenario
async def entrants(sale: DrivenSale) -> Provoked:
    yield "NO_SALE", await not_loaded(sale.entrants())
    await sale.load(mode="lobby", opens_ms=sale.now_ms + 1_000, lobby_ms=1_000)
    await sale.join("a")
    yield "NOT_SHUT", (await sale.entrants()).status
    sale.pass_ms(1_000)
    await sale.tick()
    yield "OK", (await sale.entrants()).status


@scenario
async def fill(sale: DrivenSale) -> Provoked:
    yield "NO_SALE", await not_loaded(sale.fill(1, "a"))
    await sale.load(mode="lobby", opens_ms=sale.now_ms + 1_000, lobby_ms=1_000)
    await sale.join("a", "b")
    yield "NOT_SHUT", (await sale.fill(1, "a")).status
    sale.pass_ms(1_000)
    await sale.tick()
    yield "ELSEWHERE", (await sale.fill(2, "a")).status
    yield "OK", (await sale.fill(1, "a")).status


@scenario
async def spend(sale: DrivenSale) -> Provoked:
    once, again = [("a", 1_000, "first")], [("a", 1_000, "second")]
    yield "FRESH", (await sale.scripts.spend(sale.ref, once)).outcomes[0]
    yield "SPENT", (await sale.scripts.spend(sale.ref, again)).outcomes[0]
    yield "OK", (await sale.scripts.spend(sale.ref, once)).status


# ---------------------------------------------------------------- inventory


@scenario
async def reserve(sale: DrivenSale) -> Provoked:
    yield "NO_SALE", await not_loaded(sale.reserve("a", ["seat", 1]))
    await sale.load({"seat": 5}, order_limit=3, buyer_limit=4)
    yield "NOT_ADMITTED", (await sale.reserve("a", ["seat", 1])).outcome
    await sale.admit("a", "b")
    yield "OTHER_ADMISSION", (await sale.reserve("a", ["seat", 1], admission="adm-b")).outcome
    yield "ORDER_LIMIT", (await sale.reserve("a", ["seat", 4])).outcome
    yield "UNKNOWN_VARIANT", (await sale.reserve("a", ["box", 1])).outcome
    yield "RESERVED", (await sale.reserve("a", ["seat", 3], hold="h", key="k")).outcome
    yield "REPLAYED", (await sale.reserve("a", ["seat", 3], key="k")).outcome
    yield "KEY_REUSED", (await sale.reserve("a", ["seat", 1], key="k", fingerprint="b")).outcome
    yield "ALREADY_RESERVED", (await sale.reserve("a", ["seat", 1])).outcome
    yield "SOLD_OUT", (await sale.reserve("b", ["seat", 3])).outcome
    await sale.commit("h")
    await sale.complete("a")
    await sale.admit("a")
    yield "BUYER_LIMIT", (await sale.reserve("a", ["seat", 2])).outcome
    await sale.reserve("a", ["seat", 1], hold="g", verified=["phone"])
    yield "PERSON_LIMIT", (await sale.reserve("b", ["seat", 1], verified=["phone"])).outcome
    await sale.release("g", "a")
    reply = await sale.scripts.reserve(
        sale.ref, [sale.request("b", ["seat", 1])], now_ms=sale.now_ms
    )
    yield "OK", reply.status
    await sale.load(mode="closed")
    yield "SALE_CLOSED", (await sale.reserve("a", ["seat", 1])).outcome


@scenario
async def change(sale: DrivenSale) -> Provoked:
    yield "NO_SALE", await not_loaded(sale.change("h", "a", ["seat", 1]))
    await sale.load({"seat": 5, "few": 1}, order_limit=4, buyer_limit=3)
    await sale.admit("a", "b", "c")
    await sale.reserve("a", ["seat", 1], hold="h")
    yield "CHANGED", (await sale.change("h", "a", ["seat", 2], key="k")).outcome
    yield "KEY_REUSED", (await sale.change("h", "a", [], key="k", fingerprint="b")).outcome
    yield "SOLD_OUT", (await sale.change("h", "a", ["seat", 1, "few", 2])).outcome
    yield "BUYER_LIMIT", (await sale.change("h", "a", ["seat", 4])).outcome
    yield "ORDER_LIMIT", (await sale.change("h", "a", ["seat", 5])).outcome
    yield "UNKNOWN_VARIANT", (await sale.change("h", "a", ["box", 1])).outcome
    reply = await sale.scripts.change(sale.ref, [], now_ms=sale.now_ms)
    yield "OK", reply.status
    await sale.load(mode="closed")
    yield "SALE_CLOSED", (await sale.change("h", "a", ["seat", 3])).outcome
    await sale.load(mode="open")
    yield "RELEASED", (await sale.change("h", "a", ["seat", 0])).outcome
    yield "NOTHING_HELD", (await sale.change("h", "a", ["seat", 0])).outcome
    await sale.reserve("b", ["seat", 1], hold="b")
    await sale.start("b", "b")
    yield "ORDER_STARTED", (await sale.change("b", "b", ["seat", 0])).outcome
    await sale.reserve("c", ["seat", 1], hold="c")
    await sale.leave("c")
    yield "NOT_ADMITTED", (await sale.change("c", "c", ["seat", 2])).outcome
    sale.pass_ms(600_000)
    yield "EXPIRED", (await sale.change("c", "c", ["seat", 0])).outcome


@scenario
async def start(sale: DrivenSale) -> Provoked:
    yield "NO_SALE", await not_loaded(sale.start("h", "a"))
    await sale.load({"seat": 5})
    await sale.admit("a", "b")
    await sale.reserve("a", ["seat", 1], hold="h")
    await sale.reserve("b", ["seat", 1], hold="too late")
    yield "STARTED", (await sale.start("h", "a")).outcome
    yield "NO_HOLD", (await sale.start("h", "b")).outcome
    sale.pass_ms(600_000)
    yield "EXPIRED", (await sale.start("too late", "b")).outcome
    await sale.admit("c")
    await sale.reserve("c", ["seat", 1], hold="c", verified=["phone"])
    await sale.admit("d")
    await sale.reserve("d", ["seat", 1], hold="d")
    yield "PERSON_LIMIT", (await sale.start("d", "d", ["phone"])).outcome
    reply = await sale.scripts.start(sale.ref, [("h", "a")], now_ms=sale.now_ms)
    yield "OK", reply.status


@scenario
async def release(sale: DrivenSale) -> Provoked:
    yield "NO_SALE", await not_loaded(sale.release("h", "a"))
    await sale.load({"seat": 5})
    await sale.admit("a")
    await sale.reserve("a", ["seat", 1], hold="h")
    yield "RELEASED", (await sale.release("h", "a")).outcome
    yield "NOTHING_HELD", (await sale.release("h", "a")).outcome
    await sale.reserve("a", ["seat", 1], hold="in checkout")
    await sale.start("in checkout", "a")
    yield "ORDER_STARTED", (await sale.release("in checkout", "a")).outcome
    yield "OK", (await sale.scripts.release(sale.ref, [("h", "a", [])])).status


@scenario
async def commit(sale: DrivenSale) -> Provoked:
    yield "NO_SALE", await not_loaded(sale.commit("h"))
    await sale.load({"seat": 5})
    await sale.admit("a")
    await sale.reserve("a", ["seat", 1], hold="h")
    yield "COMMITTED", await sale.commit("h")
    yield "NOTHING_HELD", await sale.commit("h")
    yield "OK", (await sale.scripts.commit(sale.ref, ["h"])).status


@scenario
async def extend(sale: DrivenSale) -> Provoked:
    yield "NO_SALE", await not_loaded(sale.extend("h", sale.now_ms))
    await sale.load({"seat": 5})
    await sale.admit("a")
    await sale.reserve("a", ["seat", 1], hold="h")
    yield "NO_HOLD", await sale.extend("h", sale.now_ms)
    await sale.start("h", "a")
    yield "EXTENDED", await sale.extend("h", sale.now_ms)
    yield "OK", (await sale.scripts.extend(sale.ref, [("h", sale.now_ms)])).status


@scenario
async def expire(sale: DrivenSale) -> Provoked:
    yield "NO_SALE", await not_loaded(sale.expire())
    await sale.load()
    yield "OK", (await sale.expire()).status


@scenario
async def load(sale: DrivenSale) -> Provoked:
    yield "LOADED", (await sale.load({"seat": 5})).status
    yield "UPDATED", (await sale.load({"seat": 5})).status
    sale.version -= 1
    yield "CURRENT", (await sale.load({"seat": 5})).status


@scenario
async def reduce(sale: DrivenSale) -> Provoked:
    yield "NO_SALE", await not_loaded(sale.reduce("seat", 1))
    await sale.load([VariantLoad("seat", 5, 5)])
    yield "REDUCED", (await sale.reduce("seat", 1, "k")).status
    yield "KEY_REUSED", (await sale.reduce("seat", 2, "k")).status
    yield "TOO_FEW_FREE", (await sale.reduce("seat", 5)).status
    yield "UNKNOWN_VARIANT", (await sale.reduce("box", 1)).status


@scenario
async def give_back(sale: DrivenSale) -> Provoked:
    refund = ["refund", "a", [["seat", [1]]]]
    yield "NO_SALE", await not_loaded(sale.scripts.give_back(sale.ref, refund))
    await sale.load([VariantLoad("seat", 5, 5, 2, 1)], bought={"a": 1})
    yield "RETURNED", (await sale.scripts.give_back(sale.ref, refund)).status
    yield "RETURNED_BEFORE", (await sale.scripts.give_back(sale.ref, refund)).status


@scenario
async def figures(sale: DrivenSale) -> Provoked:
    yield "NO_SALE", await not_loaded(sale.figures())
    await sale.load()
    yield "OK", (await sale.figures()).status
