"""Operations on sales: create, read, change, steer, figures (W17)."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from fairdrop.catalog import STEERING, CreateOutcome, NewSale, NewVariant, Steer
from fairdrop.errors import StoreUnavailable
from fairdrop.payments import charge_step_minor
from fairdrop.web.wire import Problem

from . import stock
from .bodies import NewSaleBody, SaleChangeBody
from .documents import FiguresDocument, SaleDocument, SaleList, sale_document
from .local_time import same_reading, to_utc, zone_of
from .problems import BAD_BODY, CONFLICT, NOT_FOUND

if TYPE_CHECKING:
    from fairdrop.app import Parts
    from fairdrop.catalog import Sale
    from fairdrop.inventory import Figures

    from .figures import SaleFigures

ACTOR = "api"
"""Who did it, in the audit: accounts of people come with the console's logins."""

SaleName = Annotated[str, Path(max_length=64, description="The sale's id or slug.")]
_NAME = re.compile(r"[a-z0-9-]{1,64}")


def router(parts: Parts, figures: SaleFigures) -> APIRouter:
    """The routes of sales."""
    desk = _Desk(parts)
    routes = APIRouter(tags=["sales"])

    @routes.post("/sales", status_code=201, responses=BAD_BODY | CONFLICT)
    async def create_sale(body: NewSaleBody, response: Response) -> SaleDocument:
        """Create a sale, and bring it into the store, so that it can be joined when it opens.

        A taken slug is refused (`slug_taken`); the answer names the sale that has it.
        """
        created = await desk.create(body)
        response.headers["location"] = f"/admin/v1/sales/{created.id}"
        return await desk.document(created)

    @routes.get("/sales")
    async def list_sales(
        limit: Annotated[int, Query(ge=1, le=200, description="How many.")] = 50,
    ) -> SaleList:
        """The newest sales, newest first."""
        sales = await parts.catalog.sales(limit)
        return SaleList(sales=list(await asyncio.gather(*map(desk.document, sales))))

    @routes.get("/sales/{sale}", responses=NOT_FOUND)
    async def show_sale(sale: SaleName) -> SaleDocument:
        """One sale with all of its settings."""
        return await desk.document(await desk.sale(sale))

    @routes.patch("/sales/{sale}", responses=BAD_BODY | NOT_FOUND | CONFLICT)
    async def change_sale(sale: SaleName, body: SaleChangeBody) -> SaleDocument:
        """Change a sale, also while it runs; the store follows at once.

        Times without an offset are on the clock of the sale's zone. The opening time, the lobby and
        the beacon can change until the sale has opened (`already_opened`).
        """
        return await desk.document(await desk.change(await desk.sale(sale), body))

    for steer in Steer:
        routes.add_api_route(
            f"/sales/{{sale}}/{steer.value}",
            desk.steering(steer),
            methods=["POST"],
            name=f"{steer.value}_sale",
            summary=f"{steer.value.capitalize()} sale",
            description=_DESCRIPTIONS[steer],
            responses=NOT_FOUND | CONFLICT,
        )

    routes.include_router(stock.router(parts, desk.sale))

    @routes.get("/sales/{sale}/figures", responses=NOT_FOUND)
    async def show_figures(sale: SaleName) -> FiguresDocument:
        """The live figures: the line, the stock, the orders, the money."""
        return await figures.of(await desk.sale(sale))

    return routes


_DESCRIPTIONS = {
    Steer.OPEN: "Open a scheduled sale now, or a closed one again. An open lobby is drawn first.",
    Steer.PAUSE: "Call nobody until the sale is resumed. Who is inside can go on.",
    Steer.RESUME: "Call people again, and let new ones join.",
    Steer.DRAIN: "Let nobody join any more; those in the line are still called.",
    Steer.CLOSE: "End the sale: nobody joins, is called or reserves. Orders under way can be paid.",
}


_UNTIL_OPENING = {"opens_at", "lobby_ms", "window_ms", "beacon", "beacon_failure"}


