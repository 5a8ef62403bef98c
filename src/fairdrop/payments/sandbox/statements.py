"""The statements of ``sql/record.sql``, by name."""

from __future__ import annotations

import re
from importlib import resources

_TITLE = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def _load() -> dict[str, str]:
    text = resources.files(__package__).joinpath("sql", "record.sql").read_text("utf-8")
    parts = _TITLE.split(text)
    # Comment lines go: the text is the key of SQLite's statement cache, short is quicker.
    return {
        name: "\n".join(line for line in body.splitlines() if line and not line.startswith("--"))
        for name, body in zip(parts[1::2], parts[2::2], strict=True)
    }


STATEMENTS = _load()
SCHEMA = resources.files(__package__).joinpath("schema.sql").read_text("utf-8")
