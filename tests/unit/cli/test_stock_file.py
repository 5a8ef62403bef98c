"""Stock as a file: read whole, or not at all, with the line that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairdrop.cli.stock_file import read_stock
from tests.unit.cli.test_sale_commands import SALE, Answers, sale, server

__all__ = ["server"]


def test_a_file_may_come_from_a_spreadsheet() -> None:
    text = '\ufeffVariant; Units ;sale\r\nStanding;120;concert\r\n\r\n"Ticket, Seat";0;other\r\n'
    assert read_stock(text, None) == {
        "concert": [{"variant": "Standing", "units": 120}],
        "other": [{"variant": "Ticket, Seat", "units": 0}],
    }


@pytest.mark.parametrize(
    ("text", "sale_name", "word"),
    [
        ("", "x", "first line"),
        ("variant,price\na,1\n", "x", "first line"),
        ("variant,units\n", "x", "no stock"),
        ("variant,units\na,1\n", None, "--sale"),
        ("variant,units,sale\na,1,y\n", "x", "--sale"),
        ("variant,units\na,-1\n", "x", "line 2"),
        ("variant,units\na,1.5\n", "x", "line 2"),
        ("variant,units\na,99999999\n", "x", "line 2"),
        ("variant,units\na,1\n\nb\n", "x", "line 4"),
        ("variant,units\na,1,2\n", "x", "line 2"),
        ("variant,units\n,1\n", "x", "line 2"),
        ("variant,units\na,1\na,2\n", "x", "twice"),
        ('variant,units\n"a,1\n', "x", "end of data"),
    ],
)
def test_what_is_no_stock_is_said_with_its_line(
    text: str, sale_name: str | None, word: str
) -> None:
    with pytest.raises(ValueError, match=word):
        read_stock(text, sale_name)


def test_a_file_is_imported_with_its_name_for_the_audit(server: Answers, tmp_path: Path) -> None:
    file = tmp_path / "stock.csv"
    file.write_text("variant,units\nStanding,120\n", encoding="utf-8")
    server.document = {
        "variants": [{"name": "Standing", "quantity": 120, "free": 120, "held": 0, "sold": 0}]
    }
    ran = sale(server, "stock", "import", str(file), "--sale", "a concert")
    assert ran.status == 0, ran.errors
    assert "120 units" in ran.output
    ((method, path, body, _),) = server.asked
    assert (method, path) == ("POST", "/admin/v1/sales/a%20concert/stock")
    assert body == {
        "stock": [{"variant": "Standing", "units": 120}],
        "source": "file stock.csv",
    }


def test_a_wrong_file_asks_nobody(server: Answers) -> None:
    server.document = SALE
    ran = sale(server, "stock", "import", "-", "--sale", "x", given="variant,units\na,b\n")
    assert ran.status == 2
    assert "line 2" in ran.errors
    assert server.asked == []
