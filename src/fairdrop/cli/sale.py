"""``fairdrop sale``: set up, watch and steer sales of a running Fairdrop, through its admin API."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from .admin_client import AdminClient

app = typer.Typer(
    help="Set up, watch and steer sales of a running Fairdrop.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@dataclass(frozen=True, slots=True)
class _Target:
    """Which Fairdrop the command is about, and how to show what it says."""

    url: str | None
    data_dir: Path | None


@app.callback()
def choose_target(
    context: typer.Context,
    url: Annotated[
        str | None,
        typer.Option(
            envvar="FAIRDROP_URL",
            help="Where Fairdrop runs [default: the one of the data directory, else"
            " http://127.0.0.1:8000]",
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            help="Data directory of `fairdrop up`, for its address and key [default: .fairdrop]"
        ),
    ] = None,
) -> None:
    """Set up, watch and steer sales of a running Fairdrop.

    The API key comes from FAIRDROP_ADMIN_KEY, or from the data directory of the `fairdrop up` that
    runs on this machine.
    """
    context.obj = _Target(url, data_dir)


SaleName = Annotated[str, typer.Argument(metavar="SALE", help="The sale's slug or id.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
def create(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="The sale's name.")] = None,
    variant: Annotated[
        list[str] | None,
        typer.Option(
            "--variant",
            metavar="NAME:PRICE:UNITS",
            help="What is sold, like 'Standing:45.00:100'; repeat it for more."
            " 'Shirt/Large:20:50' names the product too.",
        ),
    ] = None,
    currency: Annotated[str, typer.Option(help="ISO code of the currency.")] = "EUR",
    opens: Annotated[
        str, typer.Option(help="now, +10m (s, m, h, d), or a time like 2026-03-01T08:30.")
    ] = "now",
    closes: Annotated[str | None, typer.Option(help="The same [default: when closed]")] = None,
    timezone: Annotated[str, typer.Option(help="Zone of these times, like Europe/Zurich.")] = "UTC",
    slug: Annotated[
        str | None, typer.Option(help="The sale's name in addresses [default: made of NAME]")
    ] = None,
    description: Annotated[str | None, typer.Option(help="For the sale's page.")] = None,
    rate: Annotated[
        float | None, typer.Option(help="People called per second [default: 50]")
    ] = None,
    cap: Annotated[int | None, typer.Option(help="People inside at most [default: 1000]")] = None,
    fee: Annotated[float | None, typer.Option(help="Booking fee in percent [default: 10]")] = None,
    gateway: Annotated[
        str | None, typer.Option(help="Who takes the money [default: sandbox]")
    ] = None,
    capture: Annotated[
        str | None,
        typer.Option(help="automatic, or manual: taken when the units are secured."),
    ] = None,
    order_limit: Annotated[int | None, typer.Option(help="Units of an order [default: 4]")] = None,
    buyer_limit: Annotated[int | None, typer.Option(help="Units of a buyer [default: 4]")] = None,
    buffer: Annotated[
        int | None, typer.Option(help="Percent of the units that stay unsold [default: 0]")
    ] = None,
    lobby: Annotated[
        str | None,
        typer.Option(help="How long before, like 15m (s, m, h, d); 0: none [default: 15m]"),
    ] = None,
    beacon: Annotated[
        str | None,
        typer.Option(help="Public randomness: manual, or a drand chain's address [default: none]"),
    ] = None,
    file: Annotated[
        typer.FileText | None,
        typer.Option(help="Read the sale from a JSON file instead ('-': standard input)."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a sale.

    Example: fairdrop sale create "Rooftop concert" --variant "Standing:45.00:100"
    --variant "Seat:80.00:50" --opens +5m
    """
    if file is not None:
        body = _read_body(file.read())
    else:
        if not name or not variant:
            raise typer.BadParameter("give a NAME and at least one --variant, or a --file")
        body = _new_sale(name, variant, currency, opens, closes, slug, fee)
        body["timezone"] = timezone
        more = {
            "description": description,
            "gateway": gateway,
            "capture": capture,
            "rate_per_s": rate,
            "cap": cap,
            "order_limit": order_limit,
            "buyer_limit": buyer_limit,
            "buffer_percent": buffer,
            "lobby_ms": _lobby_ms(lobby) if lobby is not None else None,
            "beacon": beacon,
        }
        body |= {key: value for key, value in more.items() if value is not None}
    sale = client_of(context).request("POST", "/sales", body)
    show_document(as_json, sale, _print_sale(None))


