"""The report of a rehearsal: a table for people, a document for programs."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from fairdrop import __version__
from fairdrop.audit import Difference
from fairdrop.audit import Report as AuditReport
from fairdrop.money import format_minor

from .crowd import Latency
from .drop import CURRENCY
from .invariants import Invariant, broken, judge
from .rehearse import Rehearsed, Wanted

_LATENCIES = ("join", "status", "claim", "reserve", "checkout", "pay", "order")
_DIFFERENCES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Report:
    """What was rehearsed, what the audit found, what follows from it."""

    wanted: Wanted
    rehearsed: Rehearsed
    figures: Mapping[str, int]
    """The audit's, from the store, the database and the gateway's own record."""
    differences: Sequence[str]
    invariants: Sequence[Invariant]
    workers: int
    command_s: float

    @property
    def holds(self) -> bool:
        """Whether every invariant holds."""
        return not broken(self.invariants)

    def document(self) -> dict[str, Any]:
        """The JSON document; its keys are promised to stay."""
        crowd = self.rehearsed.crowd
        reserve = crowd.latencies.get("reserve", Latency(0, None, None))
        wall_s = self.rehearsed.wall_s
        return {
            **self.figures,
            "currency": CURRENCY,
            "buyers": crowd.buyers,
            "reservations_p50_ms": reserve.p50_ms,
            "reservations_p99_ms": reserve.p99_ms,
            "purchases_per_s": round(self.figures["orders_confirmed"] / wall_s, 2) if wall_s else 0,
            "purchases_per_s_peak": self.rehearsed.peak_confirmed_per_s,
            "wall_s": wall_s,
            "command_s": round(self.command_s, 3),
            "holds": self.holds,
            "invariants": [asdict(invariant) for invariant in self.invariants],
            "differences": list(self.differences),
            "unfinished": self.rehearsed.unfinished,
            "seed": self.wanted.seed,
            "crowd": asdict(crowd),
            "conditions": {
                "fairdrop": __version__,
                "python": platform.python_version(),
                "machine": platform.machine(),
                "cpus": os.cpu_count(),
                "web_workers": self.workers,
                "rate_per_s": self.wanted.drop.rate_per_s,
                "inside_at_most": self.wanted.drop.cap,
            },
        }


def make_report(  # noqa: PLR0913 - what a report is made of
    wanted: Wanted,
    rehearsed: Rehearsed,
    found: AuditReport,
    differences: Sequence[Difference],
    *,
    workers: int,
    command_s: float,
) -> Report:
    """Judge what the audit found."""
    crowd = rehearsed.crowd
    figures = {name: value for name, value in asdict(found).items() if isinstance(value, int)}
    words = [difference.words for difference in differences]
    return Report(
        wanted,
        rehearsed,
        figures,
        words,
        judge(
            figures,
            words,
            currency=CURRENCY,
            unfinished=rehearsed.unfinished,
            still_wanting=crowd.still_wanting,
            complaints=crowd.complaints,
            capture=wanted.drop.capture,
        ),
        workers,
        command_s,
    )


def print_report(report: Report, console: Console) -> None:
    """The report at 80 columns."""
    crowd, rehearsed = report.rehearsed.crowd, report.rehearsed
    console.print()
    console.print("What must hold, from the store, the database and the gateway's own record:")
    table = Table(box=None, padding=(0, 1), show_header=False, width=80)
    table.add_column(width=6)
    table.add_column()
    for invariant in report.invariants:
        verdict = "[green]holds[/]" if invariant.holds else "[bold red]BROKEN[/]"
        table.add_row(verdict, f"{invariant.promise}:\n[dim]{invariant.figures}[/]")
    console.print(table)
    console.print()
    console.print(_figures(report))
    console.print()
    console.print(_crowd(crowd.results, crowd.buyers), soft_wrap=False)
    for words in list(report.differences)[:_DIFFERENCES_SHOWN]:
        console.print(f"  difference: {words}", style="red")
    for words, count in list(crowd.complaints.items())[:_DIFFERENCES_SHOWN]:
        console.print(f"  answer that must not be: {words} ({count:,} times)", style="red")
    console.print()
    failed = broken(report.invariants)
    if failed:
        console.print(f"{len(failed)} of {len(report.invariants)} invariants broken:", style="red")
        for invariant in failed:
            console.print(f"  {invariant.promise}: {invariant.figures}")
    else:
        console.print(
            f"All {len(report.invariants)} invariants hold. "
            f"Seed {report.wanted.seed}, {rehearsed.wall_s:.1f} s from the opening to the end.",
            style="green",
        )


def _figures(report: Report) -> Table:
    figures, crowd = report.figures, report.rehearsed.crowd
    money = format_minor(figures["ledger_debits_minor"], CURRENCY)
    orders = (
        f"{figures['orders_confirmed']:,} confirmed, {figures['orders_expired']:,} expired, "
        f"{figures['orders_failed']:,} failed, {figures['orders_refunded']:,} refunded"
    )
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", width=12)
    table.add_column(width=64)
    table.add_row("Line", f"{figures['joined']:,} joined, {figures['admitted']:,} admitted")
    table.add_row("Orders", orders)
    table.add_row("Ledger", f"{money} on either side")
    table.add_row(
        "Pace", f"{report.rehearsed.peak_confirmed_per_s:,.0f} orders confirmed in the best second"
    )
    for step in _LATENCIES:
        latency = crowd.latencies.get(step)
        if latency is not None and latency.p50_ms is not None and latency.p99_ms is not None:
            table.add_row(
                step.capitalize(),
                f"{latency.answers:>9,} answers  p50 {latency.p50_ms:>7,.1f} ms"
                f"  p99 {latency.p99_ms:>8,.1f} ms",
            )
    return table


def _crowd(results: Mapping[str, int], buyers: int) -> str:
    ends = ", ".join(f"{count:,} {words}" for words, count in results.items())
    return f"How the visits of {buyers:,} buyers ended, as they saw it: {ends}."
