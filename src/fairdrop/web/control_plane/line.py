"""Operations on the line itself: restoring one that was lost (W15), starting one anew (case 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path

from fairdrop.drivers.keys import NAMES, sale_key
from fairdrop.web.wire import Problem

from .bodies import RestorationBody
from .documents import RestorationDocument
from .problems import BAD_BODY, CONFLICT, NOT_FOUND

if TYPE_CHECKING:
    from fairdrop.app import Parts
    from fairdrop.catalog import Sale

ACTOR = "api"
SaleName = Annotated[str, Path(max_length=64, description="The sale's id or slug.")]


def router(parts: Parts) -> APIRouter:
    """The routes of the line."""
    routes = APIRouter(tags=["sales"])

    async def found(name: str) -> Sale:
        known = parts.catalog.known(name)
        parts.catalog.forget(known.id if known is not None else name)
        sale = await parts.catalog.sale(name)
        if sale is None:
            raise Problem(404, "no_such_sale", "There is no sale of this id or slug.")
        return sale

    async def progress(sale: Sale) -> RestorationDocument:
        figures = await parts.inventory.figures(sale.ref, [])
        pace = figures.pace
        return RestorationDocument(
            sale=sale.id,
            epoch=sale.epoch,
            restoring_until_ms=pace.restoring_until_ms
            if pace.restoring_until_ms > figures.now_ms
            else None,
            server_time_ms=figures.now_ms,
            restored=pace.restored,
            restored_inside=pace.restored_inside,
            waiting=figures.waiting,
            lost_tail=pace.lost_tail,
        )

    @routes.get("/sales/{sale}/restoration", responses=NOT_FOUND)
    async def show_restoration(sale: SaleName) -> RestorationDocument:
        """How far the restoration of a lost line is."""
        return await progress(await found(sale))

    @routes.put("/sales/{sale}/restoration", responses=BAD_BODY | NOT_FOUND)
    async def steer_restoration(sale: SaleName, body: RestorationBody) -> RestorationDocument:
        """Start, prolong, shorten or end the time in which people come back and nobody is called.

        It starts by itself when the store has lost a line. `grace_ms` counts from now; 0 ends it.
        """
        known = await parts.loader.keep_loaded(await found(sale))
        await parts.waiting_room.grace(known.ref, body.grace_ms)
        await parts.catalog.note_action(known.id, "restore", {"grace_ms": body.grace_ms}, ACTOR)
        return await progress(known)

    @routes.post("/sales/{sale}/reset", responses=NOT_FOUND | CONFLICT)
    async def reset_line(sale: SaleName) -> RestorationDocument:
        """Start the line anew: no place, admission or receipt from before counts any more.

        Orders and stock stay as they are. Refused while the sale calls people (`wrong_mode`): pause
        or close it first.
        """
        before = await found(sale)
        if not await parts.catalog.reset(before.id, ACTOR):
            raise Problem(
                409,
                "wrong_mode",
                "A line is started anew while its sale is scheduled, paused or closed.",
                mode=before.mode,
            )
        # Whoever still asks for the epoch of before is told that it is not there.
        await parts.store.unlink([sale_key(*before.ref, name) for name in NAMES])
        return await progress(await parts.loader.keep_loaded(await found(before.id)))

    return routes
