"""``fairdrop order``: look at one order, and give its money back (O9)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

from .sale import choose_target

if TYPE_CHECKING:
    from .admin_client import AdminClient

app = typer.Typer(
    help="Look at an order of a running Fairdrop, and refund it.",
    no_args_is_help=True,
    rich_markup_mode=None,
    callback=choose_target,
)

OrderId = Annotated[str, typer.Argument(metavar="ORDER", help="The order's id.")]


@app.command("show")
def show(context: typer.Context, order: OrderId) -> None:
    """Everything that happened to an order, as JSON."""
    typer.echo(json.dumps(_client(context).get(_path(order)), indent=2, ensure_ascii=False))


@app.command("refund")
def refund(
    context: typer.Context,
    order: OrderId,
    reason: Annotated[str, typer.Option(help="Why, for the audit.")],
    amount: Annotated[
        str | None, typer.Option(help="In the order's currency, like 10.50 [default: all]")
    ] = None,
    unit: Annotated[
        list[str] | None,
        typer.Option(help="A unit to refund, as VARIANT:SERIAL; any number of them."),
    ] = None,
    to_pool: Annotated[
        bool, typer.Option("--to-pool", help="Put the units on sale again.")
    ] = False,
    keep_fee: Annotated[bool, typer.Option("--keep-fee", help="Keep the booking fee.")] = False,
    key: Annotated[
        str | None, typer.Option(help="Idempotency-Key: the same one when you repeat a command.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Give money of a confirmed order back: all that is left, an amount, or that of single units.

    Never more goes back than came in. The gateway pays within seconds.
    """
    from fairdrop.ids import new_id
    from fairdrop.money import format_minor

    from .sale_input import parse_price

    client = _client(context)
    body: dict[str, Any] = {"reason": reason, "to_pool": to_pool, "keep_fee": keep_fee}
    try:
        if amount is not None:
            body["amount_minor"] = parse_price(amount, client.get(_path(order))["currency"])
        if unit:
            body["units"] = [_unit(text) for text in unit]
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    key = key or new_id()
    document = client.request("POST", _path(order, "refund"), body, key=key)
    if as_json:
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    shown = format_minor(document["amount_minor"], document["currency"])
    fee = format_minor(document["fee_minor"], document["currency"])
    typer.echo(f"{shown} go back ({fee} of it booking fee), refund {document['id']}.")


def _unit(text: str) -> dict[str, Any]:
    variant, colon, serial = text.rpartition(":")
    if not colon or not serial.isascii() or not serial.isdigit():
        raise ValueError(f"{text!r} is not VARIANT:SERIAL")
    return {"variant": variant, "serial": int(serial)}


def _path(*parts: str) -> str:
    return "/orders/" + "/".join(quote(part, safe="") for part in parts)


def _client(context: typer.Context) -> AdminClient:
    from .admin_client import AdminClient
    from .local_site import control_plane, load_settings

    target = context.obj
    return AdminClient(*control_plane(load_settings(target.data_dir), target.url))
