"""Named fault points: the dangerous moments of a purchase, where a test can have a process die.

Each point stands between two steps of which the first is done and the second is not: after a
commit and before anybody is told of it, say. A process that passes an armed point kills itself with
SIGKILL, as a machine that loses its power would: no handler runs, nothing is flushed.

Off, which is how every process starts, a point costs the look at one module global. On, by the
variable ``FAIRDROP_FAULTS`` that names a directory, each passing costs one system call. Points are
armed by files in it, from outside and at any time (:func:`arm`). A file is a claim: of any number of
processes, one takes it, and one death follows from one arming, however often the process comes back.
"""

from __future__ import annotations

import os
import signal
from enum import StrEnum
from pathlib import Path

from fairdrop.errors import ConfigurationError

DIRECTORY = "FAIRDROP_FAULTS"
ANYWAY = "FAIRDROP_FAULTS_IN_PRODUCTION"
_DIED = ".died"
_CLAIMED = ".claimed"

_directory: Path | None = None


class Point(StrEnum):
    """Where a process can be made to die; the process is the one that usually passes there."""

    HELD = "held"
    """web: the store has taken units, the buyer has no answer."""
    ORDER_WRITTEN = "order_written"
    """web: the order's row is committed, the buyer has no answer."""
    INTENT_MADE = "intent_made"
    """web: the gateway has made the payment, we have not written down which."""
    WEBHOOK_STORED = "webhook_stored"
    """web: what the gateway told is committed, the gateway has no answer."""
    SETTLING = "settling"
    """worker: all of a settlement is written, and not committed."""
    SETTLED = "settled"
    """worker: the settlement is committed, the store has not heard."""
    STORE_TOLD = "store_told"
    """worker: the store has heard, nobody has noted that it has."""
    LATE_UNITS_TAKEN = "late_units_taken"
    """worker: the store has set units aside for money that came late, no row says so."""
    EXPIRED = "expired"
    """worker: orders are over and committed, the store still has their holds."""
    CAPTURED = "captured"
    """worker: the gateway has taken money that was set aside, we have not heard that it has."""
    REFUND_MADE = "refund_made"
    """worker: the gateway has the refund, we have not written down that it does."""
    PUBLISHED = "published"
    """worker: the bus has events, which are in the outbox still."""
    MAIL_SENT = "mail_sent"
    """worker: a mail server has taken a mail, no row says so."""


def enable(*, production: bool) -> None:
    """Switch the points of this process on if the environment asks for it, else off.

    Raises ConfigurationError where real money is taken (``production``), unless
    ``FAIRDROP_FAULTS_IN_PRODUCTION=yes`` says that this is meant.
    """
    global _directory  # noqa: PLW0603 - one switch a process, looked at on hot paths
    named = os.environ.get(DIRECTORY)
    if named and production and os.environ.get(ANYWAY) != "yes":
        raise ConfigurationError(
            f"{DIRECTORY} would let this process die on purpose, and it takes real money."
            f" Unset it; or set {ANYWAY}=yes if you mean to rehearse here."
        )
    _directory = Path(named) if named else None


def passing(point: Point) -> None:
    """Die here if the point is armed and this is the passing that it is armed for."""
    if _directory is not None:
        _pass(_directory, point)


def arm(directory: Path, point: Point, *, passing: int = 1) -> None:
    """Have whoever passes the point for the ``passing``-th time from now on die there, once."""
    died(directory, point, forget=True)
    _write(directory / point, str(passing))


def disarm(directory: Path) -> list[Point]:
    """Take back what is armed; returns what nobody had passed (often enough)."""
    left = []
    for point in Point:
        armed, claimed = directory / point, directory / (point + _CLAIMED)
        for path in (armed, claimed):
            if path.exists():
                path.unlink(missing_ok=True)
                left.append(point)
    return left


def died(directory: Path, point: Point, *, forget: bool = False) -> int | None:
    """The pid of the process that died at the point since it was armed; None when none did."""
    path = directory / (point + _DIED)
    try:
        pid = int(path.read_text("ascii"))
    except FileNotFoundError:
        return None
    if forget:
        path.unlink(missing_ok=True)
    return pid


def _pass(directory: Path, point: Point) -> None:
    claimed = directory / (point + _CLAIMED)
    try:
        (directory / point).rename(claimed)
    except FileNotFoundError:
        return  # not armed, or another process has it in hand
    passing = int(claimed.read_text("ascii"))
    if passing > 1:
        claimed.unlink()
        _write(directory / point, str(passing - 1))
        return
    _write(directory / (point + _DIED), str(os.getpid()))
    claimed.unlink()
    os.kill(os.getpid(), signal.SIGKILL)


def _write(path: Path, text: str) -> None:
    """Whole or not at all: others rename and read it at any time."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    partial.write_text(text, "ascii")
    partial.replace(path)
