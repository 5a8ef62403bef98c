"""``fairdrop sale stock``: more, fewer, or exactly so many units, while a sale runs (H9)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from .sale import AsJson, SaleName, client_of, path_of, show_document

if TYPE_CHECKING:
    from rich.console import Console


class _ChangeUnlessNamed(TyperGroup):
    """``stock SALE VARIANT DELTA`` means ``stock change SALE VARIANT DELTA``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["change", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    help="Put more units on sale or take free ones out: fairdrop sale stock SALE VARIANT +50.",
    no_args_is_help=True,
    rich_markup_mode=None,
    cls=_ChangeUnlessNamed,
)


@app.command(context_settings={"ignore_unknown_options": True})  # -5 is a number here
def change(
    context: typer.Context,
    sale: SaleName,
    variant: Annotated[
        str, typer.Argument(metavar="VARIANT", help="Its name, id, or number in `sale show`.")
    ],
    delta: Annotated[
        int, typer.Argument(metavar="DELTA", help="Units to add (+50) or take out (-10).")
    ],
    as_json: AsJson = False,
) -> None:
    """Put more units on sale, or take free ones out; at once for everybody."""
    client = client_of(context)
    found = _variant(client.get(path_of(sale)), variant)
    answer = client.request("POST", path_of(sale, "variants", found, "stock"), {"delta": delta})

    def line(console: Console, document: Any) -> None:
        from .sale_tables import print_stock

        print_stock(console, document)

    show_document(as_json, answer, line)


@app.command("import")
def import_stock(
    context: typer.Context,
    file: Annotated[
        typer.FileText,
        typer.Argument(
            metavar="FILE",
            help="CSV with the columns variant and units, and sale unless --sale is given"
            " ('-': standard input).",
        ),
    ],
    sale: Annotated[
        str | None, typer.Option(help="The sale's slug or id, where the file names none.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Have exactly the units that a CSV file lists, held and sold ones included.

    The whole file is read before anything changes. Variants that it does not name stay as they are;
    importing it again changes nothing.
    """
    from .stock_file import read_stock

    try:
        listed = read_stock(file.read(), sale)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="FILE") from None
    client = client_of(context)
    source = f"file {Path(file.name).name}"[:200]
    answers = {
        name: client.request("POST", path_of(name, "stock"), {"stock": lines, "source": source})
        for name, lines in listed.items()
    }

    def table(console: Console, document: Any) -> None:
        from .sale_tables import print_stock

        for name, answer in document.items():
            console.print(name, style="bold", markup=False)
            for stock in answer["variants"]:
                print_stock(console, stock)

    show_document(as_json, answers, table)


def _variant(sale: Any, wanted: str) -> str:
    """The id of the variant that is meant. Raises BadParameter when it is none, or several."""
    variants = sale["variants"]
    if wanted.isdecimal() and 0 < int(wanted) <= len(variants):
        return str(variants[int(wanted) - 1]["id"])
    found = [
        variant["id"]
        for variant in variants
        if wanted in (variant["id"], variant["name"], f"{variant['product']}, {variant['name']}")
    ]
    if len(found) == 1:
        return str(found[0])
    names = "; ".join(
        f"{number}: {variant['product']}, {variant['name']}"
        for number, variant in enumerate(variants, start=1)
    )
    problem = "several variants are" if found else "no variant is"
    raise typer.BadParameter(f"{problem} called {wanted!r}. There are: {names}")
