"""What the store has of a sale, read in pages: no read is long enough to be felt."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec
from redis.exceptions import RedisError

from fairdrop.drivers.keys import sale_key
from fairdrop.errors import StoreUnavailable

from .rules import Hold, StoredStock

if TYPE_CHECKING:
    from fairdrop.drivers.store import Store
    from fairdrop.ids import SaleRef

PAGE = 2_000
_decode = msgspec.msgpack.decode


class StoredSale(NamedTuple):
    """The stock and the holds of a sale, and the store's time."""

    now_ms: int
    variants: dict[str, StoredStock]
    holds: dict[str, Hold]


async def read_sale(store: Store, sale: SaleRef) -> StoredSale | None:
    """All that the store has; None when it has not got the sale. Raises StoreUnavailable."""
    try:
        return await _read(store.redis, sale)
    except (RedisError, OSError) as error:
        raise StoreUnavailable(f"audit: {type(error).__name__}: {error}") from error


async def _read(redis: Any, sale: SaleRef) -> StoredSale | None:
    def key(name: str) -> str:
        return sale_key(sale.id, sale.epoch, name)

    if not await redis.exists(key("cfg")):
        return None
    seconds, microseconds = await redis.time()
    fields: dict[str, dict[str, int]] = defaultdict(dict)
    for name, value in (await redis.hgetall(key("stk"))).items():
        variant, _, field = name.decode().rpartition(":")
        fields[variant][field] = int(value)
    variants = {}
    for variant, stock in fields.items():
        variants[variant] = StoredStock(
            quantity=stock.get("q", 0),
            held=stock.get("h", 0),
            sold=stock.get("s", 0),
            next_serial=stock.get("n", 1),
            last_serial=stock.get("l", 0),
            returned=await _list(redis, f"{key('ret')}:{variant}"),
        )
    holds = {}
    async for name, packed in redis.hscan_iter(key("holds"), count=PAGE):
        hold_id = cast("bytes", name).decode()
        _, _, deadline_ms, _, lines = _decode(packed)[:5]
        units = frozenset((variant, serial) for variant, serials in lines for serial in serials)
        holds[hold_id] = Hold(hold_id, int(deadline_ms), units)
    return StoredSale(seconds * 1_000 + microseconds // 1_000, variants, holds)


async def _list(redis: Any, key: str) -> list[int]:
    found: list[int] = []
    while True:
        page = await redis.lrange(key, len(found), len(found) + PAGE - 1)
        found += map(int, page)
        if len(page) < PAGE:
            return found
