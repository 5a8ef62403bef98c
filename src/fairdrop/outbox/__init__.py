"""The outbox: events that leave only if their change is committed (SPEC E1)."""

from .records import Event, insert_events

__all__ = ["Event", "insert_events"]
