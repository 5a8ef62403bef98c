"""``fairdrop plan``: what a pace means before it is set. Asks nothing that runs."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def plan(
    people: Annotated[int, typer.Argument(min=0, help="How many come.")],
    rate: Annotated[float, typer.Option(min=0.001, help="People called per second.")] = 50.0,
    checkout: Annotated[
        float, typer.Option(min=1, help="Seconds that somebody is inside on average.")
    ] = 180.0,
    no_show: Annotated[
        float, typer.Option(min=0, max=1, help="Share of people who miss their call.")
    ] = 0.1,
    claim: Annotated[float, typer.Option(min=1, help="The claim window in seconds.")] = 60.0,
    cap: Annotated[
        int | None, typer.Option(min=1, help="People inside at most [default: as many as it takes]")
    ] = None,
    units: Annotated[int | None, typer.Option(min=1, help="Units on sale.")] = None,
    units_each: Annotated[
        float, typer.Option(min=0.01, help="Units that a person inside buys on average.")
    ] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Reckon people inside, the cap and the time a crowd takes, by Little's law.

    Example: fairdrop plan 50000 --rate 50 --checkout 180 --units 2000
    """
    from fairdrop.waiting_room.planning import plan_pace

    planned = plan_pace(
        people,
        rate,
        checkout,
        no_show=no_show,
        claim_s=claim,
        cap=cap,
        units=units,
        units_each=units_each,
    )
    if as_json:
        typer.echo(json.dumps(planned._asdict(), indent=2))
        return
    typer.echo(f"inside         {planned.inside:,} people on average")
    typer.echo(f"cap            {planned.cap:,}")
    typer.echo(f"outflow        {planned.outflow_per_s:g} people per second")
    typer.echo(f"last turn      after {_time(planned.drain_s)}")
    if units is not None:
        sold = planned.sold_out_s
        typer.echo(f"sold out       {'after ' + _time(sold) if sold else 'never: units are left'}")


def _time(seconds: int) -> str:
    hours, rest = divmod(seconds, 3_600)
    minutes, left = divmod(rest, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {left:02} s"
