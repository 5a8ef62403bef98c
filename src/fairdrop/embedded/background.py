"""The embedded services for code without an event loop: tests, scripts, notebooks."""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import contextlib
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Self

from fairdrop.embedded.directories import DataDirectoryInUse
from fairdrop.embedded.durability import Durability
from fairdrop.embedded.services import EmbeddedServices, remove_data

_TEMPORARY_PREFIX = "fairdrop-tmp-"
_ABANDONED_AFTER_S = 3_600.0


class BackgroundServices:
    """Services that run while this object is not stopped, supervised by a thread of their own.

    Made by :func:`start_services`. A context manager that stops them when it is left; the end of
    the interpreter stops them too, and the death of the process in any other way ends them.
    """

    def __init__(self, data: Path, durability: Durability, *, temporary: bool) -> None:
        self._services = EmbeddedServices(data, durability=durability)
        self._data = data
        self._temporary = temporary
        self._ready: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        # A daemon, or the interpreter would wait for it before it runs what is registered at exit.
        self._thread = threading.Thread(target=self._run, name="embedded services", daemon=True)
        self._thread.start()
        try:
            self._ready.result()
        except BaseException:
            self.stop()
            raise
        atexit.register(self.stop)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def store_url(self) -> str:
        """The store, for redis-py."""
        return self._services.store_url

    @property
    def database_url(self) -> str:
        """The database, for asyncpg."""
        return self._services.database_url

    @property
    def data(self) -> Path:
        """The data directory."""
        return self._services.directories.data

    def pid_of(self, name: str) -> int | None:
        """The pid of "valkey" or "postgres"; None while it does not run."""
        return self._services.supervisor.pid_of(name)

    def restarts(self, name: str) -> int:
        """How many times "valkey" or "postgres" was started again."""
        return self._services.supervisor.restarts(name)

    def is_ready(self, name: str) -> bool:
        """Whether "valkey" or "postgres" serves, as far as is known."""
        return self._services.supervisor.is_ready(name)

    def stop(self) -> None:
        """Stop both, and delete the data directory if it was a temporary one. Idempotent."""
        with contextlib.suppress(RuntimeError, AttributeError):  # already stopped, or never ran
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        atexit.unregister(self.stop)
        if self._temporary:
            remove_data(self._data)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # it belongs to the thread that waits
            if self._ready.done():
                raise
            self._ready.set_exception(error)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        async with self._services:
            self._ready.set_result(None)
            await self._stop.wait()


def start_services(
    data: Path | None = None, *, durability: Durability = Durability.PROCESS_DEATH
) -> BackgroundServices:
    """Start Valkey and PostgreSQL and return when both serve, in about a second.

    Without ``data`` they get a temporary directory, which :meth:`~BackgroundServices.stop` deletes;
    those that earlier processes could not delete go first. So each worker of a test run has
    services of its own::

        @pytest.fixture(scope="session")
        def services():
            with start_services() as services:
                yield services

    Raises what :class:`~fairdrop.embedded.services.EmbeddedServices` raises.
    """
    if data is not None:
        return BackgroundServices(data, durability, temporary=False)
    _remove_abandoned()
    made = Path(tempfile.mkdtemp(prefix=_TEMPORARY_PREFIX))
    return BackgroundServices(made, durability, temporary=True)


def _remove_abandoned() -> None:
    """Delete old temporary directories of ours that nobody holds: their process was killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{_TEMPORARY_PREFIX}*"):
        with contextlib.suppress(OSError, DataDirectoryInUse):
            status = path.lstat()
            old = time.time() - status.st_mtime > _ABANDONED_AFTER_S
            if old and status.st_uid == os.geteuid():
                remove_data(path)
