"""The outbox: events that leave only if their change is committed (SPEC E1, E2, E3)."""

from .records import Event, insert_events
from .relay import RELAY_BATCH, Relay

__all__ = ["RELAY_BATCH", "Event", "Relay", "insert_events"]
