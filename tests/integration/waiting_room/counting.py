"""Counting everybody, and making crowds that nobody had to wait for."""

from __future__ import annotations

from typing import Any

from tests.driven_sale import DrivenSale


async def assert_everybody_is_counted_once(sale: DrivenSale) -> None:
    """Joined = lobby + waiting + called + inside + missed + left + done, and nobody is in two places."""
    figures = await sale.figures()
    places = (figures.lobby, figures.waiting, figures.called, figures.active, figures.missed)
    assert figures.joined == sum(places) + figures.left + figures.done, figures
    redis = sale.scripts.store.redis
    people: list[Any] = []
    for name in ("line", "called", "active", "missed"):
        people += await redis.zrange(sale.key(name), 0, -1)
    assert len(people) == len(set(people)) == sum(places) - figures.lobby
    called_or_inside = figures.called + figures.active
    assert await redis.hlen(sale.key("place")) == called_or_inside
    assert await redis.hlen(sale.key("adm")) == figures.active


async def place_called(sale: DrivenSale, people: int, deadline_ms: int) -> None:
    """People who were called, as ``tick`` leaves them, written straight into the store."""
    redis = sale.scripts.store.redis
    for start in range(0, people, 5_000):
        several: dict[Any, Any] = {f"v{n}": n + 1 for n in range(start, min(people, start + 5_000))}
        await redis.zadd(sale.key("called"), dict.fromkeys(several, deadline_ms))
        await redis.hset(sale.key("place"), mapping=several)
    await redis.hset(sale.key("ctr"), mapping={"seq": people, "joined": people, "served": people})
