"""How one gateway process is started: options on the command line, secrets from the environment.

Secrets are never options: a process list shows options to everybody on the machine.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from fairdrop.errors import ConfigurationError

from .mischief import MischiefDefaults

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SECRET_KEY = "FAIRDROP_GATEWAY_SECRET_KEY"  # noqa: S105 - the name of the variable
WEBHOOK_SECRET = "FAIRDROP_GATEWAY_WEBHOOK_SECRET"  # noqa: S105 - the same
MISCHIEF = "FAIRDROP_GATEWAY_MISCHIEF"

MIN_SECRET_CHARS = 16


class SandboxSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of one gateway process. ``mischief`` None: as last set, kept in the data directory."""

    host: str
    port: int
    data_dir: Path
    webhook_url: str
    public_url: str | None
    secret_key: bytes
    webhook_secret: bytes
    mischief: MischiefDefaults | None

    def __repr__(self) -> str:
        """Without the secrets."""
        return f"SandboxSettings(host={self.host!r}, port={self.port}, data_dir={self.data_dir!s})"


def read_settings(
    arguments: Sequence[str] | None = None, environment: Mapping[str, str] = os.environ
) -> SandboxSettings:
    """The settings of this command line and environment.

    Raises ConfigurationError for what is missing or wrong in the environment or in an address;
    exits with a usage message for a wrong command line, as argparse does.
    """
    options = _parser().parse_args(arguments)
    _check_http("--webhook-url", options.webhook_url)
    if options.public_url is not None:
        _check_http("--public-url", options.public_url)
    return SandboxSettings(
        host=options.host,
        port=options.port,
        data_dir=options.data_dir,
        webhook_url=options.webhook_url,
        public_url=options.public_url.rstrip("/") if options.public_url else None,
        secret_key=_secret(SECRET_KEY, environment),
        webhook_secret=_secret(WEBHOOK_SECRET, environment),
        mischief=_mischief(options.mischief or environment.get(MISCHIEF)),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fairdrop.payments.sandbox",
        description="A payment gateway for rehearsals: real HTTP, signed webhooks, no real money. "
        f"Its secrets come from {SECRET_KEY} and {WEBHOOK_SECRET}.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, required=True, help="port to listen on; 0: a free one")
    parser.add_argument("--data-dir", type=Path, required=True, help="where its record is kept")
    parser.add_argument("--webhook-url", required=True, help="where webhooks go")
    parser.add_argument(
        "--public-url", help="where browsers reach it (http://HOST:PORT); for payment links"
    )
    parser.add_argument(
        "--mischief",
        help='gateway-wide mischief as JSON, such as {"seed": 1, "drop_share": 0.05}; also from '
        f"{MISCHIEF}; without either, what PUT /v1/mischief set last",
    )
    return parser


def _check_http(option: str, url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(f"{option} has to be an http or https address")


def _secret(name: str, environment: Mapping[str, str]) -> bytes:
    value = environment.get(name, "")
    if len(value) < MIN_SECRET_CHARS or not value.isascii() or not value.isprintable():
        raise ConfigurationError(
            f"{name} has to be set to at least {MIN_SECRET_CHARS} printable ASCII characters"
        )
    return value.encode()


def _mischief(text: str | None) -> MischiefDefaults | None:
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=MischiefDefaults)
    except msgspec.MsgspecError as error:
        raise ConfigurationError(f"the gateway's mischief: {error}") from error
