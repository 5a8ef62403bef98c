"""The mails that were taken: one file each, the newest ones kept."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from email import message_from_bytes
from email.header import decode_header, make_header
from email.message import EmailMessage
from email.policy import default
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

KEPT = 2_000
"""Beyond so many, the oldest go."""


@dataclass(frozen=True, slots=True)
class Letter:
    """One mail as it is shown."""

    name: str
    """Of its file, and in its address."""
    to: str
    sender: str
    subject: str
    date: str
    message_id: str
    body: str


class Letters:
    """A directory of mails, newest first."""

    def __init__(self, directory: Path) -> None:
        """Take what an earlier run has left."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory = directory
        self._names = sorted(path.stem for path in directory.glob("*.eml"))
        self._count = itertools.count()

    def keep(self, content: bytes) -> None:
        """Keep one mail; when this returns it is on disk, whole."""
        name = f"{time.time_ns():020d}-{next(self._count) % 1_000_000:06d}"
        partial = self._directory / f"{name}.partial"
        partial.write_bytes(content)
        partial.rename(self._directory / f"{name}.eml")
        self._names.append(name)
        while len(self._names) > KEPT:
            (self._directory / f"{self._names.pop(0)}.eml").unlink(missing_ok=True)

    def newest(self, limit: int) -> list[Letter]:
        """Up to ``limit`` mails, the newest first."""
        return [letter for name in self._names[: -limit - 1 : -1] if (letter := self.find(name))]

    def find(self, name: str) -> Letter | None:
        """The mail of this name; None when there is none."""
        if name not in self._names:
            return None
        raw = (self._directory / f"{name}.eml").read_bytes()
        message = message_from_bytes(raw, policy=default)
        assert isinstance(message, EmailMessage), "the policy's class of messages"
        headers = {name: str(value) for name, value in message.raw_items()}
        body = message.get_body(("plain",))
        return Letter(
            name=name,
            to=_read(headers.get("To", "")),
            sender=_read(headers.get("From", "")),
            subject=_read(headers.get("Subject", "")),
            date=str(message["Date"] or ""),
            message_id=str(message["Message-ID"] or ""),
            body=body.get_content() if body is not None else "",
        )


def _read(header: str) -> str:
    """A header as a mail program shows it: nothing stands between two encoded words (RFC 2047, 6.2)."""
    return str(make_header(decode_header(header.replace("\r", "").replace("\n", ""))))
