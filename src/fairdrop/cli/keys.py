"""``fairdrop keys``: the keys that sign admission tokens, made and rotated (W12).

The keys are in the file that ``FAIRDROP_SIGNING_KEYS_FILE`` (or ``--file``) names, else among the
secrets that ``fairdrop up`` keeps in its data directory. Processes read them when they start.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from fairdrop.errors import ConfigurationError

app = typer.Typer(
    help="Make, list and retire the keys that sign admission tokens.", no_args_is_help=True
)

KNOWN_FIRST_S = 600
"""How long a new key is known before it signs: twice what gateways may keep the public keys for."""

File = Annotated[
    Path | None, typer.Option(help="The file of keys [default: FAIRDROP_SIGNING_KEYS_FILE]")
]
DataDir = Annotated[
    Path | None, typer.Option(help="Where `fairdrop up` keeps its data [default: .fairdrop]")
]


@app.command("new")
def new(
    algorithm: Annotated[
        str | None, typer.Option(help="EdDSA, ES256 or HS256 [default: the setting]")
    ] = None,
    known_first_s: Annotated[
        int, typer.Option(min=0, help="Seconds that the key is known before it signs.")
    ] = KNOWN_FIRST_S,
    file: File = None,
    data_dir: DataDir = None,
) -> None:
    """Make a key and put it first.

    It signs from ten minutes after now on; until then, and as long as it is kept, the older keys are
    good as well. Start every process again before that time is over, in any order.
    """
    from fairdrop.waiting_room import Algorithm, new_signing_key

    from .local_site import load_settings

    settings = load_settings(data_dir)
    try:
        wanted = Algorithm(algorithm or settings.token_algorithm)
    except ValueError:
        known = ", ".join(Algorithm)
        raise typer.BadParameter(f"use one of {known}", param_hint="--algorithm") from None
    ring = _Ring(file, settings.data_dir)
    first = not ring.keys
    signs_from_s = 0 if first else _now_s() + known_first_s
    made = new_signing_key(wanted, signs_from_s=signs_from_s)
    ring.write([made, *ring.texts])
    when = "at once" if first else f"from {_shown(signs_from_s)}"
    typer.echo(f"Made {_kid(made)} ({wanted}); it signs {when}.")
    if not first:
        typer.echo("Start every process again before then, so that each knows it.")


@app.command("list")
def show(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    file: File = None,
    data_dir: DataDir = None,
) -> None:
    """List the keys, newest first: names and dates, never the secret parts."""
    from .local_site import load_settings

    ring = _Ring(file, load_settings(data_dir).data_dir)
    signing = ring.signing()
    rows = [
        {
            "kid": key.kid,
            "algorithm": str(key.algorithm),
            "signs": key.kid == signing,
            "signs_from": _shown(key.signs_from_s) if key.signs_from_s else None,
        }
        for key in ring.keys
    ]
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        role = "signs now" if row["signs"] else "verifies"
        if row["signs_from"] and not row["signs"] and _coming(row["signs_from"]):
            role = f"signs from {row['signs_from']}"
        typer.echo(f"{row['kid']}  {row['algorithm']:<6}  {role}")


@app.command("retire")
def retire(
    kid: Annotated[str, typer.Argument(help="The key's name, as `fairdrop keys list` shows it.")],
    file: File = None,
    data_dir: DataDir = None,
) -> None:
    """Take a key out: tokens that it signed are refused once every process has started again.

    Wait for the longest lease after the newer key began to sign, so that nobody inside is put out.
    """
    from .local_site import load_settings

    ring = _Ring(file, load_settings(data_dir).data_dir)
    if kid not in {key.kid for key in ring.keys}:
        raise ConfigurationError(f"there is no key named {kid}; `fairdrop keys list` shows them")
    if kid == ring.signing():
        raise ConfigurationError(
            f"{kid} signs at the moment: make a new key, and retire this one when that one signs"
        )
    pairs = zip(ring.keys, ring.texts, strict=True)
    ring.write([text for key, text in pairs if key.kid != kid])
    typer.echo(f"Retired {kid}. Start every process again.")


class _Ring:
    """The keys where they are kept."""

    def __init__(self, file: Path | None, data_dir: Path) -> None:
        from fairdrop.waiting_room import read_keys, split_keys

        from .local_site import SECRETS_FILE

        named = os.environ.get("FAIRDROP_SIGNING_KEYS_FILE")
        self._file = file or (Path(named) if named else None)
        self._secrets_path = data_dir / SECRETS_FILE
        self._secrets: dict[str, Any] = {}
        try:
            self.texts = split_keys(self._read())
            self.keys = read_keys(self.texts)
        except ValueError as error:
            raise ConfigurationError(f"{self._place} cannot be used: {error}") from None

    @property
    def _place(self) -> Path:
        return self._file or self._secrets_path

    def _read(self) -> str:
        if self._file is not None:
            return self._file.read_text("utf-8") if self._file.exists() else ""
        if not self._secrets_path.exists():
            raise ConfigurationError(
                f"there are no keys in {self._secrets_path.parent}: say where with --file or"
                " --data-dir"
            )
        self._secrets = json.loads(self._secrets_path.read_text("utf-8"))
        return str(self._secrets.get("signing_keys", ""))

    def signing(self) -> str:
        """The name of the key that signs now."""
        from fairdrop.waiting_room import signing_at

        return signing_at(self.keys, _now_s()).kid if self.keys else ""

    def write(self, texts: list[str]) -> None:
        """Keep these keys, whole or not at all, readable for the owner alone."""
        joined = "".join(text.strip() + "\n" for text in texts)
        if self._file is None:
            joined = json.dumps({**self._secrets, "signing_keys": joined}, indent=2)
        partial = self._place.with_name(self._place.name + ".partial")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            out.write(joined)
        partial.replace(self._place)


def _kid(text: str) -> str:
    return str(json.loads(text)["kid"])


def _now_s() -> int:
    return int(datetime.now(UTC).timestamp())


def _shown(at_s: int) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _coming(shown: object) -> bool:
    return str(shown) > _shown(_now_s())
