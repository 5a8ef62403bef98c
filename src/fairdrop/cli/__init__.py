"""The command line: ``fairdrop COMMAND --help`` explains each command."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from fairdrop import __version__
from fairdrop.errors import FairdropError

from . import invites, keys, ledger, line, order, sale, stock
from .audit import audit
from .config import config
from .doctor import doctor
from .plan import plan
from .verify_draw import verify_draw

T = TypeVar("T")

app = typer.Typer(
    name="fairdrop",
    help="Flash sales and ticket drops: a fair line, no unit sold twice, books that balance.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fairdrop {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    buyers: Annotated[int, typer.Option(min=1, max=1_000_000, help="Simulated buyers.")] = 2_000,
    units: Annotated[int, typer.Option(min=1, max=1_000_000, help="Units for sale.")] = 200,
    rate: Annotated[
        float | None,
        typer.Option(
            min=1, help="People admitted per second [default: all could pass in 12 s, at least 50]"
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Draws the crowd; the same one again [default: new]")
    ] = None,
    exits: Annotated[
        bool, typer.Option("--exit", help="Stop after the report instead of staying up.")
    ] = False,
    report: Annotated[
        Path | None, typer.Option(help="Write the report here, as JSON.", dir_okay=False)
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option(help="Where data is kept [default: a new one, removed after]")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the data directory.")] = False,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Web worker processes.")] = 1,
) -> None:
    """Run a whole sale with a simulated crowd, and check that every promise was kept.

    Starts everything it needs, sells out a sale through the public API, and prints what must hold
    with its figures. In a terminal it then stays up, with a sale of your own to try. The exit
    status is 0 only when every invariant holds.
    """
    if report is not None and not report.absolute().parent.is_dir():
        raise typer.BadParameter(f"{report.parent} is no directory", param_hint="--report")
    from fairdrop.logs import configure_logs

    from .demo import Options, draw_seed, run_demo

    configure_logs("warning")
    options = Options(
        buyers=buyers,
        units=units,
        rate_per_s=rate,
        seed=draw_seed() if seed is None else seed,
        exits=exits,
        report=report,
        data_dir=data_dir,
        keep=keep,
        workers=workers,
    )
    raise typer.Exit(_run(run_demo(options)))


@app.command()
def rehearse(
    faults: Annotated[
        bool,
        typer.Option("--faults", help="Kill processes and die at fault points while people buy."),
    ] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Draws everything; the same again [default: new]")
    ] = None,
    minutes: Annotated[
        float, typer.Option(min=0, help="Hold sales for so long; 0 holds one.")
    ] = 1.0,
    report: Annotated[
        Path | None, typer.Option(help="Write the report here, as JSON.", dir_okay=False)
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the data directory.")] = False,
) -> None:
    """Hold sale after sale on real parts, and check every promise after each.

    With --faults, a schedule drawn from the seed kills processes, has them die between two dangerous
    steps, and has the gateway decline, delay, repeat, reorder and drop what it tells. The exit status
    is 1 if anything broke, with what it was.
    """
    if report is not None and not report.absolute().parent.is_dir():
        raise typer.BadParameter(f"{report.parent} is no directory", param_hint="--report")
    from fairdrop.logs import configure_logs

    from .demo import draw_seed
    from .rehearse import Options, run_rehearsal

    configure_logs("error")
    options = Options(
        faults=faults,
        seed=draw_seed() if seed is None else seed,
        minutes=minutes,
        report=report,
        keep=keep,
    )
    raise typer.Exit(_run(run_rehearsal(options)))


@app.command()
def up(
    data_dir: Annotated[
        Path | None, typer.Option(help="Where everything is kept [default: .fairdrop]")
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port of the web workers [default: 8000, or a free one]")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Web worker processes [default: 1]")] = None,
) -> None:
    """Run everything on this machine: store, database, gateway, web, worker."""
    from .up import run_up

    _run(run_up(_settings(data_dir=data_dir, port=port, web_workers=workers)))


@app.command()
def web(
    port: Annotated[int | None, typer.Option(help="Port to listen on [default: 8000]")] = None,
    workers: Annotated[int | None, typer.Option(help="Worker processes [default: 1]")] = None,
) -> None:
    """Run web workers only; store, database and secrets come from the settings."""
    from .web import run_web

    run_web(_settings(port=port, web_workers=workers))


@app.command()
def push(
    port: Annotated[int | None, typer.Option(help="Port to listen on [default: 8001]")] = None,
) -> None:
    """Run one push process only: WebSockets and server-sent events, told of every change.

    Web workers tell browsers where it is by FAIRDROP_PUSH_URL; without it they poll.
    """
    from .push import run_push

    run_push(_settings(push_port=port))


@app.command()
def worker() -> None:
    """Run one background worker only; any number may run side by side."""
    from .worker import run_worker

    _run(run_worker(_settings()))


invites.register(sale.app)
sale.app.add_typer(stock.app, name="stock")
app.add_typer(sale.app, name="sale")
app.add_typer(order.app, name="order")
app.add_typer(ledger.app, name="ledger")
app.add_typer(line.app, name="line")
app.add_typer(keys.app, name="keys")
app.command()(audit)
app.command()(config)
app.command()(plan)
app.command()(doctor)
app.command("verify-draw")(verify_draw)


def _settings(**given: Any) -> Any:
    from fairdrop.logs import configure_logs
    from fairdrop.settings import Settings

    settings = Settings(**{name: value for name, value in given.items() if value is not None})
    configure_logs(settings.log_level)
    return settings


def _run(main: Coroutine[Any, Any, T]) -> T:
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def main() -> None:
    """Run the command line; expected failures end with one line that says what to do."""
    try:
        app()
    except FairdropError as error:
        typer.echo(f"fairdrop: {error}", err=True)
        sys.exit(1)