@app.command("list")
def list_sales(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List sales, newest first."""
    answer = client_of(context).get("/sales", limit=limit)

    def table(console: Console, document: Any) -> None:
        from .sale_tables import print_sales

        print_sales(console, document["sales"])

    show_document(as_json, answer, table)


@app.command()
def show(context: typer.Context, sale: SaleName, as_json: AsJson = False) -> None:
    """Show a sale with its live figures."""
    client = client_of(context)
    document = client.get(path_of(sale))
    figures = client.get(path_of(sale, "figures")) if document["loaded"] else None
    if as_json:
        show_document(True, {**document, "figures": figures}, _print_sale(None))
    else:
        show_document(False, document, _print_sale(figures))


@app.command("open")
def open_sale(context: typer.Context, sale: SaleName, as_json: AsJson = False) -> None:
    """Open a sale now, or open a closed one again."""
    _steer(context, sale, "open", as_json)


@app.command()
def pause(context: typer.Context, sale: SaleName, as_json: AsJson = False) -> None:
    """Call nobody until the sale is resumed; who is inside can go on."""
    _steer(context, sale, "pause", as_json)


@app.command()
def resume(context: typer.Context, sale: SaleName, as_json: AsJson = False) -> None:
    """Call people again, and let new ones join."""
    _steer(context, sale, "resume", as_json)


@app.command()
def drain(context: typer.Context, sale: SaleName, as_json: AsJson = False) -> None:
    """Let nobody join any more; those in the line are still called."""
    _steer(context, sale, "drain", as_json)


@app.command()
def close(
    context: typer.Context,
    sale: SaleName,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """End a sale: nobody joins or reserves any more; orders under way can be paid."""
    if not yes and sys.stdin.isatty():
        typer.confirm(f"Close {sale}? Those who wait are sent home.", abort=True)
    _steer(context, sale, "close", as_json)


@app.command()
def beacon(
    context: typer.Context,
    sale: SaleName,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="The value, as it was published.")],
    as_json: AsJson = False,
) -> None:
    """Enter the value of a public beacon, once the lobby is shut; the draw goes on at once."""
    answer = client_of(context).request("PUT", path_of(sale, "draw", "beacon"), {"value": value})

    def line(console: Console, document: Any) -> None:
        console.print(
            f"Entered; the draw over {document['entries']} entries goes on.",
            markup=False,
            highlight=False,
        )

    show_document(as_json, answer, line)


@app.command()
def orders(
    context: typer.Context,
    sale: SaleName,
    state: Annotated[str | None, typer.Option(help="Only these, like CONFIRMED.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="How many.")] = 50,
    after: Annotated[str | None, typer.Option(help="Go on after this order.")] = None,
    as_json: AsJson = False,
) -> None:
    """List a sale's orders, oldest first."""
    wanted = state.upper() if state else None
    answer = client_of(context).get(path_of(sale, "orders"), state=wanted, limit=limit, after=after)

    def table(console: Console, document: Any) -> None:
        from .sale_tables import print_orders

        print_orders(console, document["orders"], document["next"] is not None)

    show_document(as_json, answer, table)


def client_of(context: typer.Context) -> AdminClient:
    """The control plane that the command is about."""
    from .admin_client import AdminClient
    from .local_site import control_plane, load_settings

    target: _Target = context.obj
    return AdminClient(*control_plane(load_settings(target.data_dir), target.url))


def _steer(context: typer.Context, sale: str, verb: str, as_json: bool) -> None:
    answer = client_of(context).request("POST", path_of(sale, verb))

    def line(console: Console, document: Any) -> None:
        console.print(f"{document['slug']} is {document['mode']}.", markup=False, highlight=False)

    show_document(as_json, answer, line)


def path_of(*parts: str) -> str:
    """The address of something of a sale."""
    return "/sales/" + "/".join(quote(part, safe="") for part in parts)


def _new_sale(
    name: str,
    variants: list[str],
    currency: str,
    opens: str,
    closes: str | None,
    slug: str | None,
    fee: float | None,
) -> dict[str, Any]:
    from datetime import UTC, datetime

    from .sale_input import parse_fee, parse_time, parse_variant, slug_of

    now = datetime.now(UTC)
    currency = currency.upper()
    try:
        body: dict[str, Any] = {
            "name": name,
            "slug": slug or slug_of(name),
            "currency": currency,
            "opens_at": parse_time(opens, now),
            "variants": [parse_variant(text, name, currency) for text in variants],
        }
        if closes is not None:
            body["closes_at"] = parse_time(closes, now)
        if fee is not None:
            body["fee_bps"] = parse_fee(fee)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    return body


def _lobby_ms(text: str) -> int:
    from .sale_input import parse_length_ms

    try:
        return parse_length_ms(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--lobby") from None


def _read_body(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"the file is not JSON: {error}", param_hint="--file") from None


def _print_sale(figures: Any) -> Callable[[Console, Any], None]:
    def table(console: Console, document: Any) -> None:
        from .sale_tables import print_sale

        print_sale(console, document, figures)

    return table


def show_document(as_json: bool, document: Any, table: Callable[[Console, Any], None]) -> None:
    """Print an answer as JSON, or as people read it."""
    if as_json:
        typer.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    from rich.console import Console

    table(Console(highlight=False), document)
