"""A script is its file: keys, replies and digest come from there."""

import hashlib
from pathlib import Path

import pytest

from fairdrop.drivers.store import Script


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "somewhere_scripted"
    (folder / "lua").mkdir(parents=True)
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    (folder / "lua" / "good.lua").write_text(
        "-- good: does good.\n--\n-- KEYS: cfg line\n-- Status:\n"
        "--   OK        done\n--   NO_SALE   not here\n-- Cost: O(1).\nreturn 'OK'\n"
    )
    (folder / "lua" / "keyless.lua").write_text("-- keyless: says nothing.\nreturn 'OK'\n")
    return folder.name


def test_keys_replies_and_digest_come_from_the_file(package: str) -> None:
    script = Script.load(package, "good")
    assert script.key_names == ("cfg", "line")
    assert script.replies == ("OK", "NO_SALE")
    assert script.sha == hashlib.sha1(script.source.encode(), usedforsecurity=False).hexdigest()
    assert script.keys("s", 2) == ("fd:{s}:2:cfg", "fd:{s}:2:line")


def test_a_file_without_keys_is_refused(package: str) -> None:
    with pytest.raises(ValueError, match="declares no KEYS"):
        Script.load(package, "keyless")
