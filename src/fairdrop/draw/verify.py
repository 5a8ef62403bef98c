"""Checking a draw from its public files alone, and telling what was tampered with (W4).

Each check computes a value again and compares. When two published values contradict each other, a
third decides which of them was changed: a seed that does not fit its commitment, but gives just the
numbers that were published, is the seed that was drawn with, so it is the commitment that is wrong.
"""

from __future__ import annotations

import hashlib
import re
from base64 import urlsafe_b64decode
from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from fairdrop import lottery

from .model import Inclusion
from .proofs import read_proof
from .publication import FORMAT

_RECEIPT = "fdr1."
_ENTRY = re.compile(r"[A-Za-z0-9_-]{22}")
_ONLY_ONE = (
    "Only this entry was checked: its place, the others and their number take the whole list."
)


class Fault(StrEnum):
    """What is wrong; each has a message of its own, and any of them makes the exit status 1."""

    FILES = "files"
    LIST = "list"
    ROOT = "root"
    SEED = "seed"
    COMMITMENT = "commitment"
    BEACON = "beacon"
    NUMBER = "number"
    ORDER = "order"
    RECEIPT = "receipt"


class Finding(NamedTuple):
    """One fault, in words."""

    fault: Fault
    message: str


class PublicFiles(NamedTuple):
    """The files as they were published; ``order`` is None when it is not published yet."""

    parameters: bytes
    entries: bytes
    order: bytes | None


class Verdict(NamedTuple):
    """What a check found. The draw is right when there are no findings."""

    findings: list[Finding]
    entries: int = 0
    notes: Sequence[str] = ()
    """What a reader should know although nothing is wrong."""
    entry: str | None = None
    """The entry of the receipt, when there is one."""
    number: str | None = None
    place: int | None = None


class Claims(msgspec.Struct, frozen=True):
    """What ``draw.json`` claims, as far as it is checked."""

    format: str
    sale: dict[str, Any]
    commitment: str
    entries: int | None
    root: str | None
    seed: str | None
    beacon: dict[str, Any]
    keys: list[dict[str, Any]] = []

    @property
    def beacon_value(self) -> str:
        """What went into the key."""
        return str(self.beacon.get("value") or "")

    def key(self, root: bytes) -> bytes:
        """The draw key with this root."""
        return lottery.draw_key(
            bytes.fromhex(self.seed or ""), str(self.sale["id"]), root, self.beacon_value
        )


class _Drawn(NamedTuple):
    entries: list[str]
    numbers: list[bytes]
    root: bytes


def verify(files: PublicFiles, receipt: str | None = None) -> Verdict:
    """Check everything that the files claim. Costs about 5 us an entry.

    ``receipt`` is the text of a receipt (``fdr1.…``) or of a proof (a JWT).
    """
    claims = _claims(files.parameters)
    if isinstance(claims, Finding):
        return Verdict([claims])
    entries = files.entries.decode("ascii", "replace").split("\n")
    if entries.pop() != "":
        return Verdict([Finding(Fault.LIST, "entries.txt does not end with a line break.")])
    root = lottery.merkle_root(entries)
    published = bytes.fromhex(claims.root or "")
    order = None if files.order is None else _lines(files.order)
    shown = {entry: number for number, entry in order or ()}
    findings = _list_or_root(claims, entries, root, shown)
    findings += _seed_or_commitment(claims, {published, root}, shown)
    # With a wrong list the numbers are still judged by the root that was published with them.
    drawn = _Drawn(entries, lottery.numbers(claims.key(published), entries), published)
    findings += _beacon(claims)
    if order is not None and not findings:
        findings += _numbers(claims, drawn, order)
    notes = _notes(claims, has_order=order is not None)
    if receipt is None:
        return Verdict(findings, len(entries), notes)
    return _with_receipt(Verdict(findings, len(entries), notes), claims, drawn, receipt.strip())


def claimed_entry(parameters: bytes, receipt: str) -> str | None:
    """The entry that a receipt names, for asking for its short proof; None when it names none."""
    claims = _claims(parameters)
    said = claims if isinstance(claims, Finding) else _entry_of(receipt.strip(), claims)
    return None if isinstance(said, Finding) or not _ENTRY.fullmatch(said[0]) else said[0]


