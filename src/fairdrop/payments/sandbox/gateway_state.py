"""What the handlers of one gateway process share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .mischief import Dice
    from .record import Record
    from .webhook_sender import WebhookSender


class GatewayState:
    """The parts that handlers use. ``dice`` is replaced when the mischief is set anew."""

    def __init__(
        self,
        *,
        record: Record,
        sender: WebhookSender,
        dice: Dice,
        secret_key: bytes,
        public_url: str,
    ) -> None:
        """Put the parts together; ``public_url`` is where browsers reach the gateway."""
        self.record = record
        self.sender = sender
        self.dice = dice
        self.secret_key = secret_key
        self.public_url = public_url
