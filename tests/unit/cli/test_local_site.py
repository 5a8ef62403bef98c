"""A command finds the Fairdrop it is about, and gives its key to nobody else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fairdrop.cli.local_site import control_plane, load_settings, site_settings
from fairdrop.errors import ConfigurationError

LOCAL = "http://127.0.0.1:4711"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """What a running `fairdrop up` has in its data directory."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "site.json").write_text(
        json.dumps(
            {
                "url": LOCAL,
                "gateway_url": "http://127.0.0.1:4712",
                "store_url": "unix:///run/valkey.sock",
                "database_url": "postgresql://fairdrop@/fairdrop?host=/run",
            }
        )
    )
    (data / "secrets.json").write_text(
        json.dumps({"admin_key": "local-key", "visitor_key": "v", "signing_keys": "s"})
    )
    return data


def test_what_runs_here_is_found_with_its_key(site: Path) -> None:
    assert control_plane(load_settings(site), None) == (LOCAL, "local-key")
    assert control_plane(load_settings(site), LOCAL + "/") == (LOCAL, "local-key")


@pytest.mark.parametrize(
    "url",
    [
        "https://shop.example",
        "http://127.0.0.1:4713",
        "http://127.0.0.1.example",
        "http://127.0.0.1:4711@evil.example",
        "http://localhost.example:4711",
    ],
)
def test_the_key_of_what_runs_here_is_given_to_no_other_address(site: Path, url: str) -> None:
    with pytest.raises(ConfigurationError, match="FAIRDROP_ADMIN_KEY"):
        control_plane(load_settings(site), url)


def test_without_an_address_on_file_the_key_is_for_this_machine(site: Path) -> None:
    (site / "site.json").unlink()
    settings = load_settings(site)
    for url in (None, "http://localhost:9000", "http://[::1]:8000", "http://127.0.0.2"):
        assert control_plane(settings, url)[1] == "local-key"
    with pytest.raises(ConfigurationError):
        control_plane(settings, "http://192.168.1.2:8000")


def test_the_variables_come_first(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRDROP_ADMIN_KEY", "given-key")
    monkeypatch.setenv("FAIRDROP_STORE_URL", "redis://store")
    settings = load_settings(site)
    assert control_plane(settings, "https://shop.example") == ("https://shop.example", "given-key")
    assert site_settings(settings).store_url == "redis://store"
    assert site_settings(settings).database_url == "postgresql://fairdrop@/fairdrop?host=/run"


def test_the_parts_of_what_runs_here_are_found(site: Path) -> None:
    settings = site_settings(load_settings(site))
    assert settings.gateway_url == "http://127.0.0.1:4712"
    assert settings.visitor_key is not None
    assert settings.visitor_key.get_secret_value() == "v"
    assert "local-key" not in repr(settings)


def test_where_nothing_runs_that_is_said_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="fairdrop up"):
        site_settings(load_settings(tmp_path))
    with pytest.raises(ConfigurationError, match="fairdrop up"):
        control_plane(load_settings(tmp_path), None)


@pytest.mark.parametrize("url", ["shop.example", "ftp://shop.example", "http://", "//x"])
def test_what_is_no_address_is_refused(site: Path, url: str) -> None:
    with pytest.raises(ConfigurationError, match="no address"):
        control_plane(load_settings(site), url)


def test_a_broken_file_is_named(site: Path) -> None:
    (site / "secrets.json").write_text("{")
    with pytest.raises(ConfigurationError, match=r"secrets\.json"):
        control_plane(load_settings(site), None)


def test_a_wrong_setting_is_named_by_its_variable_and_secrets_are_not_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAIRDROP_PORT", "many")
    with pytest.raises(ConfigurationError, match="FAIRDROP_PORT"):
        load_settings()
    monkeypatch.delenv("FAIRDROP_PORT")
    (tmp_path / "fairdrop.toml").write_text('admin_key = ["do not show me"]')
    with pytest.raises(ConfigurationError, match="FAIRDROP_ADMIN_KEY") as told:
        load_settings()
    assert "do not show me" not in str(told.value)
