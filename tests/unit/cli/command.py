"""Runs a command line as a person does, in this process: output, errors, exit status."""

from __future__ import annotations

from dataclasses import dataclass
from unittest.mock import patch

from typer.testing import CliRunner

from fairdrop.cli import app
from fairdrop.errors import FairdropError


@dataclass(frozen=True)
class Ran:
    """What a command has left behind."""

    status: int
    output: str
    errors: str


def run(*arguments: str, given: str | None = None, **variables: str | None) -> Ran:
    """``fairdrop`` with these arguments, environment variables and standard input."""
    environment = {"COLUMNS": "80", "NO_COLOR": "1", **variables}
    # Logs are set up for a process: here that is the one that runs all tests.
    with patch("fairdrop.logs.configure_logs"):
        result = CliRunner().invoke(app, list(arguments), input=given, env=environment)
    if isinstance(result.exception, FairdropError):
        # As fairdrop.cli.main tells it.
        return Ran(1, result.stdout, f"{result.stderr}fairdrop: {result.exception}\n")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)
