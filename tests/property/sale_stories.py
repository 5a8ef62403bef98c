"""Histories of a sale that are told each time, by what happens in them; ``True``: money is set aside."""

from __future__ import annotations

from typing import Any

Step = tuple[str, Any]
TOTAL = 1_100
"""What a unit costs there, with its fee."""
STORIES: dict[str, tuple[list[Step], bool]] = {
    "set aside in time, too late, and never told of; cancelled when it cannot be any more": (
        [
            ("buy", ("ann", 1)),
            ("buy", ("bob", 1)),
            ("buy", ("cid", 1)),
            ("success", (0, 2)),
            ("success", (1, 0)),
            ("settle", True),
            ("cancel", (0, True)),
            ("decline", 2),
            ("deadline", 2),
            ("sweep", False),
            ("success", (2, 1)),
            ("settle", True),
            ("lose_store", 1),
            ("ask", None),
            ("settle", False),
            ("sweep", True),
            ("give_back", (0, "unit", True, True)),
        ],
        True,
    ),
    "the same buyer begins anew, and the first order's money comes after all": (
        [
            ("buy", ("ann", 1)),
            ("deadline", 0),
            ("sweep", True),
            ("buy", ("ann", 2)),
            ("success", (0, 1)),
            ("settle", True),
        ],
        False,
    ),
    "refunded before the store has heard that it was sold: the units stay sold": (
        [
            ("buy", ("ann", 2)),
            ("success", (0, 1)),
            ("die_settling", None),
            ("settle", False),
            ("give_back", (0, "all", False, True)),
            ("refund", False),
            ("sweep", True),
            ("reserve", ("bob", 3)),
        ],
        False,
    ),
    "and of two units that were sold unheard of, one goes on sale again": (
        [
            ("sale", ("ann", 2, False)),
            ("give_back", (0, "unit", True, True)),
            ("reserve", ("bob", 3)),
            ("sweep", True),
            ("sale", ("cid", 3, True)),
        ],
        False,
    ),
    "nobody has told the store of the sale, nor of the unit, when the sweep meets the hold": (
        [
            ("sale", ("ann", 2, False)),
            ("give_back", (0, "unit", True, False)),
            ("sweep", True),
            ("sale", ("cid", 3, True)),
        ],
        False,
    ),
    "part by part, until more is asked for than is left, with an old refund told again": (
        [
            ("sale", ("ann", 3, True)),
            *(
                step
                for wanted in ("unit", 600, 2 * TOTAL + 1, "unit", "unit", "all", TOTAL)
                for step in (
                    ("give_back", (0, wanted, True, True)),
                    ("tell_refund", 0),
                    ("refund", True),
                    ("settle", True),
                )
            ),
        ],
        False,
    ),
    "the store is lost with a reservation, an order, a sale and a returned unit unheard of": (
        [
            ("sale", ("ann", 2, False)),
            ("give_back", (0, "unit", True, False)),
            ("buy", ("bob", 1)),
            ("reserve", ("cid", 1)),
            ("lose_store", 0),
            ("start", 2),
            ("success", (1, 1)),
            ("settle", True),
            ("reserve", ("ann", 2)),
            ("sweep", True),
        ],
        False,
    ),
    "a failed payment that succeeds after all, with a lost store in between": (
        [
            ("buy", ("ann", 1)),
            ("decline", 0),
            ("decline", 0),
            ("settle", False),
            ("lose_store", 1),
            ("success", (0, 2)),
            ("settle", False),
            ("settle", True),
            ("give_back", (0, "all", True, False)),
        ],
        False,
    ),
    "late money of an order from before, whose buyer is in again and has begun anew": (
        [
            ("buy", ("ann", 1)),
            ("deadline", 0),
            ("sweep", False),
            ("lose_store", 1),
            ("buy", ("ann", 2)),
            ("success", (0, 1)),
            ("settle", True),
            ("success", (1, 1)),
            ("settle", True),
            ("sweep", True),
        ],
        False,
    ),
    "dies after the commit, with late money in the same batch, and nothing left at first": (
        [
            ("buy", ("ann", 2)),
            ("buy", ("bob", 2)),
            ("deadline", 0),
            ("sweep", False),
            ("success", (0, 2)),
            ("success", (1, 1)),
            ("settle", False),
            ("settle", True),
        ],
        False,
    ),
}
