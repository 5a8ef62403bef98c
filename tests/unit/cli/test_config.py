"""``fairdrop config`` prints what is in force, and no secret."""

from __future__ import annotations

import json
from pathlib import Path

from fairdrop.settings import SECRETS, Settings
from tests.unit.cli.command import run


def test_every_setting_is_printed_with_its_meaning_in_80_columns() -> None:
    ran = run("config")
    assert ran.status == 0
    for name in Settings.model_fields:
        assert name in ran.output
    assert "API key of the control plane" in ran.output
    assert max(len(line) for line in ran.output.splitlines()) <= 80


def test_the_environment_comes_before_the_file_and_the_file_before_the_defaults(
    tmp_path: Path,
) -> None:
    (tmp_path / "fairdrop.toml").write_text("port = 1234\nweb_workers = 3\n")
    shown = json.loads(run("config", "--json", FAIRDROP_PORT="4321").output)
    assert (shown["port"], shown["web_workers"], shown["host"]) == ("4321", "3", "127.0.0.1")


def test_no_secret_is_printed(tmp_path: Path) -> None:
    secret = "never-to-be-seen"
    (tmp_path / "key").write_text(secret)
    variables = {f"FAIRDROP_{name.upper()}": secret for name in SECRETS[1:]}
    variables["FAIRDROP_ADMIN_KEY_FILE"] = str(tmp_path / "key")
    variables["FAIRDROP_DATABASE_URL"] = f"postgresql://me:{secret}@db.example/fairdrop"
    variables["FAIRDROP_STORE_URL"] = f"redis://:{secret}@store.example"
    for ran in (run("config", **variables), run("config", "--json", **variables)):
        assert ran.status == 0
        assert secret not in ran.output + ran.errors
        assert ran.output.count("(set)") == len(SECRETS)
    shown = json.loads(run("config", "--json", **variables).output)
    assert shown["database_url"] == "postgresql://(hidden)@db.example/fairdrop"


def test_a_wrong_setting_is_told_without_a_traceback() -> None:
    ran = run("config", FAIRDROP_WEB_WORKERS="0")
    assert ran.status == 1
    assert "FAIRDROP_WEB_WORKERS" in ran.errors
    assert "Traceback" not in ran.output + ran.errors


def test_a_misspelt_setting_in_the_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "fairdrop.toml").write_text("prot = 1\n")
    ran = run("config")
    assert (ran.status, "PROT" in ran.errors) == (1, True)
