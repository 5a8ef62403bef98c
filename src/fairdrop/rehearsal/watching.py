"""How a rehearsal looks while it runs: a panel in a terminal, a line a second elsewhere."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fairdrop.money import exponent, format_minor

if TYPE_CHECKING:
    from .rehearse import Snapshot

_ORDERS = (
    ("confirmed", ("CONFIRMED",)),
    ("paying", ("RESERVED", "PAYMENT_PENDING")),
    ("failed", ("PAYMENT_FAILED",)),
    ("expired", ("EXPIRED",)),
    ("cancelled", ("CANCELLED",)),
    ("refunded", ("REFUND_PENDING", "REFUNDED")),
)


class Watcher(Protocol):
    """Shows snapshots, between entering and leaving it."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the terminal as it was."""

    def __call__(self, snapshot: Snapshot) -> None:
        """Show this moment."""


def watcher(console: Console) -> Watcher:
    """The right one for this console."""
    return Panel(console) if console.is_terminal else Lines(console)


class Lines(AbstractContextManager["Lines", None]):
    """One plain line a moment, at most 80 characters wide."""

    def __init__(self, console: Console) -> None:
        """Print to this console."""
        self._console = console

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing to undo."""

    def __call__(self, snapshot: Snapshot) -> None:
        """Print the line."""
        self._console.print(line_of(snapshot), highlight=False, soft_wrap=True)


def line_of(snapshot: Snapshot) -> str:
    """The moment in one line; money without its decimals."""
    figures = snapshot.figures
    units = figures.units
    revenue = (figures.revenue_minor + figures.fees_minor) // 10 ** exponent(figures.currency)
    return (
        f"{snapshot.seconds:4.0f}s line {_short(figures.waiting)} in {_short(figures.inside)} "
        + f"+{snapshot.admitted_per_s:.0f}/s".ljust(7)
        + f"held {_short(units.held)} sold {units.sold}/{units.quantity} "
        f"{revenue} {figures.currency} {_ms(snapshot.reserve_p99_ms)}"
    )


def _short(number: int) -> str:
    """At most five characters: 1234, 12345, 123k."""
    return f"{number:>5}" if number < 100_000 else f"{number // 1_000:>4}k"  # noqa: PLR2004


class Panel(AbstractContextManager["Panel", None]):
    """A panel that is drawn anew each moment."""

    def __init__(self, console: Console) -> None:
        """Draw on this console."""
        self._live = Live(console=console, refresh_per_second=4)

    def __enter__(self) -> Self:
        """Begin to draw."""
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the last picture where it is."""
        self._live.stop()

    def __call__(self, snapshot: Snapshot) -> None:
        """Draw the panel."""
        self._live.update(panel_of(snapshot))


def panel_of(snapshot: Snapshot) -> Table:
    """The moment as a table of at most 78 columns."""
    figures = snapshot.figures
    units = figures.units
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", width=9)
    grid.add_column(width=65)
    grid.add_row("Sale", _sale(snapshot))
    grid.add_row("Crowd", _crowd(snapshot))
    grid.add_row("Line", _text(f"{figures.waiting:,}", " waiting"))
    grid.add_row(
        "Inside",
        _text(
            f"{figures.inside:,}",
            f" of {figures.cap:,} places, {snapshot.admitted_per_s:,.0f} admitted a second",
        ),
    )
    grid.add_row(
        "Units", _text(f"{units.sold:,}", f" of {units.quantity:,} sold, {units.held:,} held")
    )
    grid.add_row("", ProgressBar(total=max(1, units.quantity), completed=units.sold, width=48))
    for variant in figures.variants:
        name = variant.name.rpartition(", ")[2]
        grid.add_row(
            "",
            _text(
                f"{name:<16}",
                f"{variant.free:>6,} free {variant.held:>6,} held {variant.sold:>6,} sold",
            ),
        )
    grid.add_row("Orders", _orders(figures.orders))
    grid.add_row(
        "Revenue",
        _text(
            format_minor(figures.revenue_minor, figures.currency),
            f" and {format_minor(figures.fees_minor, figures.currency)} of fees",
        ),
    )
    grid.add_row(
        "Reserve",
        _text(
            f"{_ms(snapshot.reserve_p50_ms)}",
            f" for half of the answers, {_ms(snapshot.reserve_p99_ms)} for 99 %",
        ),
    )
    return grid


def _sale(snapshot: Snapshot) -> Text:
    if snapshot.seconds < 0:
        return _text(f"opens in {-snapshot.seconds:.0f} s", "")
    return _text(snapshot.figures.mode, f" for {snapshot.seconds:.0f} s")


def _crowd(snapshot: Snapshot) -> Text:
    return _text(
        f"{snapshot.arrived:,}",
        f" of {snapshot.buyers:,} buyers have come, {snapshot.gone:,} are gone",
    )


def _orders(states: dict[str, int]) -> Text:
    counts = ((word, sum(states.get(state, 0) for state in of)) for word, of in _ORDERS)
    shown = [f"{count:,} {word}" for word, count in counts if count]
    return (
        _text(shown[0], "".join(f", {each}" for each in shown[1:])) if shown else Text("none yet")
    )


def _text(figure: str, rest: str) -> Text:
    return Text.assemble((figure, "bold"), rest)


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f} ms"
