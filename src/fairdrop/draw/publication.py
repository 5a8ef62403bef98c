"""The public files of a draw: parameters, entries, order. ``docs/draw-audit.md`` is their description.

``entries.txt``  one entry id a line, in the order of arrival; published when the list is closed
``order.txt``    ``<lottery number, 64 hex digits> <entry id>`` a line, first place first
``draw.json``    everything else; grows with the draw's state, never changes what it has said
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .model import DrawState

if TYPE_CHECKING:
    from datetime import datetime

    from .model import DrawRecord

FORMAT = "fairdrop-draw-v1"
PARAMETERS_FILE, ENTRIES_FILE, ORDER_FILE = "draw.json", "entries.txt", "order.txt"


def parameters(record: DrawRecord, keys: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What ``draw.json`` says; the seed only once it is revealed. ``keys`` sign proofs of entries."""
    fixed = record.state is not DrawState.COMMITTED
    beacon: dict[str, Any] = {"source": record.beacon, "on_failure": record.beacon_failure}
    if record.revealed:
        beacon |= {
            "value": record.beacon_value,
            "problem": record.beacon_problem,
            "proof": record.beacon_proof,
        }
    files = [ENTRIES_FILE] if fixed else []
    if record.state is DrawState.FILLED:
        files.append(ORDER_FILE)
    return {
        "format": FORMAT,
        "state": record.state.lower(),
        "sale": {"id": record.sale_id, "slug": record.slug, "name": record.name},
        "opens_at": _time(record.opens_at),
        "lobby_ms": record.lobby_ms,
        "window_ms": record.window_ms,
        "commitment": record.commitment,
        "entries": record.entries if fixed else None,
        "root": record.root if fixed else None,
        "fixed_at": _time(record.fixed_at) if fixed else None,
        "beacon": beacon,
        "seed": record.seed if record.revealed else None,
        "drawn_at": _time(record.drawn_at) if record.revealed else None,
        "files": files,
        "keys": list(keys),
    }


def entries_text(entries: Sequence[str]) -> bytes:
    """The content of ``entries.txt``."""
    return "".join(f"{entry}\n" for entry in entries).encode()


def order_text(entries: Sequence[str], drawn: Sequence[bytes], order: Sequence[int]) -> bytes:
    """The content of ``order.txt``; ``order`` are indexes, first place first."""
    return "".join(f"{drawn[index].hex()} {entries[index]}\n" for index in order).encode()


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat().replace("+00:00", "Z") if moment is not None else None
