"""Stock as a CSV file: one line a variant."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

_UNITS_MAX = 10_000_000
_COLUMNS = {"sale", "variant", "units"}


def read_stock(text: str, sale: str | None) -> dict[str, list[dict[str, Any]]]:
    r"""The lines by sale, as the control plane takes them. Raises ValueError with a sentence.

    Commas or semicolons separate; a byte order mark and blank lines do not matter.

    >>> read_stock("variant,units\nStanding,120\n", "concert")
    {'concert': [{'variant': 'Standing', 'units': 120}]}
    """
    text = text.removeprefix("\ufeff")
    heading = text.partition("\n")[0]
    delimiter = ";" if heading.count(";") > heading.count(",") else ","
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        columns = {name.strip().lower() for name in rows.fieldnames or () if name}
        if not {"variant", "units"} <= columns <= _COLUMNS:
            raise ValueError("the first line names the columns: variant, units and, maybe, sale")
        if ("sale" in columns) == (sale is not None):
            raise ValueError("say which sale it is about: a column sale, or the option --sale")
        listed: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            fields = _fields(row, rows.line_num)
            if fields is None:
                continue
            name = sale or fields["sale"]
            lines = listed.setdefault(name, [])
            if any(line["variant"] == fields["variant"] for line in lines):
                raise ValueError(f"line {rows.line_num}: {fields['variant']!r} comes twice")
            lines.append({"variant": fields["variant"], "units": int(fields["units"])})
    except csv.Error as error:
        raise ValueError(f"line {rows.line_num}: {error}") from None
    if not listed:
        raise ValueError("it lists no stock")
    return listed


def _fields(row: dict[str | Any, str | Any], number: int) -> dict[str, str] | None:
    """The row's fields by column; None for a blank one."""
    if None in row or None in row.values():
        raise ValueError(f"line {number} has more or fewer fields than the first line")
    fields = {name.strip().lower(): value.strip() for name, value in row.items()}
    if not any(fields.values()):
        return None
    if not all(fields.values()):
        raise ValueError(f"line {number} has an empty field")
    units = fields["units"]
    if not re.fullmatch(r"\d{1,8}", units, re.ASCII) or int(units) > _UNITS_MAX:
        raise ValueError(f"line {number}: {units!r} is no number of units")
    return fields
