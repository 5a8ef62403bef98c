"""``fairdrop config``: the effective settings, secrets hidden."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def config(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the effective settings, with secrets hidden.

    Each setting comes from the environment (FAIRDROP_PORT for port), else from the file
    fairdrop.toml (or the one that FAIRDROP_CONFIG names), else it is the default.
    """
    from fairdrop.settings import Settings

    from .local_site import load_settings

    shown = load_settings().shown()
    if as_json:
        typer.echo(json.dumps(shown, indent=2, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for column in ("Setting", "Value", "Meaning"):
        table.add_column(column, overflow="fold")
    for name, value in shown.items():
        meaning = Settings.model_fields[name].description or ""
        table.add_row(Text(name), Text(value), Text(meaning, style="dim"))
    console = Console(highlight=False)
    console.print(table)
    console.print("Set one with the variable FAIRDROP_<SETTING>, or in fairdrop.toml.")
