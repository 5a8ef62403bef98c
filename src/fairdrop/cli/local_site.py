"""Finding the Fairdrop that a command is about: from options, settings, or one that runs here.

``fairdrop up`` and ``fairdrop demo`` leave two files in their data directory: the addresses of what
runs (while it runs), and the secrets (for their owner alone).
"""

from __future__ import annotations

import json
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from fairdrop.errors import ConfigurationError
from fairdrop.settings import SECRETS, Settings

if TYPE_CHECKING:
    from pathlib import Path

ADDRESSES_FILE = "site.json"
SECRETS_FILE = "secrets.json"
DEFAULT_URL = "http://127.0.0.1:8000"


def load_settings(data_dir: Path | None = None) -> Settings:
    """The effective settings. Raises ConfigurationError that names the variable, never its value."""
    given: dict[str, Any] = {} if data_dir is None else {"data_dir": data_dir}
    try:
        return Settings(**given)
    except ValidationError as error:
        found = []
        for each in error.errors(include_input=False, include_url=False):
            name = ".".join(str(part) for part in each["loc"]).upper()
            variable = name if name.startswith("FAIRDROP_") or not name else f"FAIRDROP_{name}"
            found.append(f"{variable}: {each['msg']}" if variable else each["msg"])
        raise ConfigurationError("these settings are wrong:\n  " + "\n  ".join(found)) from None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the settings cannot be read: {error}") from None


def control_plane(settings: Settings, url: str | None) -> tuple[str, str]:
    """Where the control plane is, and the key for it. Raises ConfigurationError without a key.

    The key of a Fairdrop that runs here is given to that Fairdrop only: to the address that it
    wrote down, or to this machine when it wrote none.
    """
    addresses = _read(settings.data_dir / ADDRESSES_FILE)
    local = addresses.get("url")
    base = (url or local or DEFAULT_URL).rstrip("/")
    if urlsplit(base).scheme not in ("http", "https") or not urlsplit(base).hostname:
        raise ConfigurationError(f"{base} is no address; use one like {DEFAULT_URL}")
    if settings.admin_key is not None and settings.admin_key.get_secret_value():
        return base, settings.admin_key.get_secret_value()
    secrets = _read(settings.data_dir / SECRETS_FILE)
    if secrets.get("admin_key") and (base == local or (local is None and _is_here(base))):
        return base, str(secrets["admin_key"])
    raise ConfigurationError(
        f"there is no API key for {base}. Set FAIRDROP_ADMIN_KEY, or run this where"
        " `fairdrop up` runs (--data-dir says where its data is)."
    )


def site_settings(settings: Settings) -> Settings:
    """The settings with which parts can be opened: as given, else those of what runs here.

    Raises ConfigurationError when neither says where the store and the database are.
    """
    addresses = _read(settings.data_dir / ADDRESSES_FILE)
    secrets = _read(settings.data_dir / SECRETS_FILE)
    known = {
        **{name: secrets[name] for name in SECRETS if secrets.get(name)},
        **{
            name: addresses[name]
            for name in ("store_url", "database_url", "gateway_url", "smtp_url")
            if addresses.get(name)
        },
    }
    if not (settings.store_url or known.get("store_url")) or not (
        settings.database_url or known.get("database_url")
    ):
        raise ConfigurationError(
            f"nothing runs in {settings.data_dir}. Start `fairdrop up`, say where its data is with"
            " --data-dir, or set FAIRDROP_STORE_URL and FAIRDROP_DATABASE_URL."
        )
    return Settings(**{**known, **settings.model_dump(exclude_none=True)})


def _read(path: Path) -> dict[str, Any]:
    """The file's content; nothing when it is not there. Raises ConfigurationError if it is broken."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}") from None
    return content if isinstance(content, dict) else {}


def _is_here(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
