"""The command line: ``fairdrop COMMAND --help`` explains each command."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any

import typer

from fairdrop import __version__
from fairdrop.errors import FairdropError

app = typer.Typer(
    name="fairdrop",
    help="Flash sales and ticket drops: a fair line, no unit sold twice, books that balance.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:  # noqa: FBT001 - a flag's callback
    if wanted:
        typer.echo(f"fairdrop {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[  # noqa: ARG001 - acted on by the callback
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


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
    from .up import run_up  # noqa: PLC0415 - commands load what they need

    _run(run_up(_settings(data_dir=data_dir, port=port, web_workers=workers)))


@app.command()
def web(
    port: Annotated[int | None, typer.Option(help="Port to listen on [default: 8000]")] = None,
    workers: Annotated[int | None, typer.Option(help="Worker processes [default: 1]")] = None,
) -> None:
    """Run web workers only; store, database and secrets come from the settings."""
    from .web import run_web  # noqa: PLC0415

    run_web(_settings(port=port, web_workers=workers))


@app.command()
def worker() -> None:
    """Run one background worker only; any number may run side by side."""
    from .worker import run_worker  # noqa: PLC0415

    _run(run_worker(_settings()))


def _settings(**given: Any) -> Any:
    from fairdrop.logs import configure_logs  # noqa: PLC0415
    from fairdrop.settings import Settings  # noqa: PLC0415

    settings = Settings(**{name: value for name, value in given.items() if value is not None})
    configure_logs(settings.log_level)
    return settings


def _run(main: Coroutine[Any, Any, None]) -> None:
    import uvloop  # noqa: PLC0415

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


def main() -> None:
    """Run the command line; expected failures end with one line that says what to do."""
    try:
        app()
    except FairdropError as error:
        typer.echo(f"fairdrop: {error}", err=True)
        sys.exit(1)
