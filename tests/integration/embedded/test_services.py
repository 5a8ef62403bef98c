"""The embedded store and database: what they promise to the rest of Fairdrop."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
from pathlib import Path

import asyncpg
import psutil
import pytest
import redis
import redis.asyncio

from fairdrop.embedded import (
    ChildNotReady,
    DataDirectoryInUse,
    Durability,
    EmbeddedServices,
    remove_data,
    start_services,
)
from tests.integration.embedded.waiting import eventually, runs


async def remember(services: EmbeddedServices, text: str) -> None:
    async with redis.asyncio.from_url(services.store_url) as store:
        await store.set("kept", text)
    connection = await asyncpg.connect(services.database_url)
    try:
        await connection.execute("CREATE TABLE IF NOT EXISTS kept (text text)")
        await connection.execute("INSERT INTO kept VALUES ($1)", text)
    finally:
        await connection.close()


async def recall(services: EmbeddedServices) -> tuple[str, str]:
    async with redis.asyncio.from_url(services.store_url, decode_responses=True) as store:
        in_store = str(await store.get("kept"))
    connection = await asyncpg.connect(services.database_url)
    try:
        return in_store, await connection.fetchval("SELECT text FROM kept")
    finally:
        await connection.close()


def sockets_below(path: Path) -> list[Path]:
    return [entry for entry in path.rglob("*") if entry.is_socket()]


def pid_files_below(path: Path) -> list[Path]:
    return [*path.rglob("postmaster.pid"), *path.rglob(".s.PGSQL.5432.lock")]


def spoil_cluster(data: Path) -> None:
    for version in data.rglob("cluster/PG_VERSION"):
        version.write_text("3\n")


@pytest.mark.parametrize("durability", Durability)
async def test_a_second_start_finds_the_data_of_the_first(
    new_data: Path, durability: Durability
) -> None:
    async with EmbeddedServices(new_data, durability=durability) as services:
        await remember(services, "first")
    async with EmbeddedServices(new_data, durability=durability) as services:
        assert await recall(services) == ("first", "first")


@pytest.mark.parametrize("name", ["valkey", "postgres"])
@pytest.mark.parametrize("durability", Durability)
async def test_a_killed_service_comes_back_with_all_that_was_acknowledged(
    data: Path, durability: Durability, name: str
) -> None:
    async with EmbeddedServices(data, durability=durability) as services:
        supervisor = services.supervisor
        await remember(services, "acknowledged")
        killed_pid = supervisor.pid_of(name)
        assert killed_pid is not None

        os.kill(killed_pid, signal.SIGKILL)

        async with asyncio.timeout(60):
            while supervisor.restarts(name) == 0:
                await asyncio.sleep(0.01)
            await supervisor.wait_ready(name)
        assert supervisor.pid_of(name) not in (None, killed_pid)
        assert await recall(services) == ("acknowledged", "acknowledged")
        others = set(supervisor.names) - {name}
        assert [supervisor.restarts(other) for other in others] == [0]


async def test_a_killed_database_comes_back_while_one_of_its_sessions_is_busy(data: Path) -> None:
    # A busy backend does not notice that the server is gone, and keeps the next one from starting.
    async with EmbeddedServices(data) as services:
        connection = await asyncpg.connect(services.database_url)
        session_pid = await connection.fetchval("SELECT pg_backend_pid()")
        busy = asyncio.create_task(
            connection.execute("SELECT count(*) FROM generate_series(1, 1000000000)")
        )
        session = psutil.Process(session_pid)
        worked = session.cpu_times().user
        async with asyncio.timeout(60):
            while session.cpu_times().user - worked < 0.05:
                await asyncio.sleep(0.01)

        os.kill(services.supervisor.pid_of("postgres") or 0, signal.SIGKILL)

        async with asyncio.timeout(60):
            while services.supervisor.restarts("postgres") == 0:
                await asyncio.sleep(0.01)
            await services.supervisor.wait_ready("postgres")
        assert not runs(session)
        with pytest.raises((asyncpg.PostgresConnectionError, OSError)):
            await busy
        connection.terminate()


async def test_two_copies_run_side_by_side_and_know_nothing_of_one_another(new_data: Path) -> None:
    async with (
        EmbeddedServices(new_data / "one") as one,
        EmbeddedServices(new_data / "two") as two,
    ):
        await remember(one, "one")
        await remember(two, "two")
        assert await recall(one) == ("one", "one")
        assert await recall(two) == ("two", "two")


async def test_a_path_too_long_for_sockets_works_and_leaves_nothing_behind(new_data: Path) -> None:
    deep = new_data / ("d" * 90) / ("e" * 90)
    async with EmbeddedServices(deep) as services:
        await remember(services, "deep")
        assert await recall(services) == ("deep", "deep")
        directory = services.directories.run
        assert not directory.is_relative_to(deep)
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert not directory.exists()


async def test_a_path_with_odd_characters_works(new_data: Path) -> None:
    odd = new_data / "a \"b' \\c,d # %40 ü?e"
    async with EmbeddedServices(odd) as services:
        await remember(services, "odd")
    async with EmbeddedServices(odd) as services:
        assert await recall(services) == ("odd", "odd")


async def test_a_directory_in_use_is_refused_with_the_pid_of_its_holder(data: Path) -> None:
    async with EmbeddedServices(data) as services:
        with pytest.raises(DataDirectoryInUse, match=str(os.getpid())) as refused:
            async with EmbeddedServices(data):
                pass
        assert refused.value.holder_pid == os.getpid()
        with pytest.raises(DataDirectoryInUse):
            remove_data(data)
        await remember(services, "undisturbed")


async def test_nobody_else_can_reach_the_services(new_data: Path) -> None:
    async with EmbeddedServices(new_data) as services:
        pids = [services.supervisor.pid_of(name) or 0 for name in ("valkey", "postgres")]
        for pid in pids:
            connections = psutil.Process(pid).net_connections(kind="inet")
            assert connections == []
        sockets = sockets_below(new_data)
        assert len(sockets) == 2
        parts = [new_data / part for part in ("log", "valkey", "postgres", "gateway", "metrics")]
        private = {*sockets, *(each.parent for each in sockets), *parts}
        assert {path: oct(stat.S_IMODE(path.stat().st_mode)) for path in private} == dict.fromkeys(
            private, "0o700"
        )


async def test_the_database_role_owns_its_database_and_is_no_superuser(data: Path) -> None:
    async with EmbeddedServices(data) as services:
        connection = await asyncpg.connect(services.database_url)
        row = await connection.fetchrow(
            "SELECT current_user AS role, rolsuper, pg_get_userbyid(datdba) AS owner, datcollate, "
            "pg_encoding_to_char(encoding) AS encoding "
            "FROM pg_roles, pg_database WHERE rolname = current_user AND datname = 'fairdrop'"
        )
        assert dict(row or {}) == {
            "role": "fairdrop",
            "rolsuper": False,
            "owner": "fairdrop",
            "datcollate": "C",
            "encoding": "UTF8",
        }
        settings = {
            name: await connection.fetchval("SELECT current_setting($1)", name)
            for name in ("listen_addresses", "jit", "fsync", "synchronous_commit")
        }
        assert settings == {
            "listen_addresses": "",
            "jit": "off",
            "fsync": "on",
            "synchronous_commit": "on",
        }
        await connection.close()


async def test_the_store_never_evicts_and_writes_everything_down(data: Path) -> None:
    wanted = {
        "maxmemory-policy": "noeviction",
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "port": "0",
    }
    async with (
        EmbeddedServices(data) as services,
        redis.asyncio.from_url(services.store_url, decode_responses=True) as store,
    ):
        assert await store.config_get(*wanted) == wanted


async def test_services_get_none_of_our_environment(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRDROP_GATEWAY_SECRET", "not for them")
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("PGDATA", "/nonexistent")
    async with EmbeddedServices(data) as services:
        await remember(services, "there")
        for name in ("valkey", "postgres"):
            environment = psutil.Process(services.supervisor.pid_of(name)).environ()
            assert "FAIRDROP_GATEWAY_SECRET" not in environment


async def test_a_pid_file_that_names_a_living_stranger_does_not_stop_the_start(data: Path) -> None:
    # As after a restart of a container, where the same pids are given again.
    async with EmbeddedServices(data) as services:
        await remember(services, "kept")
        contents = {path: path.read_text() for path in pid_files_below(data)}
        assert len(contents) == 2
        server_user_id = psutil.Process(services.supervisor.pid_of("postgres")).uids().real
    with subprocess.Popen(["sleep", "600"], user=server_user_id) as stranger:
        for path, content in contents.items():
            path.write_text("\n".join([str(stranger.pid), *content.splitlines()[1:]]) + "\n")
            path.chmod(0o644)
        try:
            async with EmbeddedServices(data) as services:
                assert await recall(services) == ("kept", "kept")
        finally:
            stranger.kill()


async def test_a_service_that_cannot_start_says_why(data: Path) -> None:
    async with EmbeddedServices(data):
        pass
    spoil_cluster(data)
    with pytest.raises(ChildNotReady, match="incompatible"):
        async with EmbeddedServices(data):
            pass


async def test_external_services_are_used_and_not_started(data: Path) -> None:
    async with EmbeddedServices(
        data,
        external_store_url="redis://elsewhere:6379",
        external_database_url="postgresql://elsewhere/db",
    ) as services:
        assert services.store_url == "redis://elsewhere:6379"
        assert services.database_url == "postgresql://elsewhere/db"
        assert services.supervisor.names == ()


def test_services_in_the_background_serve_code_without_a_loop() -> None:
    with start_services() as services:
        store = redis.from_url(services.store_url)
        assert store.ping()
        store.close()
        os.kill(services.pid_of("valkey") or 0, signal.SIGKILL)
        eventually(lambda: services.restarts("valkey") == 1, "valkey was restarted")
        eventually(lambda: services.is_ready("valkey"), "valkey serves")
        data = services.data
    assert not data.exists()
    services.stop()  # again, to no effect


def test_services_in_the_background_report_why_they_cannot_start(tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("")
    with pytest.raises(Exception, match="cannot make the data directory"):
        start_services(occupied)
