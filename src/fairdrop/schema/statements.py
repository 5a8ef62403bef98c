"""Running a migration's SQL file, which holds many statements, through Alembic's connection."""

from __future__ import annotations

from importlib import resources
from typing import Any

from alembic import op


def run_file(name: str) -> None:
    """Run ``migrations/sql/<name>.sql`` in the migration's transaction."""
    path = resources.files("fairdrop.schema") / "migrations" / "sql" / f"{name}.sql"
    sql = path.read_text("utf-8")
    adapted: Any = op.get_bind().connection.dbapi_connection
    # The driver's simple protocol takes a whole script; SQLAlchemy prepares one statement a time.
    adapted.run_async(lambda connection: connection.execute(sql))