def verify_entry(parameters: bytes, inclusion: bytes | None, receipt: str) -> Verdict:
    """Check one entry alone, by ``draw.json`` and its short proof; None: the list has no such entry.

    A few dozen hashes, however long the list is.
    """
    claims = _claims(parameters)
    if isinstance(claims, Finding):
        return Verdict([claims])
    said = _entry_of(receipt.strip(), claims)
    if isinstance(said, Finding):
        return Verdict([said], claims.entries or 0)
    entry, notes = said
    root = bytes.fromhex(claims.root or "")
    findings = _seed_or_commitment(claims, {root}, {}) + _beacon(claims)
    if inclusion is None:
        findings.append(_left_out(entry))
    else:
        findings += _path(claims, entry, root, inclusion)
    number = lottery.number(claims.key(root), entry).hex()
    notes = [*_notes(claims, has_order=True), *notes, _ONLY_ONE]
    return Verdict(findings, claims.entries or 0, notes, entry, number)


def _path(claims: Claims, entry: str, root: bytes, inclusion: bytes) -> list[Finding]:
    try:
        shown = msgspec.json.decode(inclusion, type=Inclusion)
        path = [bytes.fromhex(each) for each in shown.path]
    except (msgspec.DecodeError, ValueError, UnicodeDecodeError):
        return [Finding(Fault.FILES, "The short proof of the entry cannot be read.")]
    # The receipt says which entry, and draw.json how many there are: only the way is believed.
    if lottery.root_of_path(entry, shown.index, claims.entries or 0, path) == root:
        return []
    return [
        Finding(
            Fault.LIST,
            f"The short proof does not lead from the entry {entry} to the published root: the entry"
            " is not in the list that the root was made of.",
        )
    ]


def _left_out(entry: str) -> Finding:
    return Finding(
        Fault.RECEIPT,
        f"The receipt's entry {entry} is not in the list: whoever holds this receipt was left out.",
    )


def _claims(parameters: bytes) -> Claims | Finding:
    try:
        claims = msgspec.json.decode(parameters, type=Claims)
        for name in ("commitment", "root", "seed"):
            text = getattr(claims, name)
            if text is not None and len(bytes.fromhex(text)) != lottery.SEED_BYTES:
                raise ValueError(f"{name} has not {lottery.SEED_BYTES} bytes")
    except (msgspec.DecodeError, ValueError, UnicodeDecodeError) as error:
        return Finding(Fault.FILES, f"draw.json cannot be read: {error}.")
    if claims.format != FORMAT or "id" not in claims.sale:
        return Finding(Fault.FILES, f"draw.json is not of the form {FORMAT}.")
    if claims.seed is None or claims.root is None:
        return Finding(
            Fault.FILES, "The draw is not over: its seed is not published yet. Try again later."
        )
    return claims


def _lines(order: bytes) -> list[tuple[str, str]]:
    """(number, entry) a line; whatever is no such line has an empty number."""
    found = []
    for line in order.decode("ascii", "replace").removesuffix("\n").split("\n"):
        number, _, entry = line.partition(" ")
        found.append((number, entry) if entry else ("", line))
    return found


def _list_or_root(
    claims: Claims, entries: list[str], root: bytes, shown: dict[str, str]
) -> list[Finding]:
    if len(set(entries)) != len(entries):
        return [Finding(Fault.LIST, "An entry is in the list twice: somebody has two chances.")]
    if root.hex() == claims.root and claims.entries == len(entries):
        return []
    if _fits(claims, root, shown):
        return [
            Finding(
                Fault.ROOT,
                "The published root is not that of the list, although the numbers were drawn with"
                " the list's own root: the root was changed afterwards.",
            )
        ]
    return [
        Finding(
            Fault.LIST,
            "The list of entries does not give the published root: entries were added, removed,"
            " changed or moved after the list was closed.",
        )
    ]


def _seed_or_commitment(claims: Claims, roots: set[bytes], shown: dict[str, str]) -> list[Finding]:
    if lottery.commitment(bytes.fromhex(claims.seed or "")).hex() == claims.commitment:
        return []
    if any(_fits(claims, root, shown) for root in roots):
        return [
            Finding(
                Fault.COMMITMENT,
                "The seed that was drawn with does not fit the commitment: either the commitment was"
                " changed, or the operator drew with another seed than the one promised.",
            )
        ]
    either = ", and does not give the published numbers either" if shown else ""
    return [
        Finding(
            Fault.SEED,
            f"The published seed does not fit the commitment{either}: the seed was changed.",
        )
    ]


def _fits(claims: Claims, root: bytes, shown: dict[str, str]) -> bool:
    """Whether the seed, with this root, gives the numbers that were published (all but a few)."""
    if not shown:
        return False
    key = claims.key(root)
    some = list(shown.items())[:64]
    right = sum(lottery.number(key, entry).hex() == number for entry, number in some)
    return 2 * right > len(some)


