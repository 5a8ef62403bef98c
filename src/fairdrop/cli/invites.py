"""``fairdrop sale invite`` and ``fairdrop sale access``: who may join, and who first (W19)."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer

if TYPE_CHECKING:
    from .admin_client import AdminClient

AT_ONCE = 5_000
"""Invitations in one request."""
_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Without those that look alike."""

SaleName = Annotated[str, typer.Argument(metavar="SALE", help="The sale's slug or id.")]


def register(sale: typer.Typer) -> None:
    """Add the commands to ``fairdrop sale``."""
    sale.command("invite")(invite)
    sale.command("uninvite")(uninvite)
    sale.command("access")(access)


def invite(
    context: typer.Context,
    sale: SaleName,
    file: Annotated[
        typer.FileText | None,
        typer.Argument(help="Codes, addresses or buyers, one a line ('-': standard input)."),
    ] = None,
    generate: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Make so many codes, and print them.")
    ] = None,
    kind: Annotated[str, typer.Option(help="code, email or buyer.")] = "code",
    tier: Annotated[str, typer.Option(help="invited, priority or bypass.")] = "invited",
    uses: Annotated[int, typer.Option(min=1, help="Visitors who may use each.")] = 1,
) -> None:
    """Invite people to a sale: by codes, e-mail addresses, or the shop's names of buyers.

    Example: fairdrop sale invite midnight-drop --generate 500 --tier priority > codes.txt
    """
    values = _values(file, generate)
    added = 0
    for at in range(0, len(values), AT_ONCE):
        body = {"kind": kind, "values": values[at : at + AT_ONCE], "tier": tier, "uses": uses}
        answer = _client(context).request("POST", f"/sales/{quote(sale, safe='')}/invites", body)
        added += answer["changed"]
    if generate:
        for value in values:
            typer.echo(value)
    typer.echo(f"{added} invited, {len(values) - added} were so already.", err=bool(generate))


def uninvite(
    context: typer.Context,
    sale: SaleName,
    file: Annotated[typer.FileText, typer.Argument(help="The same, one a line.")],
    kind: Annotated[str, typer.Option(help="code, email or buyer.")] = "code",
) -> None:
    """Take invitations back. Places already given stay."""
    values, gone = _values(file, None), 0
    for at in range(0, len(values), AT_ONCE):
        body = {"kind": kind, "values": values[at : at + AT_ONCE]}
        path = f"/sales/{quote(sale, safe='')}/invites/revoke"
        gone += _client(context).request("POST", path, body)["changed"]
    typer.echo(f"{gone} invitations taken back.")


def access(
    context: typer.Context,
    sale: SaleName,
    entry: Annotated[str | None, typer.Option(help="open or invited.")] = None,
    priority_opens: Annotated[
        str | None,
        typer.Option(help="When people with priority may join, like 2026-03-01T08:00; 'lobby'."),
    ] = None,
) -> None:
    """Show who may join a sale, or change it."""
    client, path = _client(context), f"/sales/{quote(sale, safe='')}/access"
    shown: Any = client.get(path)
    if entry is not None or priority_opens is not None:
        at = shown["priority_opens_at"] if priority_opens is None else priority_opens
        body = {
            "entry": entry or shown["entry"],
            "priority_opens_at": None if at == "lobby" else at,
        }
        shown = client.request("PUT", path, body)
    typer.echo(f"Who may join: {'everybody' if shown['entry'] == 'open' else 'the invited only'}")
    typer.echo(f"Priority from: {shown['priority_opens_at'] or 'the lobby on'}")
    for each in shown["invites"]:
        typer.echo(
            f"{each['invites']} by {each['kind']}, {each['tier']}:"
            f" {each['used']} of {each['uses']} uses, {each['revoked']} taken back"
        )


def _values(file: Any, generate: int | None) -> list[str]:
    if (file is None) is (generate is None):
        raise typer.BadParameter("give a FILE, or --generate N")
    if generate is not None:
        return [_code() for _ in range(generate)]
    return list(dict.fromkeys(line.strip() for line in file if line.strip()))


def _code() -> str:
    """A code of 60 random bits, in three groups of four."""
    letters = "".join(secrets.choice(_LETTERS) for _ in range(12))
    return "-".join((letters[:4], letters[4:8], letters[8:]))


def _client(context: typer.Context) -> AdminClient:
    from .admin_client import AdminClient
    from .local_site import control_plane, load_settings

    url, key = control_plane(load_settings(context.obj.data_dir), context.obj.url)
    return AdminClient(url, key)
