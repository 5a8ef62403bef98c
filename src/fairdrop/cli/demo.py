"""``fairdrop demo``: a whole sale on this machine, with a simulated crowd and a verdict."""

from __future__ import annotations

import json
import os
import secrets
import stat
import tempfile
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from fairdrop.app import open_parts
from fairdrop.audit import audit, figures
from fairdrop.embedded import DataDirectoryInUse, StopSignals, remove_data
from fairdrop.rehearsal.control import Control
from fairdrop.rehearsal.drop import Drop, default_rate_per_s
from fairdrop.rehearsal.rehearse import Wanted, rehearse
from fairdrop.rehearsal.report import Report, make_report, print_report
from fairdrop.rehearsal.watching import watcher
from fairdrop.settings import Settings
from fairdrop.site import SECRETS_FILE, Site

SLUG = "demo"
TRY_IT_SLUG = "try-it"
TRY_IT_UNITS = 20
LOBBY_MS = 60_000
"""The lobby opens with the sale's creation: the early ones of the crowd are in it."""
PREFIX = "fairdrop-demo-"
ABANDONED_AFTER_S = 60.0
"""A demo's directory that is older and in nobody's use was left by one that was killed."""
PAYMENT_CHECK_AFTER_MS = 1_000


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for on the command line; None: as the command sees fit."""

    buyers: int
    units: int
    rate_per_s: float | None
    seed: int
    exits: bool
    report: Path | None
    data_dir: Path | None
    keep: bool
    workers: int


def draw_seed() -> int:
    """A seed nobody has chosen: short enough to be typed again."""
    return secrets.randbelow(1_000_000)


async def run_demo(options: Options) -> int:
    """Run the demo; returns the exit status.

    0 when every invariant holds, 1 when one is broken, 128 and the signal's number when a signal
    came before the verdict. Raises FairdropError when something cannot be started.
    """
    console = Console(highlight=False)
    async with StopSignals() as signals:
        demo = _Demo(options, console, signals)
        await demo.run()
    if signals.received is not None:
        console.print()  # the terminal has shown ^C
        console.print("Stopped." if demo.status is not None else "Stopped before the verdict.")
    if demo.status is None:
        assert signals.received is not None, "only a signal ends a demo before its verdict"
        return 128 + signals.received
    return demo.status


class _Demo:
    """One run of the command; ``status`` is its verdict once there is one."""

    def __init__(self, options: Options, console: Console, signals: StopSignals) -> None:
        self._options = options
        self._console = console
        self._signals = signals
        self._began = time.monotonic()
        self.status: int | None = None

    async def run(self) -> None:
        options = self._options
        if options.data_dir is not None:
            await self._run_in(options.data_dir)
            return
        _remove_abandoned()
        directory = Path(tempfile.mkdtemp(prefix=PREFIX))
        try:
            await self._run_in(directory)
        finally:
            if options.keep:
                self._console.print(f"The data stays in {directory}", soft_wrap=True)
            else:
                remove_data(directory)

    async def _run_in(self, directory: Path) -> None:
        options, console = self._options, self._console
        console.print(
            f"Fairdrop demo: {options.buyers:,} buyers for {options.units:,} units, "
            f"seed {options.seed}"
        )
        settings = Settings(
            data_dir=directory,
            # A demo never touches services that a shop uses.
            store_url=None,
            database_url=None,
            public_url=None,
            port=0,
            web_workers=options.workers,
            payment_check_after_ms=PAYMENT_CHECK_AFTER_MS,
        )
        async with AsyncExitStack() as stack:
            with console.status("Starting Valkey, PostgreSQL, the gateway and the web workers"):
                site = await stack.enter_async_context(Site(settings))
            self._say_where(site)
            report = await self._hold_sale(site)
            print_report(report, console)
            if options.report is not None:
                write_report(options.report, report.document())
                console.print(f"Report: {options.report}", soft_wrap=True)
            self.status = 0 if report.holds else 1
            if console.is_terminal and not options.exits:
                await self._invite(site)
                await self._signals.wait()

    def _say_where(self, site: Site) -> None:
        console = self._console
        console.print(f"Everything runs after {time.monotonic() - self._began:.1f} s.")
        console.print(f"  Shop      {site.url}/s/{SLUG}", soft_wrap=True)
        console.print(f"  Console   {site.url}/console", soft_wrap=True)
        console.print(f"  Mails     {site.mail_url}", soft_wrap=True)
        if console.is_terminal:
            console.print(f"  API key   {site.admin_key}", soft_wrap=True)
        else:
            # What is no terminal may be a log.
            console.print(
                f"  API key   admin_key in {site.data_dir / SECRETS_FILE}", soft_wrap=True
            )
        console.print()

    async def _hold_sale(self, site: Site) -> Report:
        options = self._options
        wanted = Wanted(
            drop=Drop(
                slug=SLUG,
                name="Rooftop concert",
                description="A rehearsal: the buyers are simulated, and so is the money.",
                units=options.units,
                rate_per_s=options.rate_per_s or default_rate_per_s(options.buyers),
                # Whoever is there before the opening is drawn.
                lobby_ms=LOBBY_MS,
            ),
            buyers=options.buyers,
            seed=options.seed,
        )
        async with open_parts(site.settings) as parts:
            with watcher(self._console) as watch:
                rehearsed = await rehearse(
                    wanted, parts, url=site.url, admin_key=site.admin_key, watch=watch
                )
            differences = await audit(parts, rehearsed.sale_id)
            found = await figures(parts, rehearsed.sale_id)
        return make_report(
            wanted,
            rehearsed,
            found,
            differences,
            workers=options.workers,
            command_s=time.monotonic() - self._began,
        )

    async def _invite(self, site: Site) -> None:
        console = self._console
        drop = Drop(
            slug=TRY_IT_SLUG,
            name="Rooftop concert, second night",
            description="Yours to try: join, reserve, pay with a test card.",
            units=TRY_IT_UNITS,
            rate_per_s=10.0,
            deadlines=None,
        )
        async with Control(site.url, site.admin_key) as control:
            await control.create(drop.body(time.time()))
        console.print()
        console.print("Now you: another sale is open.")
        console.print(f"  Shop      {site.url}/s/{TRY_IT_SLUG}", soft_wrap=True)
        console.print(f"  Console   {site.url}/console", soft_wrap=True)
        console.print(f"  API key   {site.admin_key}", soft_wrap=True)
        console.print("  Cards     4242 4242 4242 4242 pays, 4000 0000 0000 0002 is declined")
        console.print("Stop with Ctrl-C.")


def write_report(path: Path, document: dict[str, Any]) -> None:
    """Write the document, whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    partial.replace(path)


def _remove_abandoned() -> None:
    """Remove the directories of demos that were killed; only real ones, and only our own."""
    for directory in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError, DataDirectoryInUse):
            found = directory.lstat()
            ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
            if ours and time.time() - found.st_mtime > ABANDONED_AFTER_S:
                remove_data(directory)
