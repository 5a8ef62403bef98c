"""``fairdrop rehearse``: sale after sale on this machine, with everything going wrong on purpose."""

from __future__ import annotations

import logging
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fairdrop.app import open_parts
from fairdrop.embedded import StopSignals, remove_data
from fairdrop.money import format_minor
from fairdrop.payments import CaptureMode
from fairdrop.rehearsal.drop import CURRENCY
from fairdrop.rehearsal.invariants import broken
from fairdrop.rehearsal.rounds import Endurance, Held, Telling, endure
from fairdrop.settings import Settings
from fairdrop.site import Site

from .demo import write_report

if TYPE_CHECKING:
    from fairdrop.rehearsal.schedule import Round

PREFIX = "fairdrop-rehearsal-"
SITE_DIR, FAULTS_DIR = "site", "faults"
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for on the command line."""

    faults: bool
    seed: int
    minutes: float
    report: Path | None
    keep: bool


async def run_rehearsal(options: Options) -> int:
    """Run it; 0 when every invariant held in every round, 1 when one did not, 128 + n on a signal."""
    # What dies here dies on purpose; a driver's own log of it would tear the report apart.
    logging.getLogger("asyncpg").setLevel(logging.CRITICAL)
    console = Console(highlight=False)
    what = "with faults" if options.faults else "without faults"
    console.print(
        f"Fairdrop rehearsal {what}: seed {options.seed}, {options.minutes:g} minutes or a round more"
    )
    directory = _new_directory()
    found: Endurance | None = None
    try:
        async with StopSignals() as signals:
            found = await _run_in(directory, options, console)
    finally:
        if options.keep:
            console.print(f"The data stays in {directory}", soft_wrap=True)
        else:
            remove_data(directory / SITE_DIR)
            shutil.rmtree(directory, ignore_errors=True)
    if found is None:
        assert signals.received is not None, "only a signal ends a rehearsal before its verdict"
        console.print("Stopped before the verdict.")
        return 128 + signals.received
    print_endurance(found, console)
    if options.report is not None:
        write_report(options.report, found.document())
        console.print(f"Report: {options.report}", soft_wrap=True)
    return 0 if found.holds else 1


def _new_directory() -> Path:
    directory = Path(tempfile.mkdtemp(prefix=PREFIX))
    directory.chmod(0o711)  # run by root, the database is another user
    (directory / FAULTS_DIR).mkdir()
    return directory


async def _run_in(directory: Path, options: Options, console: Console) -> Endurance:
    faults = directory / FAULTS_DIR
    settings = Settings(
        data_dir=directory / SITE_DIR,
        # A rehearsal never touches services that a shop uses.
        store_url=None,
        database_url=None,
        public_url=None,
        port=0,
        sweep_interval_ms=250,
        reconcile_interval_ms=250,
        payment_check_after_ms=250,
    )
    async with (
        Site(settings, faults=faults if options.faults else None) as site,
        open_parts(site.settings) as parts,
    ):
        return await endure(
            site,
            parts,
            faults,
            seed=options.seed,
            faults=options.faults,
            for_s=options.minutes * 60,
            tell=Telling(
                drawn=lambda drawn: _print_round(drawn, console),
                struck=lambda words: console.print(f"    {escape(words)}", style="dim"),
                held=lambda held: _print_held(held, console),
            ),
        )


def _print_round(drawn: Round, console: Console) -> None:
    console.print(
        f"Round {drawn.number}: {drawn.buyers} buyers for {drawn.units} units, "
        f"{drawn.rate_per_s:g}/s, {_money(drawn)}"
    )
    for blow in drawn.blows:
        console.print(f"    at {blow.at_ms / 1_000:5.2f} s  {blow.words}")


def _money(drawn: Round) -> str:
    if drawn.capture is CaptureMode.MANUAL:
        return "money is taken when the units are secured"
    return f"money that is late {'buys what is left' if drawn.accept_late else 'goes back'}"


def _print_held(held: Held, console: Console) -> None:
    figures, failed = held.report.figures, broken(held.report.invariants)
    console.print(
        f"  {figures['units_sold']} of {figures['units_total']} sold, "
        f"{figures['orders_refunded']} orders refunded, {held.kills} killed, "
        f"{held.deaths} died at points, {held.report.rehearsed.wall_s:.0f} s: "
        + ("[bold red]BROKEN[/]" if failed else "[green]holds[/]")
    )
    for invariant in failed:
        console.print(f"    {invariant.promise}: {invariant.figures}", style="red")


def print_endurance(found: Endurance, console: Console) -> None:
    """The verdict at 80 columns: every invariant over all rounds, and what broke."""
    document, sums = found.document(), found.sums()
    console.print()
    table = Table(box=None, padding=(0, 1), show_header=False, width=80)
    table.add_column(width=14)
    table.add_column()
    for verdict in found.verdicts():
        held = f"{verdict['held']} of {verdict['rounds']}"
        style = "green" if verdict["held"] == verdict["rounds"] else "bold red"
        table.add_row(f"[{style}]held {held}[/]", verdict["promise"])
    console.print("What must hold, and in how many rounds it did:")
    console.print(table)
    console.print()
    debits, credits_ = sums["ledger_debits_minor"], sums["ledger_credits_minor"]
    console.print(
        f"Together: {sums['units_sold']:,} of {sums['units_total']:,} units sold, oversold "
        f"{sums['oversold']}; orders {sums['orders_confirmed']:,} confirmed, "
        f"{sums['orders_expired']:,} expired, {sums['orders_failed']:,} failed, "
        f"{sums['orders_cancelled']:,} cancelled, {sums['orders_refunded']:,} refunded; "
        f"paid without order {sums['paid_without_order']}, charged twice "
        f"{sums['duplicate_charges']}; {format_minor(debits, CURRENCY)} debited, "
        f"{format_minor(credits_, CURRENCY)} credited, variance "
        f"{format_minor(sums['ledger_variance_minor'], CURRENCY)}."
    )
    console.print(
        f"{document['kills']} processes killed, {document['deaths_at_points']} died at fault points."
    )
    for held_round in found.rounds:
        report, number = held_round.report, held_round.drawn.number
        words = [*report.differences, *report.rehearsed.crowd.complaints]
        for each in words[:_SHOWN]:
            console.print(f"  round {number}: {escape(each)}", style="red")
    for each in found.differences[:_SHOWN]:
        console.print(f"  at the end: {escape(each)}", style="red")
    if found.holds:
        console.print(
            f"Every invariant held in all {len(found.rounds)} rounds. Seed {found.seed}, "
            f"{found.wall_s:.0f} s.",
            style="green",
        )
    else:
        console.print(f"Not everything held. Again: --seed {found.seed}", style="bold red")
