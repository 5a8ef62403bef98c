"""The gateway's own record: SQLite, one writer, group commit.

**Invariant:** an operation's result reaches its caller only after the transaction that carries it
is on disk (write-ahead log, ``synchronous=FULL``). A reader in the same batch is held back just
the same, so nothing is ever told that a crash could take back.

How it is quick: requests that arrive while a commit waits for the disk form the next transaction
(:class:`~fairdrop.batching.Batcher`). The statements themselves run on the event loop's thread,
a few microseconds each; only COMMIT, which waits for the disk, runs on the one writer thread. Run
there too, every statement would give up the interpreter lock and have to win it back, which
costs more than the statement.

The database is opened in exclusive locking mode, so a second process on the same directory fails
at its start instead of spoiling the books.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from fairdrop.batching import Batcher
from fairdrop.errors import FairdropError

from .statements import SCHEMA, STATEMENTS

if TYPE_CHECKING:
    from pathlib import Path

    from fairdrop.clock import Clock

MAX_BATCH = 256
MAX_QUEUE = 20_000

_SCHEMA_VERSION = 2
_CHECKPOINT_PAGES = 4_000
_CACHED_STATEMENTS = 64

Result = TypeVar("Result")


class RecordUnusable(FairdropError):
    """The data directory cannot be used: in use by another process, or of another version."""


class Delivery(msgspec.Struct, frozen=True):
    """One webhook to be sent: a row of ``deliveries``."""

    seq: int
    event: str
    body: bytes
    created_ms: int
    due_ms: int
    attempts: int = 0


class Transaction:
    """What an operation works on: the open transaction, its time, and what to do after it.

    ``deliveries`` and ``settlements`` (intent id, when) collect what the commit makes due,
    ``released``, ``dropped`` and ``copies`` count what became of webhooks. They are handed on only
    if the transaction is committed.
    """

    __slots__ = ("_db", "copies", "deliveries", "dropped", "now_ms", "released", "settlements")

    def __init__(self, db: sqlite3.Connection, now_ms: int) -> None:
        """Wrap the connection, inside its transaction."""
        self._db = db
        self.now_ms = now_ms
        self.deliveries: list[Delivery] = []
        self.settlements: list[tuple[str, int]] = []
        self.released = 0
        self.dropped = 0
        self.copies = 0

    def execute(
        self, name: str, parameters: dict[str, Any] | tuple[Any, ...] = ()
    ) -> sqlite3.Cursor:
        """Run the named statement."""
        return self._db.execute(STATEMENTS[name], parameters)

    def row(self, name: str, *parameters: object) -> tuple[Any, ...] | None:
        """The first row of the named statement, None if it gives none."""
        row: tuple[Any, ...] | None = self._db.execute(STATEMENTS[name], parameters).fetchone()
        return row


Operation = Callable[[Transaction], Any]


class Record:
    """The books of one gateway. Operations are plain functions; :meth:`run` makes them durable."""

    def __init__(self, path: Path, clock: Clock, on_commit: Callable[[Transaction], None]) -> None:
        """Open (and if need be create) the database file.

        ``on_commit`` is called after each commit that wrote something; it must not raise.
        Raises RecordUnusable when another process has the file or it is of another version.
        """
        self._clock = clock
        self._on_commit = on_commit
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="record-writer")
        self._batcher: Batcher[Operation, Any] = Batcher(
            "record",
            self._run_batch,
            max_batch=MAX_BATCH,
            max_queue=MAX_QUEUE,
            retry_singly=(Exception,),
        )
        self._db = _open(path)

    async def run(self, operation: Callable[[Transaction], Result]) -> Result:
        """Run the operation in the next transaction; its result is on disk when this returns.

        An operation that raises is rolled back and fails alone. It may be run twice (with its
        batch, then alone), so it must not act outside of its transaction. Raises Overloaded
        when too many wait.
        """
        result: Result = await self._batcher.submit(operation)
        return result

    async def close(self) -> None:
        """Wait for what is queued, then close the file. Nothing may be submitted after."""
        await self._batcher.submit(lambda _tx: None)
        self._writer.shutdown(wait=True)
        self._db.close()

    async def _run_batch(self, operations: list[Operation]) -> list[Any]:
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        transaction = Transaction(db, self._clock())
        changes_before = db.total_changes
        try:
            results = [operation(transaction) for operation in operations]
            if db.total_changes == changes_before:
                db.execute("COMMIT")  # nothing written: no disk to wait for
                if transaction.settlements:
                    # A settlement that came too early has written nothing, and is still to come.
                    self._on_commit(transaction)
                return results
            await asyncio.get_running_loop().run_in_executor(self._writer, db.execute, "COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        self._on_commit(transaction)
        return results


def _open(path: Path) -> sqlite3.Connection:
    try:
        db = sqlite3.connect(
            path,
            timeout=1,
            isolation_level=None,
            check_same_thread=False,  # the loop and the writer take turns, never at once
            cached_statements=_CACHED_STATEMENTS,
        )
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA foreign_keys = ON")
        db.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _SCHEMA_VERSION):
            raise RecordUnusable(f"{path} has version {version}, this is {_SCHEMA_VERSION}")
        db.executescript(SCHEMA)
        db.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
    except sqlite3.Error as error:
        raise RecordUnusable(f"{path}: {error}") from error
    return db
