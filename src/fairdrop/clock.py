"""Time, passed in wherever a decision depends on it.

Two clocks decide in production: the store's own ``TIME`` inside scripts and PostgreSQL's
``clock_timestamp()`` inside transactions. The clock here serves everything else (token issue
times, signatures, log lines) and is replaced by a fixed one in tests.
"""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], int]


def now_ms() -> int:
    """Milliseconds since the Unix epoch, by this machine's clock."""
    return time.time_ns() // 1_000_000
