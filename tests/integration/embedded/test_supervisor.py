"""Starting, restarting and stopping children, with children that are quick to start."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import uvloop

from fairdrop.embedded import ChildNotReady, ChildSpec, RestartPolicy, Supervisor
from fairdrop.embedded import supervisor as supervisor_module
from fairdrop.embedded.leftovers import Traces, find_leftovers
from tests.integration.embedded.waiting import runs

SLEEP = "import signal; print('up', flush=True); signal.pause()"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEP
FAMILY = (
    "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import signal\\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\\n"
    'print("up", flush=True); signal.pause()\'], start_new_session=True)'
)


async def eventually(condition: Callable[[], object], what: str) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)
    assert condition(), what


def says(path: Path, text: str) -> Callable[[], Awaitable[bool]]:
    async def check() -> bool:
        return text in await asyncio.to_thread(path.read_text)

    return check


@pytest.fixture
def child(tmp_path: Path) -> Callable[..., ChildSpec]:
    """Makes the specification of a child that runs some Python, ready when it says "up"."""

    def make(
        name: str,
        code: str = SLEEP,
        **options: Any,
    ) -> ChildSpec:
        log_path = tmp_path / f"{name}.log"
        argv = (sys.executable, "-c", code)
        spec = ChildSpec(name=name, argv=argv, log_path=log_path, ready=says(log_path, "up"))
        return dataclasses.replace(spec, **options)

    return make


@pytest.fixture
def identity(tmp_path: Path) -> str:
    return f"test:{tmp_path}"


Make = Callable[..., ChildSpec]


async def test_children_start_after_those_they_need_and_stop_before_them(
    child: Make, identity: str
) -> None:
    events: list[str] = []

    def noting(name: str, after: tuple[str, ...] = ()) -> ChildSpec:
        async def before_start() -> None:
            needed = [each for each in supervisor.names if supervisor.is_ready(each)]
            events.append(f"{name} after {sorted(needed)}")

        return child(name, before_start=before_start, after=after)

    async with Supervisor(identity) as supervisor:
        await supervisor.start(
            noting("web", after=("database", "store")), noting("database"), noting("store")
        )
        await supervisor.start(noting("late", after=("store",)))
        processes = {name: psutil.Process(supervisor.pid_of(name)) for name in supervisor.names}
        stopped: list[str] = []

        async def watch() -> None:
            while len(stopped) < len(processes):
                stopped.extend(
                    name
                    for name, each in processes.items()
                    if name not in stopped and not runs(each)
                )
                await asyncio.sleep(0)

        watcher = asyncio.create_task(watch())
    await watcher
    assert events[:2] == ["database after []", "store after []"]
    assert events[2:] == [
        "web after ['database', 'store']",
        "late after ['database', 'store', 'web']",
    ]
    assert stopped[:2] == ["late", "web"]
    assert set(stopped[2:]) == {"database", "store"}


async def test_a_child_that_dies_is_started_again_every_time(child: Make, identity: str) -> None:
    async with Supervisor(identity) as supervisor:
        await supervisor.start(child("phoenix"))
        seen = set()
        for times in (1, 2, 3):
            pid = supervisor.pid_of("phoenix")
            assert pid is not None
            seen.add(pid)
            os.kill(pid, signal.SIGKILL)
            await eventually(lambda times=times: supervisor.restarts("phoenix") == times, "restart")  # type: ignore[misc]
            await supervisor.wait_ready("phoenix")
        assert len(seen | {supervisor.pid_of("phoenix")}) == 4


async def test_the_pause_before_a_restart_doubles_up_to_its_limit(
    child: Make, identity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def note(delay_s: float) -> None:
        pauses.append(delay_s)
        await sleep(0.001)

    class Noting:
        sleep = staticmethod(note)

        def __getattr__(self, name: str) -> object:
            return getattr(asyncio, name)

    monkeypatch.setattr(supervisor_module, "asyncio", Noting())
    async with Supervisor(identity) as supervisor:
        await supervisor.start(child("brief", "print('up', flush=True); input()", ready=at_once))
        async with asyncio.timeout(30):
            while supervisor.restarts("brief") < 8:
                await sleep(0.01)
    between = [pause_s for pause_s in pauses if pause_s >= supervisor_module.BACKOFF_FIRST_S]
    assert between[:8] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


async def at_once() -> bool:
    return True


async def test_a_child_that_should_not_be_restarted_is_not(child: Make, identity: str) -> None:
    async with Supervisor(identity) as supervisor:
        await supervisor.start(child("once", restart=RestartPolicy.NEVER), child("other"))
        once, other = supervisor.pid_of("once"), supervisor.pid_of("other")
        assert once
        assert other
        os.kill(once, signal.SIGKILL)
        await eventually(lambda: supervisor.pid_of("once") is None, "once is gone")
        os.kill(other, signal.SIGKILL)
        await eventually(lambda: supervisor.restarts("other") == 1, "the other is restarted")
        assert supervisor.restarts("once") == 0
        assert supervisor.pid_of("once") is None


async def test_what_a_dead_child_left_behind_is_gone_before_it_starts_again(
    child: Make, identity: str
) -> None:
    async with Supervisor(identity) as supervisor:
        await supervisor.start(child("father", FAMILY))
        pid = supervisor.pid_of("father")
        assert pid is not None
        (orphan,) = psutil.Process(pid).children()
        assert os.getsid(orphan.pid) != pid

        os.kill(pid, signal.SIGKILL)

        await eventually(lambda: supervisor.restarts("father") == 1, "restarted")
        assert not runs(orphan)


async def test_a_child_deaf_to_its_stop_signal_is_killed_with_all_its_own(
    child: Make, identity: str
) -> None:
    # Services of other tests may be children of this process too.
    others = set(psutil.Process().children(recursive=True))
    async with Supervisor(identity) as supervisor:
        await supervisor.start(
            child("deaf", DEAF, stop_timeout_s=0.1), child("father", FAMILY, stop_timeout_s=0.1)
        )
        everybody = [one for one in psutil.Process().children(recursive=True) if one not in others]
        assert len(everybody) >= 3
    assert not any(map(runs, everybody))
    assert find_leftovers([Traces(identity)]) == []


async def test_a_stop_that_is_cancelled_is_finished_first(child: Make, identity: str) -> None:
    supervisor = Supervisor(identity)
    await supervisor.start(child("deaf", DEAF, stop_timeout_s=0.5))
    process = psutil.Process(supervisor.pid_of("deaf"))

    stop = asyncio.create_task(supervisor.stop())
    await asyncio.sleep(0)
    for _ in range(3):
        stop.cancel()
        await asyncio.sleep(0)

    with pytest.raises(asyncio.CancelledError):
        await stop
    assert not runs(process)


async def test_a_stop_ends_although_a_check_swallows_its_cancellation(
    child: Make, identity: str
) -> None:
    asked = asyncio.Event()
    first = True

    async def ready() -> bool:
        nonlocal first
        if first:
            first = False
            return True
        asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return True  # as asyncio.wait_for does when it is cancelled as its wait is just over
        return False

    async with asyncio.timeout(30):
        async with Supervisor(identity) as supervisor:
            await supervisor.start(child("stubborn", ready=ready))
            os.kill(supervisor.pid_of("stubborn") or 0, signal.SIGKILL)
            await asked.wait()
        assert supervisor.pid_of("stubborn") is None


async def test_a_child_that_ends_during_its_first_start_is_reported_with_its_last_words(
    child: Make, identity: str
) -> None:
    with pytest.raises(ChildNotReady, match=r"(?s)broken: ended with status 7.*no such table"):
        async with Supervisor(identity) as supervisor:
            await supervisor.start(
                child("broken", "print('no such table'); raise SystemExit(7)"), child("fine")
            )
    assert find_leftovers([Traces(identity)]) == []


async def test_a_child_that_is_not_ready_in_time_is_reported_with_what_the_check_said(
    child: Make, identity: str
) -> None:
    async def refused() -> bool:
        raise ConnectionRefusedError("nobody listens")

    with pytest.raises(ChildNotReady, match=r"not ready after 0.2 s \(.*nobody listens"):
        async with Supervisor(identity) as supervisor:
            await supervisor.start(child("slow", ready=refused, ready_timeout_s=0.2))


async def test_a_program_that_does_not_exist_is_reported(
    child: Make, identity: str, tmp_path: Path
) -> None:
    missing = dataclasses.replace(child("missing"), argv=("/nonexistent/program",))
    with pytest.raises(ChildNotReady, match="cannot run /nonexistent/program"):
        async with Supervisor(identity) as supervisor:
            await supervisor.start(missing)


async def test_names_that_cannot_be_are_refused(child: Make, identity: str) -> None:
    async with Supervisor(identity) as supervisor:
        with pytest.raises(ValueError, match="unknown"):
            await supervisor.start(child("a", after=("nobody",)))
        with pytest.raises(ValueError, match="cycle"):
            await supervisor.start(child("a", after=("b",)), child("b", after=("a",)))
        await supervisor.start(child("a"))
        with pytest.raises(ValueError, match="taken"):
            await supervisor.start(child("a"))
        with pytest.raises(KeyError):
            supervisor.pid_of("b")


async def test_a_child_gets_the_environment_it_should(
    child: Make, identity: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OURS", "1")
    tell = "import os, json; print(json.dumps(dict(os.environ)), flush=True); " + SLEEP
    async with Supervisor(identity) as supervisor:
        await supervisor.start(
            child("kin", tell, env={"EXTRA": "2"}),
            child("stranger", tell, env={"EXTRA": "2"}, inherit_env=False),
        )
    kin = json.loads((tmp_path / "kin.log").read_text().splitlines()[0])
    stranger = json.loads((tmp_path / "stranger.log").read_text().splitlines()[0])
    assert (kin["OURS"], kin["EXTRA"]) == ("1", "2")
    assert stranger["EXTRA"] == "2"
    assert set(stranger) <= {"EXTRA", "FAIRDROP_SUPERVISED", "LC_CTYPE"}


async def test_logs_of_earlier_runs_are_kept_and_those_of_restarts_stay_together(
    child: Make, identity: str, tmp_path: Path
) -> None:
    talker = tmp_path / "talker.log"
    for run in ("first", "second"):
        async with Supervisor(identity) as supervisor:
            await supervisor.start(child("talker", f"print({run!r}); " + SLEEP))
            if run == "second":
                os.kill(supervisor.pid_of("talker") or 0, signal.SIGKILL)
                await eventually(lambda: talker.read_text().count("up") == 2, "it talks again")
    assert (tmp_path / "talker.log.1").read_text().split() == ["first", "up"]
    assert talker.read_text().split() == ["second", "up"] * 2


async def test_an_earlier_supervisor_of_the_same_identity_leaves_nothing_to_the_next(
    child: Make, identity: str
) -> None:
    forgotten = Supervisor(identity)
    await forgotten.start(child("once", restart=RestartPolicy.NEVER))
    process = psutil.Process(forgotten.pid_of("once"))
    async with Supervisor(f"{identity}/other") as other:
        await other.start(child("another"))
        assert runs(process)
    async with Supervisor(identity) as supervisor:
        await supervisor.start(child("different"))
        assert not runs(process)
    await forgotten.stop()


def test_it_works_on_uvloop(child: Make, identity: str) -> None:
    async def main() -> None:
        async with Supervisor(identity) as supervisor:
            await supervisor.start(child("one"), child("two", after=("one",)))
            os.kill(supervisor.pid_of("one") or 0, signal.SIGKILL)
            await eventually(lambda: supervisor.restarts("one") == 1, "restarted")
            await supervisor.wait_ready("one")

    uvloop.run(main())
    assert find_leftovers([Traces(identity)]) == []


async def test_it_works_without_process_file_descriptors(
    child: Make, identity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(_: int) -> int:
        raise OSError("not in this sandbox")

    monkeypatch.setattr(os, "pidfd_open", unsupported)
    async with Supervisor(identity) as supervisor:
        await supervisor.start(child("one"))
        os.kill(supervisor.pid_of("one") or 0, signal.SIGKILL)
        await eventually(lambda: supervisor.restarts("one") == 1, "restarted")
        await supervisor.wait_ready("one")
    assert find_leftovers([Traces(identity)]) == []
