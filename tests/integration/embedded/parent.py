"""Run as a program: a parent that starts the services, and ends in the way it is told.

``parent.py DATA ENDING``: prints one line of JSON when the services are ready, then ends:
``signal`` waits for one, ``wait`` waits without handling any, ``raise`` raises, ``exit`` calls
``sys.exit``, ``abrupt`` calls ``os._exit``. ``starting`` prints before it starts them, then waits.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import structlog

from fairdrop.embedded import ChildSpec, EmbeddedServices, StopSignals
from fairdrop.embedded.child import Check

# A child that is deaf to SIGTERM and has a child of its own.
STUBBORN = """
import signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.run([sys.executable, "-c", "import signal; print('on', flush=True); signal.pause()"])
"""


def report(services: EmbeddedServices) -> None:
    """Tell the test what runs."""
    pids = {name: services.supervisor.pid_of(name) for name in services.supervisor.names}
    urls = {"store_url": services.store_url, "database_url": services.database_url}
    tell({"pids": pids, **urls})


async def end(how: str, signals: StopSignals) -> None:
    """End in the way called ``how``."""
    match how:
        case "signal":
            await signals.wait()
        case "wait":
            await asyncio.get_running_loop().create_future()
        case "raise":
            raise RuntimeError("as told")
        case "exit":
            sys.exit(3)
        case "abrupt":
            os._exit(4)


async def main(data: Path, how: str) -> None:
    """Start, report, end."""
    if how == "starting":
        tell({})
        how = "signal"
    async with StopSignals() as signals:
        if how == "wait":
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                asyncio.get_running_loop().remove_signal_handler(number)
                signal.signal(number, signal.SIG_DFL)
        async with EmbeddedServices(data) as services:
            stubborn = ChildSpec(
                name="stubborn",
                argv=(sys.executable, "-c", STUBBORN),
                log_path=services.directories.log / "stubborn.log",
                ready=said(services.directories.log / "stubborn.log"),
                stop_timeout_s=0.2,
                death_signal=signal.SIGKILL,
            )
            await services.supervisor.start(stubborn)
            report(services)
            await end(how, signals)
    tell({"stopped_by": signals.received and signals.received.name})


def tell(what: dict[str, object]) -> None:
    """One line for the test."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def said(log: Path) -> Check:
    """The check that the grandchild runs."""

    async def check() -> bool:
        return await asyncio.to_thread(log.read_text) != ""

    return check


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
