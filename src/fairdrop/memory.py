"""What a process remembers to save work, with a bound."""

from __future__ import annotations

from itertools import islice
from typing import Any


def make_room(remembered: dict[Any, Any], most: int) -> None:
    """Forget the oldest tenth, once there are ``most`` or more.

    In a rush of hundreds of thousands every request is somebody new: to forget all at once would hold
    up everybody for the 20 ms that freeing 100,000 of them takes, and make the work of all anew.
    """
    if len(remembered) >= most:
        for old in list(islice(remembered, max(1, most // 10))):
            del remembered[old]
