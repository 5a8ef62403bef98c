"""``fairdrop ledger``: the books of a running Fairdrop, through its admin API (O10)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .sale import choose_target

if TYPE_CHECKING:
    from .admin_client import AdminClient

app = typer.Typer(
    help="Balances, trial balance and journal of a running Fairdrop.",
    no_args_is_help=True,
    rich_markup_mode=None,
    callback=choose_target,
)

Sale = Annotated[str | None, typer.Option(help="One sale's slug or id; all without it.")]
At = Annotated[str | None, typer.Option(help="As of this moment, like 2026-03-01T08:30:00+01:00.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("balances")
def balances(
    context: typer.Context, sale: Sale = None, at: At = None, as_json: AsJson = False
) -> None:
    """What each account has had, and its balance: a debit is positive."""
    document = _client(context).get("/ledger/balances", sale=sale, at=at)
    if as_json:
        typer.echo(json.dumps(document, indent=2))
        return
    rows = [
        (
            each["account"],
            *(
                _plain(each[name], each)
                for name in ("debits_minor", "credits_minor", "balance_minor")
            ),
            each["currency"],
        )
        for each in document["balances"]
    ]
    _table(("account", "debits", "credits", "balance", ""), rows)


@app.command("trial")
def trial(
    context: typer.Context, sale: Sale = None, at: At = None, as_json: AsJson = False
) -> None:
    """The trial balance of each currency. The exit status is 1 when the columns differ."""
    document = _client(context).get("/ledger/trial", sale=sale, at=at)
    if as_json:
        typer.echo(json.dumps(document, indent=2))
    else:
        for sheet in document:
            names = ("debit_minor", "credit_minor")
            rows = [
                (
                    line["account"],
                    *(_plain(line[name], sheet) if line[name] else "" for name in names),
                )
                for line in sheet["lines"]
            ]
            totals = (_plain(sheet[name], sheet) for name in ("debits_minor", "credits_minor"))
            _table((sheet["currency"], "debit", "credit"), [*rows, ("total", *totals)])
    if not all(sheet["balanced"] for sheet in document):
        raise typer.Exit(1)


@app.command("journal")
def journal(
    context: typer.Context,
    written: Annotated[str, typer.Option("--format", help="csv, or beancount.")] = "csv",
    sale: Sale = None,
    since: Annotated[str | None, typer.Option(help="From this moment on.")] = None,
    until: Annotated[str | None, typer.Option(help="Up to this moment.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to this file.")
    ] = None,
) -> None:
    """Every posting, oldest first: as CSV, or as beancount text that bean-check accepts."""
    text = _client(context).text(
        "/ledger/journal", format=written, sale=sale, since=since, until=until
    )
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text, "utf-8", newline="")


def _client(context: typer.Context) -> AdminClient:
    from .admin_client import AdminClient
    from .local_site import control_plane, load_settings

    target = context.obj
    return AdminClient(*control_plane(load_settings(target.data_dir), target.url))


def _plain(amount_minor: int, of: dict[str, Any]) -> str:
    from fairdrop.money import plain

    return plain(amount_minor, of["currency"])


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Columns, amounts to the right."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    for row in [head, *rows]:
        first, *rest = (
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        typer.echo("  ".join([first, *rest]).rstrip())