def _beacon(claims: Claims) -> list[Finding]:
    proof = claims.beacon.get("proof")
    if not isinstance(proof, dict):
        return []
    try:
        signature = bytes.fromhex(str(proof.get("signature")))
    except ValueError:
        signature = b""
    if hashlib.sha256(signature).hexdigest() == claims.beacon_value:
        return []
    return [
        Finding(
            Fault.BEACON,
            "The beacon's value is not the hash of its signature: the value was changed, or never"
            " came from the beacon.",
        )
    ]


def _numbers(claims: Claims, drawn: _Drawn, order: list[tuple[str, str]]) -> list[Finding]:
    expected = dict(zip(drawn.entries, drawn.numbers, strict=True))
    if sorted(entry for _, entry in order) != sorted(drawn.entries):
        return [
            Finding(
                Fault.ORDER,
                "order.txt does not have each entry of the list exactly once: somebody was left out,"
                " put in, or has two places.",
            )
        ]
    wrong = [
        place
        for place, (number, entry) in enumerate(order, start=1)
        if expected[entry].hex() != number
    ]
    if len(wrong) == len(order) and claims.beacon_value:
        return [
            Finding(
                Fault.BEACON,
                "No number follows from the seed, the root and the beacon's value, although seed and"
                " root are right: the beacon's value was changed.",
            )
        ]
    if wrong:
        return [
            Finding(
                Fault.NUMBER,
                f"{len(wrong)} lottery number(s) are not what the draw key gives; the first is in"
                f" place {wrong[0]}, of entry {order[wrong[0] - 1][1]}.",
            )
        ]
    for place, (here, after) in enumerate(pairwise(order), start=1):
        if here[0] > after[0]:
            return [
                Finding(
                    Fault.ORDER,
                    f"The numbers are right, but not in order: place {place + 1} has a lower number"
                    f" than place {place}.",
                )
            ]
    return []


def _notes(claims: Claims, *, has_order: bool) -> list[str]:
    notes = []
    if not has_order:
        notes.append("order.txt is not published yet; the order was computed, not compared.")
    if problem := claims.beacon.get("problem"):
        notes.append(f"The beacon did not answer, and the draw was held without it: {problem}")
    if claims.beacon.get("source") == "none":
        notes.append("The draw uses no public beacon: its chance comes from the seed and the list.")
    return notes


def _with_receipt(verdict: Verdict, claims: Claims, drawn: _Drawn, receipt: str) -> Verdict:
    said = _entry_of(receipt, claims)
    if isinstance(said, Finding):
        return verdict._replace(findings=[*verdict.findings, said])
    entry, notes = said
    if entry not in set(drawn.entries):
        return verdict._replace(findings=[*verdict.findings, _left_out(entry)], entry=entry)
    number = lottery.number(claims.key(drawn.root), entry)
    place = 1 + sum(other < number for other in drawn.numbers)
    return verdict._replace(
        entry=entry, number=number.hex(), place=place, notes=[*verdict.notes, *notes]
    )


def _entry_of(receipt: str, claims: Claims) -> tuple[str, list[str]] | Finding:
    """The entry that the receipt names, and what to know about it; or what is wrong with it."""
    if receipt.startswith(_RECEIPT):
        try:
            payload = receipt[len(_RECEIPT) :].partition(".")[0]
            packed = urlsafe_b64decode(payload + "=" * (-len(payload) % 4))
            sale, _, _, kind, entry = msgspec.msgpack.decode(
                packed, type=tuple[str, str, int, str, str | int]
            )
        except (ValueError, msgspec.DecodeError):
            return Finding(Fault.RECEIPT, "This is no receipt: it cannot be read.")
        if kind != "e":
            return Finding(Fault.RECEIPT, "The receipt is one of the line, not of the lobby.")
        if sale != claims.sale["id"]:
            return Finding(Fault.RECEIPT, "The receipt is of another sale.")
        note = "Only the shop can check this receipt's seal; ask it for a signed proof."
        return str(entry), [note]
    proof = read_proof(receipt, claims.keys)
    if proof is None:
        return Finding(
            Fault.RECEIPT, "The receipt's signature is not by any of the published keys: forged."
        )
    if proof.sale != claims.sale["id"]:
        return Finding(Fault.RECEIPT, "The receipt is of another sale.")
    if proof.commitment != claims.commitment:
        return Finding(
            Fault.COMMITMENT,
            "The signed receipt names another commitment than the draw: the commitment was changed"
            " after the receipt was given.",
        )
    return proof.entry, []
