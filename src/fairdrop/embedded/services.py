"""The embedded store and database of one data directory, running."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Self

from fairdrop.embedded.directories import (
    DataDirectoryLock,
    Directories,
    remove_short_directory,
)
from fairdrop.embedded.durability import Durability
from fairdrop.embedded.postgres import database_url, postgres_spec
from fairdrop.embedded.postgres_home import cluster_elsewhere, prepare_home
from fairdrop.embedded.supervisor import Supervisor
from fairdrop.embedded.valkey import store_url, valkey_spec


class EmbeddedServices:
    """Valkey and PostgreSQL for ``data``, while the ``async with`` block lasts.

    Entering it takes the data directory's lock, starts both at the same time and returns when both
    serve: about 1.5 s with a new directory, 0.2 s with an old one. Further children (web, worker,
    gateway) are given to ``supervisor.start`` and are stopped first. Leaving it stops everything.

    A service whose URL is given is external: it is not started, and its URL is passed on.

    Raises, on entering: DataDirectoryInUse, ConfigurationError (the directory cannot be used),
    ChildNotReady and InitdbFailed (each with the end of its log). Enter it on a thread that lives
    as long as the block; combine it with :class:`~fairdrop.embedded.stop_signals.StopSignals` in a
    program.
    """

    def __init__(
        self,
        data: Path,
        *,
        durability: Durability = Durability.POWER_LOSS,
        external_store_url: str | None = None,
        external_database_url: str | None = None,
    ) -> None:
        self._data = data
        self._durability = durability
        self._external_store_url = external_store_url
        self._external_database_url = external_database_url
        self._open = contextlib.AsyncExitStack()
        self.directories: Directories
        self.supervisor: Supervisor
        self.store_url: str
        self.database_url: str

    async def __aenter__(self) -> Self:
        async with contextlib.AsyncExitStack() as stack:
            self.directories = Directories.prepare(self._data)
            stack.enter_context(DataDirectoryLock(self.directories.data))
            stack.callback(_remove_short_directories, self.directories.data)
            identity = self.directories.identity
            self.supervisor = await stack.enter_async_context(Supervisor(identity))
            await self._start()
            self._open = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    async def _start(self) -> None:
        specs = []
        if self._external_store_url is None:
            self.store_url = store_url(self.directories)
            specs.append(valkey_spec(self.directories, self._durability))
        else:
            self.store_url = self._external_store_url
        if self._external_database_url is None:
            home = prepare_home(self.directories)
            self.database_url = database_url(home)
            specs.append(postgres_spec(self.directories, home, self._durability))
        else:
            self.database_url = self._external_database_url
        await self.supervisor.start(*specs)


def remove_data(data: Path) -> None:
    """Delete the data directory ``data`` with all that belongs to it elsewhere. There is no undo.

    Raises DataDirectoryInUse if a process runs on it; does nothing if it does not exist.
    """
    resolved = data.expanduser().resolve()
    if not resolved.is_dir():
        return
    with DataDirectoryLock(resolved):
        _remove_short_directories(resolved)
        if elsewhere := cluster_elsewhere(resolved):
            shutil.rmtree(elsewhere, ignore_errors=True)
        shutil.rmtree(resolved)


def _remove_short_directories(data: Path) -> None:
    for parent in (data, data / "postgres", cluster_elsewhere(data)):
        if parent is not None:
            remove_short_directory(parent / "run")
