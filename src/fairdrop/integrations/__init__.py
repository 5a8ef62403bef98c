"""Fairdrop's waiting room in front of a checkout of your own (W20).

One core, :class:`Door`, and four thin adapters: ``fairdrop.integrations.asgi``, ``.wsgi``,
``.django`` and ``.flask``. ``docs/protect-your-checkout.md`` begins with an example.
"""

from fairdrop.waiting_room import Admission

from .door import Door
from .model import Answer, Completion, DoorUnavailable, Passed, Visit

__all__ = ["Admission", "Answer", "Completion", "Door", "DoorUnavailable", "Passed", "Visit"]
