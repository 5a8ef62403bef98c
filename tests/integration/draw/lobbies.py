"""Sales with a lobby, the people in it, and the clock that shuts it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from fairdrop.app import Parts
from fairdrop.catalog import NewSale, NewVariant, Sale
from fairdrop.draw import ENTRIES_FILE, ORDER_FILE, PublicFiles, parameters
from fairdrop.drivers.keys import sale_key
from fairdrop.ids import new_id
from fairdrop.waiting_room import Standing, State
from fairdrop.web.wire import encode


async def with_a_lobby(parts: Parts, **changes: Any) -> Sale:
    """A sale that opens in an hour and has its lobby open."""
    settings: dict[str, Any] = {
        "slug": f"lobby-{new_id()}",
        "name": "Lobby",
        "opens_at": datetime.now(UTC) + timedelta(hours=1),
        "currency": "EUR",
        "variants": (NewVariant("Ticket", "Standing", 1_000, 10),),
        "lobby_ms": 7_200_000,
        "rate_per_s": 100_000.0,
        "burst_ms": 1_000,
        "cap": 100_000,
        "line_cap_factor": 0.0,
        **changes,
    }
    _, sale_id = await parts.catalog.create(NewSale(**settings), "test")
    sale = await parts.catalog.sale(sale_id)
    assert sale is not None
    sale = await parts.loader.keep_loaded(sale)
    await parts.waiting_room.tick(sale.ref)
    return sale


async def enter(parts: Parts, sale: Sale, people: int, name: str = "v") -> dict[str, str]:
    """So many people in the lobby: visitor -> entry id."""
    joins = [parts.waiting_room.join(sale.ref, f"{name}{n}") for n in range(people)]
    standings: list[Standing] = [await join for join in joins]
    assert {standing.place.state for standing in standings} == {State.LOBBY}
    return {f"{name}{n}": standing.place.entry for n, standing in enumerate(standings)}


async def shut(parts: Parts, sale: Sale) -> None:
    """The window's end, now: what the clock would do in an hour."""
    await parts.store.redis.hset(sale_key(*sale.ref, "cfg"), "opens_ms", 1)
    await parts.waiting_room.tick(sale.ref)


async def in_line(parts: Parts, sale: Sale) -> list[str]:
    """Those who wait, the first first."""
    raw: list[Any] = await parts.store.redis.zrange(sale_key(*sale.ref, "line"), 0, -1)
    return [visitor.decode() for visitor in raw]


async def published(parts: Parts, sale: Sale) -> PublicFiles:
    """The public files as anybody gets them."""
    record = await parts.draws.record(sale.id)
    assert record is not None

    async def text(name: str) -> bytes | None:
        if await parts.draws.file_size(sale.id, name) is None:
            return None
        return b"".join([part async for part in parts.draws.file_parts(sale.id, name)])

    claims = parameters(record, parts.entry_proofs.public_keys())
    return PublicFiles(encode(claims), await text(ENTRIES_FILE) or b"", await text(ORDER_FILE))
