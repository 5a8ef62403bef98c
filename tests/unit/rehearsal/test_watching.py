"""What a person sees of a rehearsal fits into 80 columns and says what is going on."""

import io

import pytest
from rich.console import Console

from fairdrop.rehearsal.control import Figures, VariantFigures
from fairdrop.rehearsal.rehearse import Snapshot
from fairdrop.rehearsal.watching import Lines, Panel, line_of, panel_of, watcher


def snapshot(people: int = 2_000, units: int = 200, seconds: float = 3.4) -> Snapshot:
    figures = Figures(
        mode="open",
        waiting=people // 2,
        called=3,
        inside=people // 4,
        joined=people,
        admitted=people // 4,
        cap=1_500,
        variants=tuple(
            VariantFigures(f"Rooftop concert, {name}", units // 2, 0, units // 8, units // 4)
            for name in ("Standing", "Front row")
        ),
        orders={"CONFIRMED": units // 2, "RESERVED": 1, "PAYMENT_PENDING": 2, "EXPIRED": 4},
        revenue_minor=units * 4_200,
        fees_minor=units * 420,
        currency="EUR",
    )
    return Snapshot(
        seconds=seconds,
        buyers=people,
        arrived=people,
        gone=12,
        figures=figures,
        admitted_per_s=145.2,
        confirmed_per_s=31.0,
        reserve_p50_ms=11.6,
        reserve_p99_ms=57.4,
    )


@pytest.mark.parametrize(("people", "units"), [(40, 8), (2_000, 200), (200_000, 50_000)])
def test_a_line_fits(people: int, units: int) -> None:
    assert len(line_of(snapshot(people, units, 100.0))) <= 80


def test_a_line_says_what_is_going_on() -> None:
    line = line_of(snapshot())
    for figure in (
        "3s line",
        "line  1000",
        "in   500",
        "+145/s",
        "held    50",
        "sold 100/200",
        "57 ms",
    ):
        assert figure in line, line
    assert "9240 EUR 57 ms" in line


@pytest.mark.parametrize("seconds", [-1.2, 61.0])
@pytest.mark.parametrize(("people", "units"), [(40, 8), (200_000, 50_000)])
def test_the_panel_fits(people: int, units: int, seconds: float) -> None:
    console = Console(file=io.StringIO(), width=200, highlight=False)
    console.print(panel_of(snapshot(people, units, seconds)))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert max(len(line.rstrip()) for line in lines) <= 80, lines
    assert len(lines) < 20


def test_a_terminal_gets_the_panel_and_a_file_gets_lines() -> None:
    assert isinstance(watcher(Console(file=io.StringIO())), Lines)
    assert isinstance(watcher(Console(file=io.StringIO(), force_terminal=True)), Panel)
