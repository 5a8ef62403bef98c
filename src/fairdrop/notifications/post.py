"""Handing mails to a mail server over SMTP (RFC 5321), with aiosmtplib."""

from __future__ import annotations

from email.headerregistry import Address
from email.utils import parseaddr
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Self
from urllib.parse import unquote, urlsplit

import aiosmtplib

from fairdrop.errors import ConfigurationError, FairdropError

if TYPE_CHECKING:
    from email.message import EmailMessage
    from types import TracebackType

TIMEOUT_S = 15.0
"""What a server may take for one answer; RFC 5321 allows minutes, a batch cannot wait for them."""
_PERMANENT = 500
_SCHEMES = {"smtp": 25, "smtps": 465}


class PostUnavailable(FairdropError):
    """The mail server does not answer, or takes no mail from us: try later."""


class Delivery(StrEnum):
    """What the server did with one mail."""

    TAKEN = "taken"
    PUT_OFF = "put_off"
    REFUSED = "refused"
    """For good: it would be refused again."""


class Answer(NamedTuple):
    """What the server did, in one word and in its own."""

    delivery: Delivery
    words: str = ""


class Post:
    """One mail server. Use :meth:`session` for a run of mails over one connection."""

    def __init__(self, url: str, password: str | None) -> None:
        """``url`` is ``smtp://[user@]host[:port]``, or ``smtps`` for TLS from the first byte.

        A user name goes over TLS only: with ``smtp`` the server then has to offer STARTTLS. Raises
        ConfigurationError for anything else.
        """
        parts = urlsplit(url)
        if parts.scheme not in _SCHEMES or not parts.hostname or parts.password:
            raise ConfigurationError(
                "FAIRDROP_SMTP_URL is smtp://[user@]host[:port] or smtps://…;"
                " the password is FAIRDROP_SMTP_PASSWORD"
            )
        self._host = parts.hostname
        self._port = parts.port or _SCHEMES[parts.scheme]
        self._tls = parts.scheme == "smtps"
        self._user = unquote(parts.username) if parts.username else None
        self._password = password

    def session(self) -> Session:
        """A connection, while an ``async with`` block lasts. Raises PostUnavailable on entering."""
        must_start_tls = True if self._user and not self._tls else None
        return Session(
            aiosmtplib.SMTP(
                hostname=self._host,
                port=self._port,
                use_tls=self._tls,
                start_tls=False if self._tls else must_start_tls,
                username=self._user,
                password=self._password,
                timeout=TIMEOUT_S,
            )
        )


class Session:
    """One connection to the server."""

    def __init__(self, client: aiosmtplib.SMTP) -> None:
        """Not connected yet."""
        self._client = client

    async def __aenter__(self) -> Self:
        """Connect, and log in if there is a user."""
        try:
            await self._client.connect()
        except (aiosmtplib.SMTPException, OSError) as error:
            self._client.close()
            raise PostUnavailable(f"the mail server: {error}") from error
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave politely, or just leave."""
        try:
            await self._client.quit()
        except (aiosmtplib.SMTPException, OSError):
            self._client.close()

    async def send(self, message: EmailMessage) -> Answer:
        """Hand one mail over. Raises PostUnavailable when the connection is of no use any more."""
        try:
            await self._client.send_message(message)
        except aiosmtplib.SMTPRecipientsRefused as error:
            codes = [refused.code for refused in error.recipients]
            for_good = all(code >= _PERMANENT for code in codes)
            return Answer(Delivery.REFUSED if for_good else Delivery.PUT_OFF, _words(error))
        except (aiosmtplib.SMTPDataError, aiosmtplib.SMTPNotSupported) as error:
            code = getattr(error, "code", _PERMANENT)
            for_good = code >= _PERMANENT
            return Answer(Delivery.REFUSED if for_good else Delivery.PUT_OFF, _words(error))
        except (aiosmtplib.SMTPException, OSError) as error:
            raise PostUnavailable(f"the mail server: {error}") from error
        return Answer(Delivery.TAKEN)


def parse_address(text: str) -> Address:
    """``Name <user@host>`` or ``user@host``. Raises ConfigurationError for anything else."""
    name, address = parseaddr(text)
    user, at, domain = address.rpartition("@")
    if not at or not user or not domain:
        raise ConfigurationError("FAIRDROP_MAIL_FROM is an address: Fairdrop <shop@example.org>")
    return Address(display_name=name, username=user, domain=domain)


def _words(error: BaseException) -> str:
    return str(error)[:300]
