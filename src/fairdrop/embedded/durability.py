"""What acknowledged data of the embedded services survives."""

from __future__ import annotations

import enum


class Durability(enum.Enum):
    """The worst event after which everything acknowledged is still there."""

    POWER_LOSS = enum.auto()
    """The machine stops. PostgreSQL syncs each commit; Valkey syncs every second, so the store may
    lose the last second, which the database then catches."""
    PROCESS_DEATH = enum.auto()
    """Any process is killed at any time, and the machine goes on. Nothing is synced to the disk:
    for tests and demonstrations."""
