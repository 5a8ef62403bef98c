"""``fairdrop doctor``: what is wrong with this installation, and what to do about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fairdrop.doctor import Finding

WRONG = 1
WIDTH = 80


def doctor(
    data_dir: Annotated[
        Path | None,
        typer.Option(
            help="Data directory of `fairdrop up`, for addresses and keys [default: .fairdrop]"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Look at everything that can be wrong: settings, store, database, gateways, mail, stuck work.

    Works on what runs here, or on what the FAIRDROP_ variables name. Changes nothing. The exit status
    is 1 when something is wrong, with what to do about it.
    """
    import asyncio
    import logging

    from fairdrop.doctor import Finding, Verdict, examine
    from fairdrop.errors import FairdropError
    from fairdrop.logs import configure_logs

    from .local_site import load_settings, site_settings

    configure_logs("critical")
    logging.getLogger("asyncpg").setLevel(logging.CRITICAL)
    try:
        found = asyncio.run(examine(site_settings(load_settings(data_dir))))
    except FairdropError as error:
        found = [Finding("Configuration", Verdict.WRONG, str(error))]
    if as_json:
        typer.echo(json.dumps([each._asdict() for each in found], indent=2, ensure_ascii=False))
    else:
        _print(found)
    if any(each.verdict is Verdict.WRONG for each in found):
        raise typer.Exit(WRONG)


def _print(found: list[Finding]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from fairdrop.doctor import Verdict

    styles = {Verdict.WELL: "green", Verdict.NOTE: "yellow", Verdict.WRONG: "bold red"}
    table = Table.grid(padding=(0, 2))
    table.add_column(width=5)
    table.add_column(width=21)
    table.add_column(width=50)
    for each in found:
        word = "WRONG" if each.verdict is Verdict.WRONG else each.verdict.value
        table.add_row(Text(word, styles[each.verdict]), Text(each.about), Text(each.words))
        if each.advice:
            table.add_row("", "", Text(f"→ {each.advice}", "dim"))
    console = Console(highlight=False, width=WIDTH)
    console.print(table)
    wrong = sum(each.verdict is Verdict.WRONG for each in found)
    console.print()
    if wrong:
        console.print(f"{wrong} thing{'s are' if wrong > 1 else ' is'} wrong.", style="bold red")
    else:
        console.print("Nothing is wrong.", style="green")
