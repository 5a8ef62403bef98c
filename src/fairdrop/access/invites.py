"""Invitations: who may join a sale, who may join early, and who stands at the front (W19).

The database keeps keyed hashes (HMAC-SHA256, RFC 2104) of codes, e-mail addresses and buyers: whoever
reads it without the key learns nobody's address, and no code. An invitation may be used by one visitor
or by several; each use is on record with its time, and so is what operators do.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
import unicodedata
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from fairdrop.batching import Batcher
from fairdrop.drivers.database import Queries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairdrop.drivers.database import Database

SQL = Queries("fairdrop.access", "invites")
FRESH_S = 1.0
"""How long a process trusts what it knows of a sale's rules."""
CODE_SHORTEST = 8
"""Characters that a code has at the least: fewer could be tried out."""
_REMEMBERED = 1_000


class Kind(StrEnum):
    """What an invitation is known by."""

    CODE = "code"
    EMAIL = "email"
    BUYER = "buyer"


class Tier(StrEnum):
    """What an invitation is good for; each includes the one before."""

    INVITED = "invited"
    PRIORITY = "priority"
    BYPASS = "bypass"


class Entry(StrEnum):
    """Who may join a sale."""

    OPEN = "open"
    INVITED = "invited"


class InviteRefusal(StrEnum):
    """Why an invitation does not count."""

    UNKNOWN = "unknown"
    USED_UP = "used_up"
    OTHER_USED = "other_used"


class Rules(NamedTuple):
    """A sale's rules; ``has_invites`` is false where nobody need be looked up."""

    entry: Entry
    priority_opens_at: datetime | None
    has_invites: bool

    @property
    def is_for_all(self) -> bool:
        """Whether everybody is alike here."""
        return self.entry is Entry.OPEN and not self.has_invites


class Count(NamedTuple):
    """Invitations of one kind and tier."""

    kind: Kind
    tier: Tier
    invites: int
    uses_max: int
    used: int
    revoked: int


