"""The one root of every exception that Fairdrop raises on purpose.

An outcome that a buyer can meet (sold out, not admitted, limit reached) is never an exception: it
is a returned value with a name. Exceptions stand for broken infrastructure and for caller bugs,
and the web layer is the only place that translates them into an answer.
"""

from __future__ import annotations


class FairdropError(Exception):
    """Root of all of Fairdrop's exceptions."""


class StoreUnavailable(FairdropError):
    """The store (Valkey) did not answer in time, or refused: nothing was promised."""


class DatabaseUnavailable(FairdropError):
    """The database (PostgreSQL) did not answer, or the connection broke before an answer."""


class Overloaded(FairdropError):
    """A queue in front of a batch is full; try again after ``retry_after_s`` seconds."""

    def __init__(self, queue: str, retry_after_s: int = 1) -> None:
        """Name the queue that is full and when to come back."""
        super().__init__(f"too many requests wait for {queue}")
        self.queue = queue
        self.retry_after_s = retry_after_s


class ConfigurationError(FairdropError):
    """A setting is missing or contradicts another; the message says what to change."""
