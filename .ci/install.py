"""Brings .venv to what the lock files say. make runs it before everything else.

    python3 .ci/install.py runtime  what the program needs: requirements/runtime.txt
    python3 .ci/install.py dev      also what tests, checks and benchmarks need: requirements/dev.txt

It needs a Python from 3.11 to 3.14 with its venv module, and nothing else. When there is nothing to
do it returns at once. A file lock lets several run in one tree: the first installs, the others wait
and find it done. A tree that was moved, or whose Python went away, gets a new environment.

This file must be readable to older Pythons too, so that they can say what is missing.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STATE = VENV / "installed.json"
LOG = VENV / "install.log"

LAYERS = {"runtime": ("runtime.txt", "build.txt"), "dev": ("dev.txt",)}
ALSO_GIVES = {
    "runtime": ("runtime",),
    "dev": ("dev", "runtime"),
}  # dev.txt holds all that runtime.txt holds
OLDEST, NEWEST = (3, 11), (3, 14)
NAMES = ("python3.13", "python3.12", "python3.11", "python3.14")

# How pip names the next package: by its requirement, or by a file that lies on this machine.
PACKAGE = re.compile(
    r"(?:Collecting|Processing|Requirement already satisfied:) (?:\S*/)?(\S+?)(?=[=\s]|-\d)"
)

# What would send packages elsewhere, or make another environment's packages visible.
FOREIGN = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX", "PIP_USER")


def main() -> int:
    """Install the layer that the first argument names; 0 when it is there, 1 with the reason."""
    layer = sys.argv[1] if len(sys.argv) > 1 else ""
    if layer not in LAYERS:
        return fail("usage: python3 .ci/install.py runtime|dev")
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        return run_under_a_fitting_python()
    if is_current(layer):
        return 0
    with (ROOT / ".venv.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another make is installing here; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        return 0 if is_current(layer) else install(layer)


def run_under_a_fitting_python() -> int:
    """Start again under the first fitting Python of the path; returns only when there is none."""
    for name in NAMES:
        # Started rather than only looked up: version switchers leave names that lead nowhere.
        path = shutil.which(name)
        if not path:
            continue
        trial = subprocess.run([path, "-c", ""], stderr=subprocess.DEVNULL, check=False)
        if trial.returncode == 0:
            os.execv(path, [path, *sys.argv])  # noqa: S606 - no shell wanted
    return fail(
        f"Fairdrop needs Python 3.11 to 3.14; {sys.executable} is {sys.version.split()[0]} "
        "and no other was found.\nInstall one, or name it: make PYTHON=/path/to/python3.11"
    )


def fingerprint(layer: str) -> str:
    """Changes whenever the layer has to be installed again."""
    import tomllib  # noqa: PLC0415 - not there in the older Pythons that only say what is missing

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    # How the project itself is installed; the settings of the checkers in that file do not matter.
    project = [settings["build-system"], settings["project"], settings["tool"]["hatch"]]
    digest = hashlib.sha256(json.dumps(project).encode())
    for name in LAYERS[layer]:
        digest.update((ROOT / "requirements" / name).read_bytes())
    return digest.hexdigest()


def installed() -> dict[str, str] | None:
    """The fingerprints of the layers in place; None when there is no sound environment."""
    try:
        state = json.loads(STATE.read_text())
    except (OSError, ValueError):
        return None
    if not PYTHON.exists() or state.get("venv") != str(VENV):
        return None
    layers: dict[str, str] = state["layers"]
    return layers


def remember(layers: dict[str, str]) -> None:
    """Write down which layers are in place, and where: an environment cannot be moved."""
    STATE.write_text(json.dumps({"venv": str(VENV), "layers": layers}))


def is_current(layer: str) -> bool:
    """Whether the layer is in place as the lock files stand now."""
    return (installed() or {}).get(layer) == fingerprint(layer)


def install(layer: str) -> int:
    """Make the environment if there is no sound one, then install the layer and the project."""
    layers = installed()
    if layers is None:
        if not make_environment():
            return 1
        layers = {}
    remember({})  # an interrupted installation counts as none
    locks = [ROOT / "requirements" / name for name in LAYERS[layer]]
    wanted = [argument for lock in locks for argument in ("-r", str(lock))]
    packages = sum(lock.read_text().count("==") for lock in locks)
    if not pip(packages, "--require-hashes", *wanted):
        return 1
    # Its build needs nothing more from outside: the backend is in the lock.
    if not pip(0, "--no-deps", "--no-index", "--no-build-isolation", "--editable", str(ROOT)):
        return 1
    remember({**layers, **{name: fingerprint(name) for name in ALSO_GIVES[layer]}})
    return 0


def make_environment() -> bool:
    """Make an empty environment in place of whatever is there."""
    base = getattr(sys, "_base_executable", sys.executable)  # not the environment's own Python
    say(f"making .venv with Python {sys.version.split()[0]}")
    with start([base, "-m", "venv", "--clear", str(VENV)]) as child:
        said = child.communicate()[0].strip()
    if child.returncode:
        fail(f"{said}\nThe module venv of {base} does not work.")
    return child.returncode == 0


def pip(packages: int, *arguments: str) -> bool:
    """Run pip install, its output going to the log and its progress, as one line, to the terminal."""
    if packages:
        say(f"installing {packages} packages, once for each state of the lock")
    command = [str(PYTHON), "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    command += ["--progress-bar", "off", *arguments]
    began, seen = time.monotonic(), 0
    with LOG.open("a") as log, start(command) as child:
        assert child.stdout is not None
        for line in child.stdout:
            log.write(line)
            found = PACKAGE.match(line)
            if not packages:
                continue
            if found:
                seen += 1
                progress(f"{seen} of {packages}: {found.group(1)}")
            elif line.startswith("Installing collected"):
                progress("unpacking")
    progress("")
    if child.returncode:
        last = LOG.read_text().splitlines()[-15:]
        fail("\n".join([*last, f"pip failed; all it said is in {LOG}"]))
    elif packages:
        say(f"installed in {time.monotonic() - began:.0f} s")
    return child.returncode == 0


def start(command: list[str]) -> subprocess.Popen[str]:
    """Start a child whose whole output we read."""
    return subprocess.Popen(
        command,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def clean_environment() -> dict[str, str]:
    """The environment without what would send pip elsewhere; its registry settings stay."""
    kept = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    return {**kept, "PYTHONUNBUFFERED": "1"}  # progress as it happens


def progress(text: str) -> None:
    """Replace the last line of the terminal; says nothing where there is no terminal."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K" + text)
        sys.stderr.flush()


def say(text: str) -> None:
    """One line for the person who waits."""
    sys.stderr.write(text + "\n")


def fail(text: str) -> int:
    """Say what went wrong; the status of a failed run."""
    say(text)
    return 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
