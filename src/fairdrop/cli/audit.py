"""``fairdrop audit``: store, orders, units, ledger and gateways compared with one another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from fairdrop.audit import Difference
    from fairdrop.settings import Settings

DIFFERENCES = 1
NOT_DONE = 2


def audit(
    data_dir: Annotated[
        Path | None,
        typer.Option(
            help="Data directory of `fairdrop up`, for addresses and keys [default: .fairdrop]"
        ),
    ] = None,
    sale: Annotated[
        str | None, typer.Option(help="Leave out what is about other sales (slug or id).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare store, orders, units, ledger and gateways; print each difference.

    Works on what runs here, or on what FAIRDROP_STORE_URL, FAIRDROP_DATABASE_URL and
    FAIRDROP_GATEWAY_URL name. Changes nothing, and can run while people buy. The exit status is 0
    when everything agrees, 1 when there is any difference, 2 when something could not be asked.
    """
    import asyncio

    import asyncpg

    from fairdrop.errors import FairdropError
    from fairdrop.logs import configure_logs

    from .local_site import load_settings, site_settings

    configure_logs("error")
    try:
        settings = site_settings(load_settings(data_dir))
        found = asyncio.run(_run(settings, sale))
    except (FairdropError, LookupError, asyncpg.PostgresError, OSError) as error:
        typer.echo(f"fairdrop: the audit could not be done: {error}", err=True)
        raise typer.Exit(NOT_DONE) from None
    if as_json:
        typer.echo(json.dumps([_document(each) for each in found], indent=2, ensure_ascii=False))
    else:
        _print(found)
    if found:
        raise typer.Exit(DIFFERENCES)


async def _run(settings: Settings, name: str | None) -> list[Difference]:
    from fairdrop.app import open_parts
    from fairdrop.audit import audit as compare

    async with open_parts(_for_audit(settings)) as parts:
        if name is None:
            return await compare(parts)
        sale = await parts.catalog.sale(name)
        if sale is None:
            raise LookupError(f"there is no sale {name}")
        return await compare(parts, sale.id)


def _for_audit(settings: Settings) -> Settings:
    """What it takes to compare: patience with the store, and none of the keys that sign."""
    from pydantic import SecretStr

    from fairdrop.waiting_room import new_signing_key

    unused = {"visitor_key": SecretStr("-" * 32), "signing_keys": SecretStr(new_signing_key())}
    return settings.model_copy(update={"store_timeout_ms": 10_000, **unused})


def _document(difference: Difference) -> dict[str, object]:
    return {
        "kind": difference.kind.value,
        "subject": dict(difference.subject),
        "expected": difference.expected,
        "found": difference.found,
        "words": difference.words,
    }


def _print(found: list[Difference]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    if not found:
        console.print("Everything agrees: store, orders, units, ledger and gateways.")
        return
    for difference in found:
        console.print(Text(difference.kind.value, style="bold red"))
        for word, name in difference.subject:
            console.print(Text(f"  {word:<10}{name}"))
        console.print(Text(f"  expected  {difference.expected}"))
        console.print(Text(f"  found     {difference.found}"))
    count = len(found)
    console.print(f"{count} difference{'s' if count > 1 else ''}.")
