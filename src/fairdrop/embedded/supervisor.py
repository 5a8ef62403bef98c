"""Keeps child processes running, and leaves none behind.

The life of a child, as a task of the supervisor's::

    before_start → spawned → ready ──────→ exits by itself → leftovers killed → pause ─┐
        ↑           └ not ready in time, or exits: killed ──────────────────────┘      │
        └──────────────────────────────────────────────────────────────────────────────┘

A child that does not become ready the *first* time is a mistake in the set-up: it raises
ChildNotReady with the end of its log. One that was ready before is restarted for ever, after
0.1 s, then twice as long each time up to 5 s; a run of 10 s clears the count.

What ends the children, by the way in which the supervisor ends:

- leaving the ``async with`` block, an exception, cancellation: they are stopped in reverse order,
  each with its own signal and time, then killed; then what they left behind is killed. The stop
  is finished even when it is cancelled on its way.
- SIGINT, SIGTERM, SIGHUP: see :mod:`fairdrop.embedded.stop_signals`, which turns them into the above.
- kill -9, a crash, ``os._exit``: the kernel signals each child
  (:mod:`fairdrop.embedded.parent_death`), and the next run of the same data directory kills what
  was deaf to that.
"""

from __future__ import annotations

import asyncio
import dataclasses
import graphlib
import os
from collections.abc import Coroutine, Sequence
from typing import Any, Self

import structlog

from fairdrop.embedded.child import ChildSpec, RestartPolicy
from fairdrop.embedded.leftovers import MARK, Traces, kill_leftovers
from fairdrop.embedded.process import Process, log_tail, rotate_log
from fairdrop.errors import FairdropError

BACKOFF_FIRST_S = 0.1
BACKOFF_LAST_S = 5.0
STABLE_AFTER_S = 10.0
"""A child that has been ready for so long is restarted after BACKOFF_FIRST_S again."""

_READY_POLL_FIRST_S = 0.01
_READY_POLL_LAST_S = 0.25
_READY_POLL_GROWTH = 1.1
"""Most children serve at once; for one that has a lot to recover, checks become rarer."""
_READY_CHECK_TIMEOUT_S = 2.0
_TELL_AFTER_S = 10.0
"""A start that takes this long is worth a line in the log, and again after as long."""

_CANCEL_AGAIN_S = 0.2

_log = structlog.get_logger(__name__)


class ChildNotReady(FairdropError):
    """A child ended, or did not serve in time, while it was being started."""


class Supervisor:
    """Starts children, restarts those that die, stops all of them.

    Use it as an asynchronous context manager, on a thread that lives as long as the children (the
    main thread of ``asyncio.run``, usually). ``identity`` stands for the data directory: it marks
    the children, so that a later supervisor of the same identity finds what this one left. Two
    supervisors of one identity at a time would kill each other's children: hold a lock.
    """

    def __init__(self, identity: str) -> None:
        self._identity = identity
        self._children: dict[str, _Child] = {}
        self._levels: list[list[_Child]] = []
        self._stopping = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop all children, whatever happens meanwhile."""
        await self.stop()

    async def start(self, *specs: ChildSpec) -> None:
        """Start the children, those without ``after`` at once, and return when all are ready.

        May be called again for more; a later call's children are stopped first. Raises
        ChildNotReady if one of them fails (the others are stopped when the context is left), and
        ValueError for a name that is taken, missing or waits for itself.
        """
        names = [spec.name for spec in specs]
        if self._stopping or len(set(names)) < len(names) or set(names) & set(self._children):
            raise ValueError(f"cannot start {names}: stopping, or a name is taken")
        for level in _levels(specs, known=set(self._children)):
            await self._clear_earlier_runs(level)
            children = [_Child(spec, _traces(self._identity, spec)) for spec in level]
            self._levels.append(children)
            self._children |= {child.spec.name: child for child in children}
            for child in children:
                child.keep()
            await asyncio.gather(*(child.first_ready for child in children))

    async def stop(self) -> None:
        """Stop all children in reverse order; kill what does not follow; return when all are gone.

        Cancelling it does not cut it short: the cancellation is passed on at the end. Takes as long
        as the slowest child of each level, at most its ``stop_timeout_s``.
        """
        self._stopping = True
        await _finish(self._stop_all())

    def pid_of(self, name: str) -> int | None:
        """The pid of the child, or None while it does not run. KeyError for an unknown name."""
        process = self._children[name].process
        return None if process is None or process.exit_status is not None else process.pid

    def restarts(self, name: str) -> int:
        """How many times the child was started again. KeyError for an unknown name."""
        return self._children[name].restarts

    def is_ready(self, name: str) -> bool:
        """Whether the child was found ready since its last start. KeyError for an unknown name."""
        return self._children[name].ready.is_set()

    async def wait_ready(self, name: str) -> None:
        """Wait until the child is ready; at once if it is. KeyError for an unknown name."""
        await self._children[name].ready.wait()

    @property
    def names(self) -> tuple[str, ...]:
        """The children's names, in the order of their start."""
        return tuple(self._children)

    async def _clear_earlier_runs(self, specs: Sequence[ChildSpec]) -> None:
        """Kill what an earlier run left: of any name at the very first, of these names later."""
        earlier = [_traces(self._identity, spec) for spec in specs]
        if not self._children:
            earlier.append(Traces(self._identity))
        if count := await kill_leftovers(earlier):
            _log.warning("leftovers_killed", count=count)
        for spec in specs:
            rotate_log(spec.log_path)

    async def _stop_all(self) -> None:
        results: list[BaseException | None] = []
        for level in reversed(self._levels):
            results += await asyncio.gather(
                *(child.stop() for child in level), return_exceptions=True
            )
        everything = [child.traces for child in self._children.values()]
        if everything and (count := await kill_leftovers(everything)):
            _log.warning("leftovers_killed", count=count)
        for error in filter(None, results):
            raise error


