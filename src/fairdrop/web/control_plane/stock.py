"""Operations on stock: more, fewer, or exactly so many units, while a sale runs (H9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Header, Path

from fairdrop.checkout import StockOutcome, UnknownVariant, match_units
from fairdrop.web.wire import Problem

from .bodies import UNITS_MAX, StockBody, StockListBody
from .documents import StockList, VariantStock
from .problems import BAD_BODY, CONFLICT, NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from fairdrop.app import Parts
    from fairdrop.catalog import Sale

    Find = Callable[[str], Awaitable[Sale]]

ACTOR = "api"
SaleName = Annotated[str, Path(max_length=64, description="The sale's id or slug.")]
VariantId = Annotated[str, Path(max_length=64, description="The variant's id.")]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        description="1 to 64 letters, digits, - or _: with the same key the change is made once.",
    ),
]


def router(parts: Parts, find: Find) -> APIRouter:
    """The routes of stock; ``find`` gives the sale of a name."""
    routes = APIRouter(tags=["stock"])

    @routes.post(
        "/sales/{sale}/variants/{variant}/stock", responses=BAD_BODY | NOT_FOUND | CONFLICT
    )
    async def change_stock(
        sale: SaleName, variant: VariantId, body: StockBody, key: Key = None
    ) -> VariantStock:
        """Put more units on sale, or take free ones out; at once for everybody.

        Units that are held or sold are never taken out (`too_few_free`).
        """
        found = await find(sale)
        return await _change(parts, found, variant, body.delta, key or "")

    @routes.post("/sales/{sale}/stock", responses=BAD_BODY | NOT_FOUND | CONFLICT)
    async def set_stock(sale: SaleName, body: StockListBody) -> StockList:
        """Have exactly so many units of each variant named, held and sold ones included.

        Nothing changes when a variant is unknown, or has more held and sold units than listed
        (`too_few_free`). Repeating it changes nothing.
        """
        return await _set(parts, await find(sale), body)

    return routes


async def _change(parts: Parts, sale: Sale, variant_id: str, delta: int, key: str) -> VariantStock:
    variant = sale.variant(variant_id)
    if variant is None:
        raise Problem(404, "no_such_variant", "The sale has no variant of this id.")
    if variant.last_serial + delta > UNITS_MAX:
        raise _invalid("delta", f"One variant has at most {UNITS_MAX} units in its life.")
    answer = await parts.stock.change(sale, variant_id, delta, ACTOR, key=key)
    if answer.outcome is StockOutcome.TOO_FEW_FREE:
        raise Problem(
            409,
            "too_few_free",
            f"Only {answer.free} units are free; the others are held or sold.",
            free=answer.free,
        )
    if answer.outcome is StockOutcome.KEY_REUSED:
        raise Problem(422, answer.outcome, "This Idempotency-Key came with another request before.")
    return (await _figures(parts, sale, [variant_id]))[0]


async def _set(parts: Parts, sale: Sale, body: StockListBody) -> StockList:
    try:
        wanted = match_units(sale, [(line.variant, line.units) for line in body.stock])
    except UnknownVariant as error:
        raise _invalid("stock", f"{error}.") from None
    for variant in sale.variants:
        more = wanted.get(variant.id, 0) - variant.quantity
        if variant.last_serial + more > UNITS_MAX:
            raise _invalid("stock", f"One variant has at most {UNITS_MAX} units in its life.")
    now = {stock.id: stock for stock in await _figures(parts, sale, list(wanted))}
    short = {
        variant: now[variant].held + now[variant].sold
        for variant, units in wanted.items()
        if units < now[variant].held + now[variant].sold
    }
    if not short:
        answers = await parts.stock.set_units(sale, wanted, ACTOR, body.source)
        # Somebody was faster than we between looking and changing.
        short = {
            variant: wanted[variant]
            for variant, answer in answers.items()
            if answer.outcome is StockOutcome.TOO_FEW_FREE
        }
    if short:
        names = ", ".join(sorted(now[variant].name for variant in short))
        raise Problem(
            409,
            "too_few_free",
            f"More units are held or sold than listed, of: {names}.",
            variants=sorted(short),
        )
    return StockList(variants=await _figures(parts, sale, list(wanted)))


async def _figures(parts: Parts, sale: Sale, variants: Sequence[str]) -> list[VariantStock]:
    """Live stock, once the store has taken over what the database says."""
    parts.catalog.forget(sale.id)
    sale = await parts.loader.keep_loaded(await parts.catalog.sale(sale.id) or sale)
    figures = await parts.inventory.figures(sale.ref, variants)
    found = []
    for variant_id, stock in zip(variants, figures.variants, strict=True):
        variant = sale.variant(variant_id)
        name = f"{variant.product}, {variant.name}" if variant is not None else variant_id
        found.append(
            VariantStock(
                id=variant_id,
                name=name,
                quantity=stock.quantity,
                free=stock.free,
                held=stock.held,
                sold=stock.sold,
                buffer=stock.buffer,
            )
        )
    return found


def _invalid(field: str, detail: str) -> Problem:
    found = [{"field": f"body.{field}", "detail": detail}]
    return Problem(422, "invalid_request", f"body.{field}: {detail}", errors=found)
