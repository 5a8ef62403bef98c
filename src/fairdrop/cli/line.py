"""``fairdrop line``: the pace of a running sale, and the line after its store was lost."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .sale import AsJson, SaleName, choose_target, client_of, path_of, show_document

if TYPE_CHECKING:
    from rich.console import Console

app = typer.Typer(
    help="Steer the pace of a running sale, and restore a line that was lost.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.callback()(choose_target)
LOOK_EVERY_S = 1.0


@app.command()
def pace(
    context: typer.Context,
    sale: SaleName,
    rate: Annotated[float | None, typer.Option(help="People called per second.")] = None,
    cap: Annotated[int | None, typer.Option(help="People inside at most.")] = None,
    burst: Annotated[
        int | None, typer.Option(help="Milliseconds of the pace that may come at once.")
    ] = None,
    adaptive: Annotated[
        bool | None,
        typer.Option("--adaptive/--fixed", help="Follow what the checkout can serve, or not."),
    ] = None,
    lowest: Annotated[float | None, typer.Option(help="The adaptive pace's lower bound.")] = None,
    highest: Annotated[float | None, typer.Option(help="The adaptive pace's upper bound.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the pace, or change it at once, also while the sale runs.

    Example: fairdrop line pace my-sale --adaptive --lowest 5 --highest 200
    """
    client = client_of(context)
    changes = {
        "rate_per_s": rate,
        "cap": cap,
        "burst_ms": burst,
        "adaptive": adaptive,
        "rate_min_per_s": lowest,
        "rate_max_per_s": highest,
    }
    body = {name: value for name, value in changes.items() if value is not None}
    document = client.request("PATCH", path_of(sale), body) if body else client.get(path_of(sale))
    figures = client.get(path_of(sale, "figures"))

    def told(console: Console, _: Any) -> None:
        how = f"adaptive ({figures['pace_reason'] or 'no step yet'})"
        console.print(
            f"{figures['pace_per_s']:g} people per second, "
            f"{how if document['adaptive'] else 'as set'}; "
            f"{figures['inside']:,} of {document['cap']:,} inside, {figures['waiting']:,} wait.",
            markup=False,
        )

    show_document(as_json, {**document, "figures": figures}, told)


@app.command()
def restore(
    context: typer.Context,
    sale: SaleName,
    grace: Annotated[
        float | None,
        typer.Option(min=0, max=3_600, help="Call nobody for so many seconds from now on."),
    ] = None,
    end: Annotated[bool, typer.Option("--end", help="Call people again now.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show the progress until people are called again.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show, start, steer or end the restoration of a line that the store has lost.

    It starts by itself: for the sale's grace people come back to their places with their receipts,
    which their browsers present without being asked, and nobody is called.
    """
    client = client_of(context)
    if grace is not None or end:
        body = {"grace_ms": 0 if end else round((grace or 0) * 1_000)}
        document = client.request("PUT", path_of(sale, "restoration"), body)
    else:
        document = client.get(path_of(sale, "restoration"))
    while watch and document["restoring_until_ms"] is not None:
        show_document(as_json, document, _progress)
        sys.stdout.flush()
        time.sleep(LOOK_EVERY_S)
        document = client.get(path_of(sale, "restoration"))
    show_document(as_json, document, _progress)


@app.command()
def reset(
    context: typer.Context,
    sale: SaleName,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start the line of a sale anew: no place and no receipt from before counts any more."""
    if not yes and sys.stdin.isatty():
        typer.confirm(f"Start the line of {sale} anew? Everybody loses their place.", abort=True)
    answer = client_of(context).request("POST", path_of(sale, "reset"))

    def told(console: Console, document: Any) -> None:
        console.print(f"The line is empty, epoch {document['epoch']}.", markup=False)

    show_document(as_json, answer, told)


def _progress(console: Console, document: Any) -> None:
    until = document["restoring_until_ms"]
    left = "people are called"
    if until is not None:
        left = f"nobody is called for {max(0, until - document['server_time_ms']) / 1_000:.0f} s"
    console.print(
        f"{document['restored']:,} of about {document['lost_tail']:,} places are back, "
        f"{document['restored_inside']:,} of them inside; {document['waiting']:,} wait; {left}.",
        markup=False,
    )
