"""The durable job that sends mails: rows with the time of their next try, as refunds are (O13).

A row is written in the transaction that confirms the order, and marked after the mail server has
taken the mail. Whoever dies in between sends a second copy with the same Message-ID: SMTP has no
way to ask whether a mail was taken, so this is as far as "once" goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from fairdrop import faults
from fairdrop.drivers.database import Queries

from .message import Bought, MailFacts, confirmation
from .post import Answer, Delivery, PostUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from email.headerregistry import Address

    import asyncpg

    from fairdrop.drivers.database import Database

    from .post import Post, Session

SQL = Queries("fairdrop.notifications", "mails")
BATCH = 50
"""Mails that share a connection; each is put off for 5 s or more when the batch is taken."""
TRIES = 36
"""Tries until a mail is given up: more than a day, at an hour between two of them in the end."""

_log = structlog.get_logger(__name__)


class Mailer:
    """Sends what is due. Any number of processes may do so side by side."""

    def __init__(
        self, database: Database, post: Post, sender: Address, order_url: Callable[[str], str]
    ) -> None:
        """``order_url`` makes, from an order's id, the address of its page."""
        self._database = database
        self._post = post
        self._sender = sender
        self._order_url = order_url

    async def check(self) -> None:
        """Connect and log in, and send nothing. Raises PostUnavailable."""
        async with self._post.session():
            pass

    async def send_due(self) -> int:
        """Send one batch; returns how many were tried.

        Raises PostUnavailable when the mail server is away: what was not sent is due again later.
        """
        async with self._database.connection() as connection:
            rows = await connection.fetch(SQL["mails_due"], BATCH, TRIES)
        if rows:
            async with self._post.session() as session:
                for row in rows:
                    await self._send(session, row)
        return len(rows)

    async def _send(self, session: Session, row: asyncpg.Record) -> None:
        order = row["order_id"]
        try:
            message = confirmation(_facts(row, self._order_url(str(order))), self._sender)
        except (ValueError, IndexError) as error:
            # The standard library raises either for addresses that are none.
            answer = Answer(Delivery.REFUSED, f"no address: {error}"[:300])
        else:
            try:
                answer = await session.send(message)
            except PostUnavailable as error:
                await self._note("mail_put_off", order, str(error)[:300])
                raise
        if answer.delivery is Delivery.TAKEN:
            faults.passing(faults.Point.MAIL_SENT)
            await self._note("mail_sent", order)
            return
        _log.warning("mail_not_taken", order=str(order), what=answer.delivery, words=answer.words)
        refused = answer.delivery is Delivery.REFUSED
        await self._note("mail_refused" if refused else "mail_put_off", order, answer.words)

    async def _note(self, statement: str, *values: object) -> None:
        async with self._database.connection() as connection:
            await connection.execute(SQL[statement], *values)


def _facts(row: asyncpg.Record, order_url: str) -> MailFacts:
    lines = zip(row["products"], row["names"], row["serials"], row["prices"], strict=True)
    return MailFacts(
        order=str(row["order_id"]),
        sale=row["sale"],
        to=row["email"],
        name=row["name"],
        lines=[
            Bought(product, name, [int(serial) for serial in serials.split(",")], price)
            for product, name, serials, price in lines
        ],
        fee_minor=row["fee_minor"],
        total_minor=row["total_minor"],
        currency=row["currency"],
        order_url=order_url,
        confirmed_at=row["created_at"],
    )
