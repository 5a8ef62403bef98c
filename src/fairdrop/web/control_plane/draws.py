"""Operations on draws: how far one is, and the beacon's value by hand (W4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path

from fairdrop.draw import EnterOutcome
from fairdrop.web.wire import Problem

from .bodies import BeaconBody
from .documents import DrawDocument
from .problems import BAD_BODY, CONFLICT, NOT_FOUND

if TYPE_CHECKING:
    from fairdrop.app import Parts

ACTOR = "api"
SaleName = Annotated[str, Path(max_length=64, description="The sale's id or slug.")]

_REFUSALS = {
    EnterOutcome.NOT_ASKED: ("no_beacon", "This sale's draw uses no beacon."),
    EnterOutcome.LIST_OPEN: (
        "list_open",
        "The lobby is not shut: whoever knew the value could choose entries that suit it.",
    ),
    EnterOutcome.DRAWN: ("already_drawn", "The order is drawn: nothing can change it any more."),
}


def router(parts: Parts) -> APIRouter:
    """The routes of draws."""
    routes = APIRouter(tags=["sales"])

    async def found(name: str) -> DrawDocument:
        sale = await parts.catalog.sale(name)
        record = await parts.draws.record(sale.id) if sale is not None else None
        if record is None:
            raise Problem(404, "no_such_sale", "There is no sale of this id or slug with a draw.")
        return DrawDocument(
            sale=record.sale_id,
            state=record.state.lower(),
            beacon=record.beacon,
            beacon_value=record.beacon_value,
            entries=record.entries,
            root=record.root,
        )

    @routes.get("/sales/{sale}/draw", responses=NOT_FOUND)
    async def show_draw(sale: SaleName) -> DrawDocument:
        """How far the draw of a sale is. The seed is in the public files once it is revealed."""
        return await found(sale)

    @routes.put("/sales/{sale}/draw/beacon", responses=BAD_BODY | NOT_FOUND | CONFLICT)
    async def enter_beacon(sale: SaleName, body: BeaconBody) -> DrawDocument:
        """Enter the beacon's value, once the list is closed; the draw goes on at once.

        Refused while the list can grow (`list_open`), after the draw (`already_drawn`), and for a sale
        without a beacon (`no_beacon`).
        """
        document = await found(sale)
        outcome = await parts.draws.enter_beacon(document.sale, body.value, ACTOR)
        if outcome is not EnterOutcome.ENTERED:
            code, detail = _REFUSALS[outcome]
            raise Problem(409, code, detail)
        return await found(sale)

    return routes