class _Desk:
    """The use cases behind the routes."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def sale(self, name: str) -> Sale:
        """The sale as the database has it now. Raises Problem 404."""
        catalog = self._parts.catalog
        if _NAME.fullmatch(name):
            known = catalog.known(name)
            catalog.forget(known.id if known is not None else name)
            sale = await catalog.sale(name)
            if sale is not None:
                return sale
        raise Problem(404, "no_such_sale", "There is no sale of this id or slug.")

    async def document(self, sale: Sale) -> SaleDocument:
        """The document of a sale, with the mode that the store has it in."""
        return sale_document(sale, await self._figures(sale))

    async def create(self, body: NewSaleBody) -> Sale:
        """Create and load. Raises Problem 409 or 422."""
        parts = self._parts
        zone = zone_of(body.timezone)
        opens_at = _moment("opens_at", body.opens_at, zone)
        closes_at = _moment("closes_at", body.closes_at, zone) if body.closes_at else None
        _check_span(opens_at, closes_at)
        if body.gateway not in parts.gateways:
            known = ", ".join(sorted(parts.gateways)) or "none"
            raise _invalid("gateway", f"No such gateway is configured; there is: {known}.")
        _check_bounds(body.rate_min_per_s, body.rate_max_per_s)
        self._check_source(body.stock_source)
        _check_prices(body)
        settings = body.model_dump(exclude={"variants", "opens_at", "closes_at"})
        new = NewSale(
            **settings,
            opens_at=opens_at,
            closes_at=closes_at,
            variants=tuple(NewVariant(**variant.model_dump()) for variant in body.variants),
        )
        outcome, sale_id = await parts.catalog.create(new, ACTOR)
        if outcome is CreateOutcome.SLUG_TAKEN:
            taken = await self.sale(new.slug)
            raise Problem(
                409, "slug_taken", "Another sale has this slug; choose another.", sale=taken.id
            )
        # Somebody may have asked for the slug before there was a sale of that name.
        parts.catalog.forget(new.slug)
        return await self._loaded(await self.sale(sale_id))

    async def change(self, sale: Sale, body: SaleChangeBody) -> Sale:
        """Change what the body names. Raises Problem 409 or 422."""
        changes: dict[str, Any] = body.model_dump(exclude_unset=True)
        if changes.pop("timezone", sale.timezone) != sale.timezone:
            raise _invalid("timezone", "The zone of a sale cannot change.")
        zone = zone_of(sale.timezone)
        for field in ("opens_at", "closes_at"):
            if field in changes:
                before: datetime | None = getattr(sale, field)
                if before is not None and same_reading(changes[field], before, zone):
                    del changes[field]
                    continue
                changes[field] = _moment(field, changes[field], zone)
        _check_span(
            changes.get("opens_at", sale.opens_at), changes.get("closes_at", sale.closes_at)
        )
        self._check_source(changes.get("stock_source"))
        _check_bounds(
            changes.get("rate_min_per_s", sale.rate_min_per_s),
            changes.get("rate_max_per_s", sale.rate_max_per_s),
        )
        changes = {name: value for name, value in changes.items() if value != getattr(sale, name)}
        if not changes:
            return sale
        if not _UNTIL_OPENING.isdisjoint(changes):
            mode = await self._mode(sale)
            if mode not in {"scheduled", "lobby"}:
                raise Problem(
                    409,
                    "already_opened",
                    "The sale has opened: its opening time, lobby and beacon stay.",
                    mode=mode,
                )
        if changes.get("lobby_ms") and sale.commitment is None:
            raise _invalid("lobby_ms", "This sale was made without a draw: it can have no lobby.")
        await self._parts.catalog.change(sale.id, changes, ACTOR)
        return await self._loaded(await self.sale(sale.id))

    def _check_source(self, source: str | None) -> None:
        if source == "warehouse" and self._parts.settings.warehouse_url is None:
            raise _invalid("stock_source", "No warehouse is configured (FAIRDROP_WAREHOUSE_URL).")

    def steering(self, steer: Steer) -> Any:
        """The endpoint that steers."""

        async def endpoint(sale: SaleName) -> SaleDocument:
            return await self.document(await self._steer(await self.sale(sale), steer))

        return endpoint

    async def _steer(self, sale: Sale, steer: Steer) -> Sale:
        mode = await self._mode(sale)
        if mode != sale.mode:
            # The store's clock has opened or closed the sale; the database has yet to hear of it.
            await self._parts.catalog.note_mode(sale, mode)
        closing = sale.closes_at
        if steer is not Steer.CLOSE and closing is not None and closing <= datetime.now(UTC):
            raise Problem(
                409, "past_closing_time", "The closing time has passed: change it first.", mode=mode
            )
        if not await self._parts.catalog.steer(sale.id, steer, ACTOR):
            now = await self._mode(await self.sale(sale.id))
            possible = ", ".join(STEERING[steer][1])
            detail = f"The sale is {now}; {steer.value} is possible from: {possible}."
            raise Problem(409, "wrong_mode", detail, mode=now)
        return await self._loaded(await self.sale(sale.id))

    async def _loaded(self, sale: Sale) -> Sale:
        """Have the store take over what the database has; if it is away, a worker does it later."""
        try:
            return await self._parts.loader.keep_loaded(sale)
        except StoreUnavailable:
            return sale

    async def _mode(self, sale: Sale) -> str:
        figures = await self._figures(sale)
        return figures.mode if figures is not None else sale.mode

    async def _figures(self, sale: Sale) -> Figures | None:
        if sale.epoch == 0:
            return None
        try:
            return await self._parts.inventory.figures(sale.ref, [])
        except StoreUnavailable:
            return None


def _moment(field: str, text: str, zone: Any) -> datetime:
    try:
        return to_utc(text, zone)
    except ValueError as error:
        raise _invalid(field, f"{error}.") from None


def _check_span(opens_at: datetime, closes_at: datetime | None) -> None:
    if closes_at is not None and closes_at <= opens_at:
        raise _invalid("closes_at", "The closing time is after the opening time.")


def _check_bounds(rate_min_per_s: float, rate_max_per_s: float) -> None:
    if rate_max_per_s < rate_min_per_s:
        raise _invalid("rate_max_per_s", "The highest pace is not below the lowest one.")


def _check_prices(body: NewSaleBody) -> None:
    """What is shown can be charged, to the minor unit, or the sale is not set up (case 24)."""
    step = charge_step_minor(body.gateway, body.currency)
    for number, variant in enumerate(body.variants):
        if variant.price_minor % step:
            raise _invalid(
                f"variants.{number}.price_minor",
                f"{body.gateway} charges {body.currency} in steps of {step} minor units.",
            )


def _invalid(field: str, detail: str) -> Problem:
    """The same document that a failed validation gives."""
    found = [{"field": f"body.{field}", "detail": detail}]
    return Problem(422, "invalid_request", f"body.{field}: {detail}", errors=found)
