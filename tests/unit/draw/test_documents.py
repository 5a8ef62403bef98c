"""What the documents on the draw say is run, as an auditor would run it (W4)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fairdrop.cli.verify_draw import write
from fairdrop.draw import Fault
from tests.unit.draw.made_draws import TAMPERINGS, Files, inclusion_of, packed, right

AUDIT = (Path(__file__).parents[3] / "docs" / "draw-audit.md").read_text("utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", AUDIT, re.DOTALL)
COMMANDS = re.findall(r"```sh\n(.*?)```", AUDIT, re.DOTALL)


def run_program(program: str, directory: Path) -> int:
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=directory, check=False, capture_output=True
    )
    return done.returncode


def keep_proof(directory: Path, files: Files) -> None:
    """The short proof of the last entry, as the server would give it."""
    proof = inclusion_of(files, files["entries"][-1])
    (directory / "proof.json").write_text(json.dumps(proof))


@pytest.mark.parametrize("people", [1, 7, 64])
def test_the_programs_of_the_document_accept_a_right_draw(tmp_path: Path, people: int) -> None:
    files = right(people)
    write(tmp_path, packed(files))
    keep_proof(tmp_path, files)
    assert [run_program(program, tmp_path) for program in PROGRAMS] == [0, 0, 0]


@pytest.mark.parametrize("done", ["entry moved", "root", "seed", "commitment", "beacon", "number"])
def test_one_of_the_programs_refuses_a_tampered_draw(tmp_path: Path, done: str) -> None:
    files = right()
    keep_proof(tmp_path, files)
    TAMPERINGS[done][1](files)
    write(tmp_path, packed(files))
    assert any(run_program(program, tmp_path) for program in PROGRAMS)


def test_the_program_for_one_entry_refuses_what_does_not_lead_to_the_root(tmp_path: Path) -> None:
    files = right()
    write(tmp_path, packed(files))
    keep_proof(tmp_path, files)
    proof = json.loads((tmp_path / "proof.json").read_text())
    for wrong in ({"entry": files["entries"][0]}, {"index": 3}, {"path": proof["path"][1:]}):
        (tmp_path / "proof.json").write_text(json.dumps(proof | wrong))
        assert run_program(PROGRAMS[2], tmp_path) != 0


def test_the_shell_computes_the_commitment() -> None:
    files = right()
    (command,) = COMMANDS
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        env={"SEED": files["parameters"]["seed"], "PATH": "/usr/bin:/bin"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split()[0] == files["parameters"]["commitment"]


def test_the_document_names_every_fault() -> None:
    assert {*re.findall(r"^\| `(\w+)` \|", AUDIT, re.MULTILINE)} == {fault.value for fault in Fault}
