"""``fairdrop verify-draw``: check a draw from its public files, with no word of the shop's believed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn
from urllib.parse import urlsplit

import typer

from fairdrop.errors import FairdropError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairdrop.draw import PublicFiles, Verdict

TIMEOUT_S = 300.0
_OK, _NOT_FOUND = 200, 404


class FilesMissing(FairdropError):
    """The public files are not where they should be."""


def verify_draw(
    where: Annotated[
        str,
        typer.Argument(
            metavar="DIR_OR_URL",
            help="A directory with draw.json, entries.txt and order.txt, or the address of the draw,"
            " like https://shop.example/v1/sales/midnight-drop/draw.",
        ),
    ],
    receipt: Annotated[
        Path | None,
        typer.Option(help="Your receipt or signed proof, as a file.", exists=True, dir_okay=False),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(help="Write the files into this directory, to keep or to check elsewhere."),
    ] = None,
    short: Annotated[
        bool,
        typer.Option(
            "--short",
            help="Check the entry of your receipt alone, by its short proof: no list is fetched."
            " Needs an address.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check a draw: commitment, list, root, beacon, numbers, order, and your own place.

    Everything is computed again from the public files alone. The exit status is 1 when anything is
    not as it must be, and each fault has a message of its own.
    """
    from fairdrop.draw import verify

    if short:
        if receipt is None or save is not None or "://" not in where:
            raise typer.BadParameter("--short takes an address and --receipt, and saves nothing")
        verdict = check_entry(where, _receipt_text(receipt))
        _tell(verdict, as_json=as_json)
    files = fetch(where) if "://" in where else read(Path(where))
    if save is not None:
        write(save, files)
    verdict = verify(files, _receipt_text(receipt) if receipt is not None else None)
    _tell(verdict, as_json=as_json)


def check_entry(address: str, receipt: str) -> Verdict:
    """The verdict on one entry, by ``draw.json`` and its short proof. Raises FilesMissing."""
    from fairdrop.draw import PARAMETERS_FILE, claimed_entry, verify_entry

    base = _base(address)
    (parameters,) = asyncio.run(_fetch(base, [PARAMETERS_FILE]))
    if parameters is None:
        raise FilesMissing(f"there is no draw at {base}")
    entry = claimed_entry(parameters, receipt)
    (inclusion,) = (None,) if entry is None else asyncio.run(_fetch(base, [f"entries/{entry}"]))
    return verify_entry(parameters, inclusion, receipt)


def _tell(verdict: Verdict, *, as_json: bool) -> NoReturn:
    if as_json:
        typer.echo(json.dumps(_document(verdict), indent=2))
    else:
        _print(verdict)
    raise typer.Exit(1 if verdict.findings else 0)


def read(directory: Path) -> PublicFiles:
    """The files of a directory. Raises FilesMissing."""
    from fairdrop.draw import ENTRIES_FILE, ORDER_FILE, PARAMETERS_FILE, PublicFiles

    try:
        order = directory / ORDER_FILE
        return PublicFiles(
            (directory / PARAMETERS_FILE).read_bytes(),
            (directory / ENTRIES_FILE).read_bytes(),
            order.read_bytes() if order.exists() else None,
        )
    except OSError as error:
        raise FilesMissing(f"{error.filename or directory}: {error.strerror}") from None


def fetch(address: str) -> PublicFiles:
    """The files at an address. Raises FilesMissing."""
    from fairdrop.draw import ENTRIES_FILE, ORDER_FILE, PARAMETERS_FILE, PublicFiles

    base = _base(address)
    names = [PARAMETERS_FILE, ENTRIES_FILE, ORDER_FILE]
    parameters, entries, order = asyncio.run(_fetch(base, names))
    if parameters is None:
        raise FilesMissing(f"there is no draw at {base}")
    return PublicFiles(parameters, entries or b"", order)


def _base(address: str) -> str:
    if urlsplit(address).scheme not in {"http", "https"}:
        raise FilesMissing(f"{address} is neither a directory nor an http(s) address")
    return address.rstrip("/").removesuffix("/draw.json")


async def _fetch(base: str, names: Sequence[str]) -> list[bytes | None]:
    """Each of the files; None for one that is not there."""
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S, sock_connect=10)
    found: list[bytes | None] = []
    async with aiohttp.ClientSession(timeout=timeout) as session:
        for name in names:
            try:
                async with session.get(f"{base}/{name}") as answer:
                    body = await answer.read()
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
                raise FilesMissing(f"{base} cannot be read: {error}") from None
            if answer.status not in {_OK, _NOT_FOUND}:
                raise FilesMissing(f"{base}/{name} answered {answer.status}")
            found.append(body if answer.status == _OK else None)
    return found


def write(directory: Path, files: PublicFiles) -> None:
    """Write the files as they are published: a directory that any web server can serve."""
    from fairdrop.draw import ENTRIES_FILE, ORDER_FILE, PARAMETERS_FILE

    directory.mkdir(parents=True, exist_ok=True)
    (directory / PARAMETERS_FILE).write_bytes(files.parameters)
    (directory / ENTRIES_FILE).write_bytes(files.entries)
    if files.order is not None:
        (directory / ORDER_FILE).write_bytes(files.order)


def _receipt_text(path: Path) -> str:
    """The receipt in a file: its text, or JSON that has a ``proof`` or a ``receipt``."""
    text = path.read_text("utf-8", "replace").strip()
    if text.startswith("{"):
        try:
            members = json.loads(text)
        except ValueError:
            return text
        return str(members.get("proof") or members.get("receipt") or "")
    return text


def _document(verdict: Verdict) -> dict[str, object]:
    return {
        "right": not verdict.findings,
        "entries": verdict.entries,
        "faults": [
            {"fault": finding.fault.value, "message": finding.message}
            for finding in verdict.findings
        ],
        "notes": list(verdict.notes),
        "entry": verdict.entry,
        "number": verdict.number,
        "place": verdict.place,
    }


def _print(verdict: Verdict) -> None:
    for finding in verdict.findings:
        typer.echo(f"{finding.fault.value.upper()}: {finding.message}")
    for note in verdict.notes:
        typer.echo(f"Note: {note}")
    if not verdict.findings and verdict.number is not None and verdict.place is None:
        typer.echo(
            f"Your entry {verdict.entry} is in the list of {verdict.entries:,} that was drawn from. Its"
            f" number is\n{verdict.number}."
        )
    elif not verdict.findings:
        typer.echo(
            f"The draw is right: commitment, list, root, numbers and order of {verdict.entries:,}"
            " entries agree."
        )
    if verdict.place is not None:
        typer.echo(
            f"Your entry {verdict.entry} has place {verdict.place:,}, with the number\n"
            f"{verdict.number}."
        )
