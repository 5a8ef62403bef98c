"""One gateway process: the record, the webhook sender, the bank's timers and the HTTP server.

One process and one event loop, so that killing it kills all of it; whatever it had answered is in
the record, and the next process goes on from there.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import uvicorn

from fairdrop.clock import now_ms
from fairdrop.errors import ConfigurationError

from . import operations
from .connection import HttpProtocol
from .gateway_state import GatewayState
from .mischief import Dice
from .record import Record
from .routes import make_application
from .webhook_sender import WebhookSender

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fairdrop.clock import Clock

    from .record import Transaction
    from .settings import SandboxSettings

RECORD_FILE = "gateway.sqlite3"
BACKLOG = 1_024
KEEP_ALIVE_S = 75
"""Longer than any client keeps a connection, so that the client is the one to close it."""
STOP_WITHIN_S = 2
SETTLE_RETRY_S = 1.0

_log = logging.getLogger(__name__)


class Bank:
    """Ends the attempts that are processing, each at its time, also those of an earlier process."""

    def __init__(self, clock: Clock) -> None:
        """Make an idle bank; :meth:`start` gives it the record."""
        self._clock = clock
        self._record: Record | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, record: Record) -> None:
        """Set a timer for each attempt that is processing."""
        self._record = record
        for intent_id, at_ms in await record.run(operations.processing):
            self._set_timer(intent_id, at_ms)

    def committed(self, transaction: Transaction) -> None:
        """Set timers for the attempts that a commit made."""
        for intent_id, at_ms in transaction.settlements:
            self._set_timer(intent_id, at_ms)

    def _set_timer(self, intent_id: str, at_ms: int) -> None:
        wait_s = max(0.0, (at_ms - self._clock()) / 1_000)
        asyncio.get_running_loop().call_later(wait_s, self._begin, intent_id)

    def _begin(self, intent_id: str) -> None:
        task = asyncio.get_running_loop().create_task(self._settle(intent_id))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _settle(self, intent_id: str) -> None:
        assert self._record is not None, "timers run after start"
        try:
            await self._record.run(partial(operations.settle, intent_id=intent_id))
        except Exception:  # noqa: BLE001 - the timer must outlive whatever it was
            _log.exception("settling %s failed; trying again", intent_id)
            asyncio.get_running_loop().call_later(SETTLE_RETRY_S, self._begin, intent_id)


class _Server(uvicorn.Server):
    """Uvicorn's server, with signals left to us: its own would end the process before we tidy up."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install none."""
        yield


async def serve(settings: SandboxSettings, on_ready: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; ``on_ready`` gets the address once requests are answered.

    Raises RecordUnusable when the data directory is in use, ConfigurationError when the port is.
    """
    listener = _listen(settings.host, settings.port)
    address = f"http://{_host_in_url(settings.host)}:{listener.getsockname()[1]}"
    settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)

    bank = Bank(now_ms)
    sender = WebhookSender(settings.webhook_url, settings.webhook_secret, now_ms)

    def on_commit(transaction: Transaction) -> None:
        bank.committed(transaction)
        sender.committed(transaction)

    record = Record(settings.data_dir / RECORD_FILE, now_ms, on_commit)
    if settings.mischief is not None:
        await record.run(partial(operations.write_mischief, defaults=settings.mischief))
    state = GatewayState(
        record=record,
        sender=sender,
        dice=Dice(await record.run(operations.read_mischief)),
        secret_key=settings.secret_key,
        public_url=settings.public_url or address,
    )
    server = _Server(
        uvicorn.Config(
            make_application(state),
            loop="none",
            http=HttpProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=STOP_WITHIN_S,
        )
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, setattr, server, "should_exit", True)  # noqa: FBT003 - setattr
    sender.start(record)
    await bank.start(record)
    announcement = asyncio.create_task(_announce(server, address, on_ready))
    try:
        await server.serve(sockets=[listener])
    finally:
        announcement.cancel()
        await sender.stop()
        await record.close()


async def _announce(server: uvicorn.Server, address: str, on_ready: Callable[[str], None]) -> None:
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.005)
    on_ready(address)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise ConfigurationError(f"cannot listen on {host} port {port}: {error}") from error
    return listener


def _host_in_url(host: str) -> str:
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        return "127.0.0.1" if host == "0.0.0.0" else "[::1]"  # noqa: S104 - the same
    return f"[{host}]" if ":" in host else host
