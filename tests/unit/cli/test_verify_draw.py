"""`fairdrop verify-draw` on a directory: status 0 for a right draw, 1 and a sentence for any other (W4)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fairdrop.cli.verify_draw import read, write
from tests.unit.cli.command import run
from tests.unit.draw.made_draws import TAMPERINGS, inclusion_of, packed, proof_of, right


def test_a_right_draw_ends_with_status_0_and_the_place(tmp_path: Path) -> None:
    files = right()
    write(tmp_path, packed(files))
    number, entry = files["order"][6]
    receipt = tmp_path / "receipt.json"
    receipt.write_text(json.dumps({"entry": entry, "proof": proof_of(files, entry)}))
    ran = run("verify-draw", str(tmp_path), "--receipt", str(receipt))
    assert ran.status == 0, ran
    assert "The draw is right" in ran.output
    assert f"{entry} has place 7, with the number\n{number}." in ran.output


@pytest.mark.parametrize("done", sorted(TAMPERINGS))
def test_a_tampered_draw_ends_with_status_1_and_names_what_was_changed(
    tmp_path: Path, done: str
) -> None:
    fault, tamper = TAMPERINGS[done]
    files = right()
    tamper(files)
    write(tmp_path, packed(files))
    ran = run("verify-draw", str(tmp_path))
    assert (ran.status, ran.output.split(":")[0]) == (1, fault.upper())
    shown = json.loads(run("verify-draw", str(tmp_path), "--json").output)
    assert (shown["right"], [each["fault"] for each in shown["faults"]]) == (False, [fault])


def test_a_receipt_of_somebody_left_out_ends_with_status_1(tmp_path: Path) -> None:
    files = right()
    write(tmp_path, packed(files))
    receipt = tmp_path / "receipt.txt"
    receipt.write_text(proof_of(files, "A" * 22))
    ran = run("verify-draw", str(tmp_path), "--receipt", str(receipt))
    assert ran.status == 1
    assert "whoever holds this receipt was left out" in ran.output


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """The address of the test's directory, which any web server can serve."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_one_entry_is_checked_without_the_list(tmp_path: Path, served: str) -> None:
    files = right()
    write(tmp_path, packed(files))
    (tmp_path / "entries.txt").unlink()
    number, entry = files["order"][6]
    receipt = tmp_path / "receipt.txt"
    receipt.write_text(proof_of(files, entry))
    command = ("verify-draw", served, "--receipt", str(receipt), "--short")
    left_out = run(*command)
    assert (left_out.status, left_out.output.split(":")[0]) == (1, "RECEIPT")
    (tmp_path / "entries").mkdir()
    proof = inclusion_of(files, entry)
    (tmp_path / "entries" / entry).write_text(json.dumps(proof))
    ran = run(*command)
    assert ran.status == 0, ran
    assert (
        f"{entry} is in the list of 9 that was drawn from. Its number is\n{number}." in ran.output
    )
    (tmp_path / "entries" / entry).write_text(json.dumps(proof | {"path": proof["path"][1:]}))
    ran = run(*command)
    assert (ran.status, ran.output.split(":")[0]) == (1, "LIST")


@pytest.mark.parametrize("more", [[], ["--receipt", __file__, "--save", "here"]])
def test_a_short_check_that_cannot_be_made_is_a_wrong_command(more: list[str]) -> None:
    assert run("verify-draw", "http://127.0.0.1:1", "--short", *more).status == 2
    assert run("verify-draw", "here", "--short", "--receipt", __file__).status == 2


def test_what_is_saved_is_what_was_read(tmp_path: Path) -> None:
    files = packed(right())
    write(tmp_path / "one", files)
    run("verify-draw", str(tmp_path / "one"), "--save", str(tmp_path / "two"))
    assert read(tmp_path / "two") == files


@pytest.mark.parametrize("where", ["nowhere", "ftp://shop.test/draw", "http://127.0.0.1:1/draw"])
def test_files_that_are_not_there_end_with_one_sentence(tmp_path: Path, where: str) -> None:
    ran = run("verify-draw", where if "://" in where else str(tmp_path / where))
    assert ran.status == 1
    assert ran.errors.count("\n") == 1
    assert ran.errors.startswith("fairdrop: ")
