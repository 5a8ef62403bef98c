"""Sales and orders as people read them in a terminal, 80 characters wide."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fairdrop.money import format_minor

Json = Any
_SHORT = 8


def print_sales(console: Console, sales: list[Json]) -> None:
    """One line a sale."""
    if not sales:
        console.print("There is no sale yet. Create one with `fairdrop sale create`.")
        return
    table = _table("Slug", "Name", "Mode", "Opens", "Units")
    for sale in sales:
        units = sum(variant["quantity"] for variant in sale["variants"])
        table.add_row(
            Text(sale["slug"]),
            Text(sale["name"], overflow="ellipsis", no_wrap=True),
            Text(sale["mode"]),
            Text(f"{_minute(sale['opens_at_local'])}\n{sale['timezone']}"),
            Text(f"{units:,}", justify="right"),
        )
    console.print(table)


def print_sale(console: Console, sale: Json, figures: Json | None) -> None:
    """A sale with its settings, and its live figures when the store has it."""
    console.print(Text(sale["name"], style="bold"))
    closes = sale["closes_at_local"]
    facts = [
        ("Id", sale["id"]),
        ("Slug", sale["slug"]),
        ("Mode", sale["mode"] if sale["loaded"] else f"{sale['mode']} (not in the store yet)"),
        ("Opens", f"{_minute(sale['opens_at_local'])} {sale['timezone']} ({sale['opens_at']})"),
        ("Closes", f"{_minute(closes)} {sale['timezone']}" if closes else "when it is closed"),
        ("Pace", f"{sale['rate_per_s']:g} people per second, {sale['cap']:,} inside at most"),
        (
            "Limits",
            f"{sale['order_limit']} units an order, {sale['buyer_limit']} a buyer over the sale",
        ),
        ("Fee", f"{sale['fee_bps'] / 100:g} %"),
        ("Lobby", _lobby(sale)),
    ]
    if figures is not None:
        line = [f"{figures[what]:,} {what}" for what in ("lobby", "waiting", "inside", "joined")]
        money = [_money(figures[what], sale) for what in ("revenue_minor", "fees_minor")]
        facts += [
            ("Line", ", ".join(line)),
            (
                "Orders",
                ", ".join(f"{n:,} {state}" for state, n in sorted(figures["orders"].items()))
                or "none yet",
            ),
            ("Revenue", " and fees of ".join(money)),
        ]
    console.print(_facts(facts))
    console.print()
    console.print(_variants(sale, figures))


def print_stock(console: Console, stock: Json) -> None:
    """What a change of stock led to."""
    kept = f", {stock['buffer']:,} kept back" if stock.get("buffer") else ""
    console.print(
        Text(
            f"{stock['name']}: {stock['quantity']:,} units, {stock['free']:,} free,"
            f" {stock['held']:,} held, {stock['sold']:,} sold{kept}."
        )
    )


def print_orders(console: Console, orders: list[Json], more: bool) -> None:
    """One line an order, oldest first."""
    if not orders:
        console.print("There are no such orders.")
        return
    table = _table("Order", "State", "Units", "Total")
    for order in orders:
        units = sum(line["quantity"] for line in order["lines"])
        table.add_row(
            Text(order["id"], no_wrap=True),
            Text(order["state"]),
            Text(f"{units:,}", justify="right"),
            Text(format_minor(order["total_minor"], order["currency"]), justify="right"),
        )
    console.print(table)
    if more:
        console.print(Text(f"There are more: go on with --after {orders[-1]['id']}", style="dim"))


def _variants(sale: Json, figures: Json | None) -> Table:
    live = {stock["id"]: stock for stock in figures["variants"]} if figures is not None else {}
    table = _table("#", "Variant", "Price", "Units", "Free", "Held", "Sold")
    for number, variant in enumerate(sale["variants"], start=1):
        stock = live.get(variant["id"])
        counts = (
            [f"{stock[name]:,}" for name in ("quantity", "free", "held", "sold")]
            if stock is not None
            else [f"{variant['quantity']:,}", "", "", ""]
        )
        table.add_row(
            Text(str(number)),
            Text(f"{variant['product']}, {variant['name']}"),
            Text(_money(variant["price_minor"], sale), justify="right"),
            *(Text(count, justify="right") for count in counts),
        )
    return table


def _facts(facts: list[tuple[str, str]]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, value in facts:
        table.add_row(Text(name, style="dim"), Text(value))
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column)
    return table


def _money(minor: int, sale: Json) -> str:
    return format_minor(minor, sale["currency"])


def _minute(local: str) -> str:
    """``2026-03-01T08:30:00`` as ``2026-03-01 08:30``; seconds only when there are any."""
    date, _, clock = local.partition("T")
    return f"{date} {clock.removesuffix(':00') if clock.count(':') > 1 else clock}"


def _lobby(sale: Json) -> str:
    if not sale["lobby_ms"]:
        return "none"
    beacon = "no beacon" if sale["beacon"] == "none" else f"beacon: {sale['beacon']}"
    return (
        f"opens {sale['lobby_ms'] / 60_000:g} min before; {beacon}; commitment {sale['commitment']}"
    )
