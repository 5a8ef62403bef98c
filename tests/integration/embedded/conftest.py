"""Data directories for services, and parents that can be killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairdrop.embedded import remove_data, start_services
from fairdrop.embedded.directories import data_identity
from fairdrop.embedded.leftovers import Traces, find_leftovers

PARENT = Path(__file__).with_name("parent.py")
STDLIB = Path(sysconfig.get_path("stdlib"))
IMPORT_PATH = os.pathsep.join(
    path
    for path in sys.path
    if path.endswith("site-packages") or not Path(path).is_relative_to(STDLIB)
)
"""Where our packages are, for an interpreter with a standard library of its own."""

Parent = subprocess.Popen[str]
StartParent = Callable[..., tuple[Parent, dict[str, Any]]]


@pytest.fixture
def new_data() -> Iterator[Path]:
    """An empty data directory, right below the system's temporary one.

    pytest's own ``tmp_path`` is closed to other users, which as root is a case of its own. The name
    is one that ``start_services`` clears away when a test run was killed.
    """
    path = Path(tempfile.mkdtemp(prefix="fairdrop-tmp-"))
    path.chmod(0o711)  # so that a data directory inside it can be reached too
    yield path
    if path.exists():
        left = find_leftovers([Traces(data_identity(path))])
        remove_data(path)
        assert left == []


@pytest.fixture(scope="session")
def used_data() -> Iterator[Path]:
    """A data directory whose services have run, to be copied: a first start takes a second."""
    path = Path(tempfile.mkdtemp(prefix="fairdrop-tmp-"))
    start_services(path).stop()
    yield path
    remove_data(path)


@pytest.fixture
def data(new_data: Path, used_data: Path) -> Path:
    """A data directory in which the services have run once."""
    subprocess.run(["cp", "-a", f"{used_data}/.", str(new_data)], check=True)
    return new_data


@pytest.fixture
def start_parent() -> Iterator[StartParent]:
    """Starts parent.py with arguments, in a session of its own, and reads its first report."""
    parents: list[Parent] = []

    def start(
        *arguments: object,
        python: str = sys.executable,
        **options: Any,
    ) -> tuple[Parent, dict[str, Any]]:
        parent = subprocess.Popen(
            [python, str(PARENT), *map(str, arguments)],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=os.environ | {"PYTHONPATH": IMPORT_PATH},
            **options,
        )
        parents.append(parent)
        assert parent.stdout is not None
        line = parent.stdout.readline()
        assert line, f"the parent ended with {parent.wait()} before it was ready"
        return parent, json.loads(line)

    yield start
    for parent in parents:
        parent.kill()
        parent.communicate()