class Invites:
    """Invitations and rules of all sales. All but known rules raise DatabaseUnavailable."""

    def __init__(self, database: Database, key: bytes) -> None:
        """Take the database, and a secret that the key of the hashes is made of."""
        self._database = database
        self._key = hmac.digest(key, b"fairdrop invitations", hashlib.sha256)
        self._rules: dict[str, tuple[float, Rules]] = {}
        self._loading: dict[str, asyncio.Task[Rules]] = {}
        self._batchers: dict[str, Batcher[str, Tier | None]] = {}

    # ------------------------------------------------------------ what buyers meet

    async def rules(self, sale: str) -> Rules:
        """The sale's rules. Costs a look-up for a sale asked about before.

        What is a second old is read anew beside the request, and serves while the database is away:
        the line goes on. Raises DatabaseUnavailable for a sale that was never asked about.
        """
        known = self.known_rules(sale)
        return await asyncio.shield(self._load(sale)) if known is None else known

    def known_rules(self, sale: str) -> Rules | None:
        """The same of a sale asked about before, else None; nothing is awaited."""
        known = self._rules.get(sale)
        if known is None:
            return None
        if known[0] <= time.monotonic() and sale not in self._loading:
            self._load(sale)
        return known[1]

    def _load(self, sale: str) -> asyncio.Task[Rules]:
        """One read of the database, however many ask for the sale at the moment."""
        task = self._loading.get(sale)
        if task is None:
            task = self._loading[sale] = asyncio.get_running_loop().create_task(self._read(sale))
            task.add_done_callback(lambda done: self._loaded(sale, done))
        return task

    def _loaded(self, sale: str, task: asyncio.Task[Rules]) -> None:
        # A read that began before a change says nothing of the time after it.
        current = self._loading.get(sale) is task
        if current:
            del self._loading[sale]
        if task.cancelled() or task.exception() is not None or not current:
            return
        if len(self._rules) >= _REMEMBERED:
            self._rules.clear()
        self._rules[sale] = (time.monotonic() + FRESH_S, task.result())

    def _forget(self, sale: str) -> None:
        self._rules.pop(sale, None)
        self._loading.pop(sale, None)

    async def _read(self, sale: str) -> Rules:
        async with self._database.connection() as connection:
            row = await connection.fetchrow(SQL["policy_of"], UUID(sale))
        if row is None:
            return Rules(Entry.OPEN, None, has_invites=False)
        return Rules(Entry(row["entry"]), row["priority_opens_at"], row["has_invites"])

    def tier(self, sale: str, visitor: str) -> asyncio.Future[Tier | None]:
        """What the visitor's invitation is good for, used before or by name; coalesced."""
        batcher = self._batchers.get(sale)
        if batcher is None:

            async def look_up(visitors: list[str]) -> Sequence[Tier | None]:
                return await self._tiers(sale, visitors)

            if len(self._batchers) >= _REMEMBERED:
                self._batchers.clear()
            batcher = self._batchers[sale] = Batcher("invites", look_up, max_batch=200)
        return batcher.submit(visitor)

    async def use(self, sale: str, visitor: str, kind: Kind, value: str) -> Tier | InviteRefusal:
        """Use an invitation; the same one again by the same visitor changes nothing."""
        return await self._use(UUID(sale), visitor, kind, self._digest(sale, kind, value))

    async def _tiers(self, sale: str, visitors: list[str]) -> list[Tier | None]:
        digests = [self._digest(sale, Kind.BUYER, visitor) for visitor in visitors]
        async with self._database.connection() as connection:
            rows = await connection.fetch(SQL["tiers_of"], UUID(sale), visitors, digests)
        found: dict[str, Tier] = {}
        named: set[str] = set()
        on_record: set[str] = set()
        order = list(Tier)
        for row in rows:
            tier, visitor = Tier(row["tier"]), row["visitor"]
            (named if row["named"] else on_record).add(visitor)
            if visitor not in found or order.index(tier) > order.index(found[visitor]):
                found[visitor] = tier
        for visitor in named - on_record:
            # On record like any other use.
            await self._use(
                UUID(sale), visitor, Kind.BUYER, self._digest(sale, Kind.BUYER, visitor)
            )
        return [found.get(visitor) for visitor in visitors]

    async def _use(
        self, sale: UUID, visitor: str, kind: Kind, digest: bytes
    ) -> Tier | InviteRefusal:
        async with self._database.transaction() as connection:
            row = await connection.fetchrow(SQL["lock_invite"], sale, kind, digest)
            if row is None:
                return InviteRefusal.UNKNOWN
            tier = Tier(row["tier"])
            uses_this = await connection.fetchval(SQL["uses_this"], sale, kind, digest, visitor)
            if uses_this:
                return tier
            if uses_this is not None:
                return InviteRefusal.OTHER_USED
            if not row["is_left"]:
                return InviteRefusal.USED_UP
            if await connection.fetchval(SQL["note_use"], sale, kind, digest, visitor) is None:
                return InviteRefusal.OTHER_USED  # the same visitor, with another one, just now
            await connection.execute(SQL["count_use"], sale, kind, digest)
        return tier

    # ------------------------------------------------------------ what operators do

    async def set_rules(
        self, sale: str, entry: Entry, priority_opens_at: datetime | None, actor: str
    ) -> None:
        """Change who may join; audited."""
        shown = {
            "entry": str(entry),
            "priority_opens_at": priority_opens_at.isoformat() if priority_opens_at else None,
        }
        async with self._database.transaction() as connection:
            await connection.execute(SQL["set_policy"], UUID(sale), entry, priority_opens_at)
            await connection.execute(SQL["insert_audit"], actor, "access", UUID(sale), shown)
        self._forget(sale)

    async def add(  # noqa: PLR0913 - what an invitation is
        self, sale: str, kind: Kind, values: Sequence[str], *, tier: Tier, uses: int, actor: str
    ) -> int:
        """Add invitations; returns how many are new. Audited without their values.

        Raises ValueError for a code of less than eight characters.
        """
        digests = self._digests(sale, kind, values)
        shown = {"kind": str(kind), "tier": str(tier), "uses": uses, "invites": len(digests)}
        async with self._database.transaction() as connection:
            added = await connection.fetch(
                SQL["add_invites"], UUID(sale), kind, digests, tier, uses
            )
            await connection.execute(SQL["insert_audit"], actor, "invite", UUID(sale), shown)
        self._forget(sale)
        return len(added)

    async def revoke(self, sale: str, kind: Kind, values: Sequence[str], actor: str) -> int:
        """Take invitations back; returns how many there were. Places already given stay. Audited."""
        digests = self._digests(sale, kind, values)
        async with self._database.transaction() as connection:
            gone = await connection.fetch(SQL["revoke_invites"], UUID(sale), kind, digests)
            shown: dict[str, Any] = {"kind": str(kind), "invites": len(gone)}
            await connection.execute(SQL["insert_audit"], actor, "uninvite", UUID(sale), shown)
        return len(gone)

    async def counts(self, sale: str) -> list[Count]:
        """How many there are of each sort, and how many were used."""
        async with self._database.connection() as connection:
            rows = await connection.fetch(SQL["count_invites"], UUID(sale))
        return [
            Count(
                Kind(row["kind"]),
                Tier(row["tier"]),
                row["invites"],
                row["uses_max"],
                row["used"],
                row["revoked"],
            )
            for row in rows
        ]

    def _digests(self, sale: str, kind: Kind, values: Sequence[str]) -> list[bytes]:
        if kind is Kind.CODE and any(len(plain(kind, value)) < CODE_SHORTEST for value in values):
            raise ValueError(f"a code has at least {CODE_SHORTEST} letters and digits")
        return sorted({self._digest(sale, kind, value) for value in values})

    def _digest(self, sale: str, kind: Kind, value: str) -> bytes:
        return hmac.digest(
            self._key, f"{sale}\n{kind}\n{plain(kind, value)}".encode(), hashlib.sha256
        )


def plain(kind: Kind, value: str) -> str:
    """A value as it is compared: codes without spaces, hyphens and case, addresses without case."""
    text = unicodedata.normalize("NFKC", value).strip()
    if kind is Kind.BUYER:
        return text
    text = text.casefold()
    return "".join(text.replace("-", "").split()) if kind is Kind.CODE else text
