"""The push process: live figures and "it is your turn", told to whoever listens (W7, H10).

A process of its own, because open sockets cost memory and not much else, while requests cost time:
see ``docs/decisions/0006-push-process.md``. It holds nothing that is not in the store: killed, it is
started again, its clients come back, and in between they poll.
"""

from .app import PushApp, make_push_app

__all__ = ["PushApp", "make_push_app"]
