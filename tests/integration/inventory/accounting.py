"""Every unit of a sale, looked for in every place that the store has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from tests.driven_sale import DrivenSale, unpack_holds


async def assert_every_unit_is_in_one_place(
    sale: DrivenSale,
    *,
    sold: Mapping[str, Collection[int]] | None = None,
    retired: Mapping[str, Collection[int]] | None = None,
) -> dict[str, int]:
    """Fresh, returned, held, sold and retired serials are disjoint and are all there are.

    ``sold`` and ``retired`` are what the caller knows, since the store only counts them. Returns
    the units that the store counts for each buyer.
    """
    figures = await sale.figures()
    reads = sale.scripts.store.redis.pipeline(transaction=False)
    reads.hgetall(sale.key("holds"))
    reads.zrange(sale.key("due"), 0, -1)
    reads.hgetall(sale.key("buyer"))
    reads.hgetall(sale.key("stk"))
    for variant in sale.variants:
        reads.lrange(sale.key("ret", f":{variant}"), 0, -1)
    raw_holds, due, raw_owned, stock, *returned = await reads.execute()
    holds = unpack_holds(raw_holds)
    for variant, shown, back in zip(sale.variants, figures.variants, returned, strict=True):
        assert shown.free + shown.held + shown.sold == shown.quantity, (variant, shown)
        first, last = (int(stock[f"{variant}:{field}".encode()]) for field in "nl")
        places = {
            "fresh": list(range(first, last + 1)),
            "returned": [int(serial) for serial in back],
            "held": [
                serial
                for _, _, _, _, lines in holds.values()
                for name, serials in lines
                if name == variant
                for serial in serials
            ],
            "sold": sorted((sold or {}).get(variant, ())),
            "retired": sorted((retired or {}).get(variant, ())),
        }
        everywhere = [serial for serials in places.values() for serial in serials]
        assert len(everywhere) == len(set(everywhere)), (variant, places)
        assert len(places["fresh"]) + len(places["returned"]) == shown.free
        assert len(places["held"]) == shown.held
        if sold is not None:
            assert len(places["sold"]) == shown.sold
            assert sorted(everywhere) == list(range(1, last + 1)), (variant, places)
    assert {name.decode() for name in due} == set(holds)
    owned = {buyer.decode(): int(units) for buyer, units in raw_owned.items()}
    held_by: Counter[str] = Counter()
    for buyer, _, _, _, lines in holds.values():
        held_by[buyer] += sum(len(serials) for _, serials in lines)
    assert all(owned.get(buyer, 0) >= units for buyer, units in held_by.items())
    assert min(owned.values(), default=1) > 0
    return owned