class _Child:
    """One supervised child over all its runs."""

    def __init__(self, spec: ChildSpec, traces: Traces) -> None:
        self.spec = spec
        self.traces = traces
        self.process: Process | None = None
        self.restarts = 0
        self.ready = asyncio.Event()
        self.first_ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None

    def keep(self) -> None:
        """Begin its life."""
        self._task = asyncio.create_task(self._keep(), name=f"supervise {self.spec.name}")

    async def stop(self) -> None:
        """End its life: first the task, so that nothing restarts it, then the process."""
        if self._task is not None:
            await _end(self._task)
        self.ready.clear()
        if self.process is not None:
            await self.process.stop(self.spec.stop_signal, self.spec.stop_timeout_s)
        if not self.first_ready.done():
            self.first_ready.cancel()

    async def _keep(self) -> None:
        clock = asyncio.get_running_loop().time
        pause_s = BACKOFF_FIRST_S
        while True:
            try:
                await self._run_until_ready()
            except Exception as error:  # noqa: BLE001 - whatever it is, the child does not run
                if not self.first_ready.done():
                    self.first_ready.set_exception(error)
                    return
                _log.warning("child_not_ready", child=self.spec.name, error=str(error))
            else:
                ready_at = clock()
                await self._run_until_exit()
                if clock() - ready_at > STABLE_AFTER_S:
                    pause_s = BACKOFF_FIRST_S
            await self._kill_descendants()
            if self.spec.restart is RestartPolicy.NEVER:
                return
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, BACKOFF_LAST_S)
            self.restarts += 1

    async def _run_until_ready(self) -> None:
        spec = self.spec
        await spec.before_start()
        inherited = dict(os.environ) if spec.inherit_env else {}
        self.process = Process.start(
            spec.argv,
            log_path=spec.log_path,
            env=inherited | dict(spec.env) | {MARK: str(self.traces)},
            cwd=spec.cwd,
            death_signal=spec.death_signal,
            user=spec.user,
        )
        try:
            await self._wait_ready(self.process)
        except ChildNotReady:
            await self.process.kill()
            raise
        self.ready.set()
        if not self.first_ready.done():
            self.first_ready.set_result(None)

    async def _wait_ready(self, process: Process) -> None:
        spec = self.spec
        clock = asyncio.get_running_loop().time
        started = told = clock()
        pause_s = _READY_POLL_FIRST_S
        reason = "it did not become ready"
        while process.exit_status is None:
            try:
                async with asyncio.timeout(_READY_CHECK_TIMEOUT_S):
                    if await spec.ready() and process.exit_status is None:
                        return
            except Exception as error:  # noqa: BLE001 - a check that fails means "not yet"
                reason = f"{type(error).__name__}: {error}"
            if clock() - told > _TELL_AFTER_S:
                told = clock()
                _log.warning("child_not_ready_yet", child=spec.name, reason=reason)
            if clock() - started > spec.ready_timeout_s:
                raise self._not_ready(f"not ready after {spec.ready_timeout_s:g} s ({reason})")
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * _READY_POLL_GROWTH, _READY_POLL_LAST_S)
        raise self._not_ready(f"ended with status {process.exit_status}")

    def _not_ready(self, what: str) -> ChildNotReady:
        tail = log_tail(self.spec.log_path)
        return ChildNotReady(f"{self.spec.name}: {what}; end of {self.spec.log_path}:\n{tail}")

    async def _run_until_exit(self) -> None:
        process = self.process
        assert process is not None
        status = await process.wait()
        self.ready.clear()
        _log.warning("child_died", child=self.spec.name, pid=process.pid, status=status)

    async def _kill_descendants(self) -> None:
        """They would hold a port, a socket or files against the next run of this child."""
        session_id = None if self.process is None else self.process.pid
        try:
            await kill_leftovers([dataclasses.replace(self.traces, session_id=session_id)])
        except TimeoutError:
            _log.warning("leftovers_remain", child=self.spec.name)


def _traces(identity: str, spec: ChildSpec) -> Traces:
    program = os.path.basename(spec.argv[0])  # noqa: PTH119 - a word, maybe no path
    return Traces(identity, spec.name, program, spec.home)


def _levels(specs: Sequence[ChildSpec], known: set[str]) -> list[list[ChildSpec]]:
    """Group ``specs`` so that each comes in a later group than all those in its ``after``."""
    by_name = {spec.name: spec for spec in specs}
    unknown = {name for spec in specs for name in spec.after} - set(by_name) - known
    if unknown:
        raise ValueError(f"unknown children in after: {sorted(unknown)}")
    sorter = graphlib.TopologicalSorter(
        {spec.name: [name for name in spec.after if name in by_name] for spec in specs}
    )
    sorter.prepare()  # CycleError is a ValueError
    levels = []
    while sorter.is_active():
        ready = sorter.get_ready()
        levels.append([by_name[name] for name in by_name if name in ready])
        sorter.done(*ready)
    return levels


async def _end(task: asyncio.Task[None]) -> None:
    """Cancel the task until it has ended.

    Once is not always enough: a cancellation that comes as a wait is just over may get lost on its way
    (``asyncio.wait_for`` of Python 3.11, in a check whether a child serves). Then the task would wait
    for the exit of a child that nobody stops.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=_CANCEL_AGAIN_S)


async def _finish(work: Coroutine[Any, Any, None]) -> None:
    """Await ``work`` to its end, also while this task is being cancelled; then pass that on."""
    task = asyncio.create_task(work)
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    task.result()
    if cancelled:
        raise asyncio.CancelledError
