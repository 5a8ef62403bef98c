"""A right draw as public files, and each way in which somebody could tamper with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from fairdrop import lottery
from fairdrop.draw import EntryProofs, Fault, PublicFiles
from fairdrop.ids import new_secret_id
from fairdrop.waiting_room import EntryReceipt, new_signing_key, read_keys

SALE = "0196f0aa-0000-7000-8000-00000000cafe"
Files = dict[str, Any]


@cache
def proofs() -> EntryProofs:
    return EntryProofs(read_keys([new_signing_key()]))


def right(people: int = 9, beacon: str = "lotto 7 12 31") -> Files:
    """The files, taken apart: parameters, entries, order as (number, entry)."""
    seed = bytes(range(32))
    entries = [new_secret_id() for _ in range(people)]
    root = lottery.merkle_root(entries)
    drawn = lottery.numbers(lottery.draw_key(seed, SALE, root, beacon), entries)
    order = [(drawn[index].hex(), entries[index]) for index in lottery.order(drawn)]
    parameters = {
        "format": "fairdrop-draw-v1",
        "state": "filled",
        "sale": {"id": SALE, "slug": "drop", "name": "Drop"},
        "commitment": lottery.commitment(seed).hex(),
        "entries": people,
        "root": root.hex(),
        "beacon": {"source": "manual" if beacon else "none", "value": beacon},
        "seed": seed.hex(),
        "keys": proofs().public_keys(),
    }
    return {"parameters": parameters, "entries": entries, "order": order}


def packed(files: Files) -> PublicFiles:
    return PublicFiles(
        json.dumps(files["parameters"]).encode(),
        "".join(f"{entry}\n" for entry in files["entries"]).encode(),
        "".join(f"{number} {entry}\n" for number, entry in files["order"]).encode(),
    )


def inclusion_of(files: Files, entry: str) -> dict[str, Any]:
    """The short proof of an entry of the list, as the server gives it."""
    levels = lottery.merkle_levels(files["entries"])
    index = files["entries"].index(entry)
    return {
        "sale": SALE,
        "entry": entry,
        "index": index,
        "entries": len(files["entries"]),
        "root": levels[-1].hex(),
        "path": [each.hex() for each in lottery.inclusion_path(levels, index)],
    }


def short_cases() -> list[tuple[Fault | None, bytes, bytes | None, str]]:
    """What has to be said → draw.json, the short proof, the receipt."""
    files, other = right(), right()
    mine, next_one = files["entries"][4], files["entries"][5]
    receipt, proof = proof_of(files, mine), inclusion_of(files, mine)
    own = json.dumps(files["parameters"]).encode()

    def changed(name: str) -> bytes:
        members = files["parameters"]
        return json.dumps({**members, name: flipped(members[name])}).encode()

    def short(**more: Any) -> bytes:
        return json.dumps({**proof, **more}).encode()

    return [
        (None, own, short(), receipt),
        (None, own, short(root="ff" * 32, entries=3, entry=next_one), receipt),  # not believed
        (Fault.RECEIPT, own, None, receipt),
        (Fault.RECEIPT, own, short(), proof_of(files, mine, sale="another")),
        (Fault.RECEIPT, own, short(), "hello"),
        (Fault.LIST, own, json.dumps(inclusion_of(files, next_one)).encode(), receipt),
        (Fault.LIST, own, short(), proof_of(files, next_one)),
        (Fault.LIST, own, short(path=proof["path"][:-1]), receipt),
        (Fault.LIST, own, short(path=[flipped(proof["path"][0]), *proof["path"][1:]]), receipt),
        (Fault.LIST, own, short(index=5), receipt),
        (Fault.LIST, own, short(index=10_000), receipt),
        (Fault.LIST, own, json.dumps(inclusion_of(other, other["entries"][4])).encode(), receipt),
        (Fault.LIST, changed("root"), short(), receipt),
        (Fault.SEED, changed("seed"), short(), receipt),
        (Fault.COMMITMENT, changed("commitment"), short(), receipt),
        (Fault.FILES, own, b"{}", receipt),
        (Fault.FILES, own, short(path=["hello"]), receipt),
        (Fault.FILES, b"{}", short(), receipt),
    ]


def proof_of(files: Files, entry: str, **other: str) -> str:
    receipt = EntryReceipt(other.get("sale", SALE), "me", 1, entry)
    commitment = other.get("commitment", files["parameters"]["commitment"])
    text = proofs().issue(receipt, commitment)
    assert text is not None
    return text


def flipped(text: str) -> str:
    """The text with its first character changed to another hexadecimal digit."""
    return ("0" if text[0] != "0" else "1") + text[1:]


def _parameter(name: str) -> Callable[[Files], None]:
    def tamper(files: Files) -> None:
        files["parameters"][name] = flipped(files["parameters"][name])

    return tamper


def _beacon(files: Files) -> None:
    files["parameters"]["beacon"]["value"] = "lotto 1 2 3"


def _number(files: Files) -> None:
    number, entry = files["order"][4]
    files["order"][4] = (flipped(number), entry)


def _swap(files: Files) -> None:
    files["order"][2], files["order"][3] = files["order"][3], files["order"][2]


def _left_out(files: Files) -> None:
    del files["order"][2]


def _entry_changed(files: Files) -> None:
    files["entries"][3] = new_secret_id()


def _entry_removed(files: Files) -> None:
    del files["entries"][3]


def _entry_added(files: Files) -> None:
    files["entries"].append(new_secret_id())


def _entry_moved(files: Files) -> None:
    files["entries"].append(files["entries"].pop(0))


def _entry_twice(files: Files) -> None:
    files["entries"].append(files["entries"][0])


def _unrevealed(files: Files) -> None:
    files["parameters"]["seed"] = None


def _other_format(files: Files) -> None:
    files["parameters"]["format"] = "something else"


TAMPERINGS: dict[str, tuple[Fault, Callable[[Files], None]]] = {
    "entry changed": (Fault.LIST, _entry_changed),
    "entry removed": (Fault.LIST, _entry_removed),
    "entry added": (Fault.LIST, _entry_added),
    "entry moved": (Fault.LIST, _entry_moved),
    "entry twice": (Fault.LIST, _entry_twice),
    "root": (Fault.ROOT, _parameter("root")),
    "seed": (Fault.SEED, _parameter("seed")),
    "commitment": (Fault.COMMITMENT, _parameter("commitment")),
    "beacon": (Fault.BEACON, _beacon),
    "number": (Fault.NUMBER, _number),
    "two places swapped": (Fault.ORDER, _swap),
    "left out of the order": (Fault.ORDER, _left_out),
    "not revealed": (Fault.FILES, _unrevealed),
    "another format": (Fault.FILES, _other_format),
}
"""What was done → what has to be said."""
