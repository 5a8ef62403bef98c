"""What a person gets by installing: a lock without addresses, and a wheel with everything in it."""

import ast
import importlib
import importlib.metadata
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import fairdrop

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "fairdrop"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCKS = ("runtime.txt", "build.txt", "dev.txt")
PIN = re.compile(r"^(?P<name>[a-z0-9-]+)==(?P<version>\S+)(?: ; (?P<marker>[^\\]+))? \\$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}(?: \\)?$")
ADDRESS = re.compile(
    r"://|file:|@|--(?:extra-)?index|--find-links|--trusted-host|(?:^|\s)[/~.]/?\w"
)


def lock_lines(name: str) -> list[str]:
    return (ROOT / "requirements" / name).read_text().splitlines()


def pins(name: str) -> dict[str, str]:
    found = (PIN.match(line) for line in lock_lines(name))
    return {match["name"]: match["version"] for match in found if match}


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_file_carries_no_address(name: str) -> None:
    assert [line for line in lock_lines(name) if ADDRESS.search(line)] == []


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_file_holds_only_pins_with_hashes(name: str) -> None:
    lines = [line for line in lock_lines(name) if not line.lstrip().startswith("#")]
    strays = [line for line in lines if not PIN.match(line) and not HASH.match(line)]
    bare = [
        line
        for line, below in zip(lines, [*lines[1:], ""], strict=True)
        if PIN.match(line) and not HASH.match(below)
    ]
    assert lines
    assert (strays, bare) == ([], [])


@pytest.mark.parametrize("name", ["runtime.txt", "build.txt"])
def test_the_development_lock_holds_the_same_pins(name: str) -> None:
    assert pins(name).items() <= pins("dev.txt").items()


@pytest.mark.parametrize("declared", PROJECT["dependencies"])
def test_the_lock_satisfies_what_the_project_declares(declared: str) -> None:
    requirement = Requirement(declared)
    locked = pins("runtime.txt")[canonicalize_name(requirement.name)]
    assert requirement.specifier.contains(locked)


def imported_names(source: str) -> Iterator[str]:
    """The top-level names of all absolute imports, also those inside functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


def test_every_import_of_the_product_is_a_declared_dependency() -> None:
    extras = PROJECT.get("optional-dependencies", {}).values()
    wanted = [*PROJECT["dependencies"], *(text for extra in extras for text in extra)]
    declared = {canonicalize_name(Requirement(text).name) for text in wanted}
    providers = importlib.metadata.packages_distributions()
    undeclared = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in PACKAGE.rglob("*.py")
        for name in imported_names(path.read_text())
        if name not in sys.stdlib_module_names
        and name != "fairdrop"
        and declared.isdisjoint(map(canonicalize_name, providers.get(name, [])))
    }
    assert undeclared == set()


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", tmp_path],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob(f"fairdrop-{fairdrop.__version__}-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    # Scripts of the store, queries, migrations, templates, static files and py.typed among them.
    present = {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert packed == present
    assert "fairdrop/py.typed" in packed


@pytest.mark.parametrize(("command", "target"), PROJECT["scripts"].items())
def test_a_console_command_leads_to_a_function(command: str, target: str) -> None:
    module, _, function = target.partition(":")
    assert callable(getattr(importlib.import_module(module), function)), command
