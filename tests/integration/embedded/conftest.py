"""Data directories for services, and parents that can be killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fairdrop.embedded import Directories, remove_data
from fairdrop.embedded.leftovers import Traces, find_leftovers

PARENT = Path(__file__).with_name("parent.py")

Parent = subprocess.Popen[str]
StartParent = Callable[..., tuple[Parent, dict[str, Any]]]


@pytest.fixture
def data() -> Iterator[Path]:
    """A new data directory, right below the system's temporary one.

    pytest's own ``tmp_path`` is closed to other users, which as root is a case of its own.
    """
    path = Path(tempfile.mkdtemp(prefix="fairdrop-test-"))
    yield path
    if path.exists():
        left = find_leftovers([Traces(Directories.prepare(path).identity)])
        remove_data(path)
        assert left == []


@pytest.fixture
def start_parent() -> Iterator[StartParent]:
    """Starts parent.py with arguments, in a session of its own, and reads its first report."""
    parents: list[Parent] = []

    def start(*arguments: object, **options: Any) -> tuple[Parent, dict[str, Any]]:
        parent = subprocess.Popen(
            [sys.executable, str(PARENT), *map(str, arguments)],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
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
