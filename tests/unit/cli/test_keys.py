"""``fairdrop keys``: a rotation from the first key to the retirement of the old one (W12)."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fairdrop.cli import app
from fairdrop.errors import ConfigurationError
from fairdrop.waiting_room import AdmissionTokens, split_keys


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["keys", *arguments])
    if isinstance(result.exception, ConfigurationError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def listed(file: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(run("list", "--json", "--file", str(file)))
    return rows


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "signing-keys"


def test_the_first_key_signs_at_once_and_is_for_its_owner_alone(file: Path) -> None:
    assert "signs at once" in run("new", "--file", str(file))
    assert [(row["algorithm"], row["signs"]) for row in listed(file)] == [("EdDSA", True)]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_rotation_overlaps_and_the_old_key_can_be_retired(file: Path) -> None:
    run("new", "--file", str(file))
    old = listed(file)[0]["kid"]
    run("new", "--algorithm", "ES256", "--file", str(file))
    new, kept = listed(file)
    assert (new["signs"], kept["signs"], kept["kid"]) == (False, True, old)
    with pytest.raises(ConfigurationError, match="signs at the moment"):
        run("retire", old, "--file", str(file))
    run("new", "--known-first-s", "0", "--file", str(file))
    assert [row["signs"] for row in listed(file)] == [True, False, False]
    run("retire", old, "--file", str(file))
    assert old not in {row["kid"] for row in listed(file)}
    assert len(AdmissionTokens(split_keys(file.read_text())).jwks()["keys"]) == 2


def test_the_keys_of_a_local_site_are_rotated_among_its_secrets(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.json"
    secrets.write_text(json.dumps({"admin_key": "a", "signing_keys": ""}))
    run("new", "--data-dir", str(tmp_path))
    kept = json.loads(secrets.read_text())
    assert kept["admin_key"] == "a"
    assert len(AdmissionTokens(split_keys(kept["signing_keys"])).keys) == 1


def test_listing_shows_no_secret_part(file: Path) -> None:
    run("new", "--algorithm", "HS256", "--file", str(file))
    secret = json.loads(file.read_text())["k"]
    assert secret not in run("list", "--file", str(file))


def test_mistakes_are_told(file: Path, tmp_path: Path) -> None:
    run("new", "--file", str(file))
    with pytest.raises(ConfigurationError, match="no key named"):
        run("retire", "unknown", "--file", str(file))
    file.write_text("nonsense")
    with pytest.raises(ConfigurationError, match="cannot be used"):
        run("list", "--file", str(file))
    with pytest.raises(ConfigurationError, match="--data-dir"):
        run("list", "--data-dir", str(tmp_path / "nowhere"))
    result = CliRunner().invoke(app, ["keys", "new", "--algorithm", "none", "--file", str(file)])
    assert result.exit_code == 2
