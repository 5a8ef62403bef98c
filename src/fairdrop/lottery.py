"""The arithmetic of the draw: commitment, Merkle root, draw key, lottery numbers, order (W4).

Pure, and nothing but SHA-256: what is computed here, anybody can compute again from the public
files, with any tool. ``docs/draw-audit.md`` says which bytes are hashed; the frozen test vectors
hold for the code here and for the same arithmetic in the browser.

The root is the Merkle tree hash of RFC 6962, section 2.1, over the entry ids: leaves are hashed
with a zero byte before them and nodes with a one byte, so that no node can pass for a leaf.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Iterator, Sequence

SEED_BYTES = 32
HASH_BYTES = 32
ENTRY_LENGTH = 22
"""Characters of an entry id: 132 random bits in the alphabet of base64url."""

_SEED_CONTEXT = b"fairdrop-draw-v1 seed\n"
_KEY_CONTEXT = "fairdrop-draw-v1 key\n"
_BLOCK_BYTES = 64
_sha256 = hashlib.sha256


def new_seed() -> bytes:
    """A fresh secret seed."""
    return secrets.token_bytes(SEED_BYTES)


def commitment(seed: bytes) -> bytes:
    """What is published of a secret seed: it gives nothing away, and no other seed fits it.

    >>> commitment(bytes(32)).hex()[:16]
    'dd157162f4ce597c'
    """
    return _sha256(_SEED_CONTEXT + seed.hex().encode()).digest()


def merkle_root(entries: Iterable[str]) -> bytes:
    """The root over the entry ids in their order. Costs two hashes an entry, about 0.9 us.

    >>> merkle_root([]) == hashlib.sha256(b"").digest()
    True
    """
    level = [_sha256(b"").digest()]
    for level in _levels(entries):  # noqa: B007 - the last one counts
        pass
    return level[0]


def merkle_levels(entries: Iterable[str]) -> list[bytes]:
    """All hashes of the tree, 32 bytes each: a text of the leaves, of the nodes above them, of the root.

    Costs as much as the root, and 64 bytes an entry to keep.
    """
    return [b"".join(level) for level in _levels(entries)]


def inclusion_path(levels: Sequence[bytes], index: int) -> list[bytes]:
    """The hashes beside the way from an entry, counted from 0, up to the root (RFC 6962, 2.1.1).

    About log2 of the entries: 20 for a million.
    """
    path = []
    for level in levels[:-1]:
        beside = HASH_BYTES * (index ^ 1)
        if beside < len(level):
            path.append(level[beside : beside + HASH_BYTES])
        index >>= 1
    return path


def root_of_path(entry: str, index: int, size: int, path: Sequence[bytes]) -> bytes | None:
    """The root that the path leads to from this entry; None when it has not the length it must have.

    The check of RFC 9162, section 2.1.3.2: nobody can make a path to a root for an entry that is not
    in its list.

    >>> leaf = merkle_root(["a"])
    >>> root_of_path("b", 1, 2, [leaf]) == merkle_root(["a", "b"])
    True
    """
    if not 0 <= index < size:
        return None
    found, last, rest = _sha256(b"\0" + entry.encode()).digest(), size - 1, list(path)
    while last > 0:
        if index ^ 1 <= last:
            if not rest:
                return None
            beside = rest.pop(0)
            found = _sha256(b"\1" + (beside + found if index & 1 else found + beside)).digest()
        index, last = index >> 1, last >> 1
    return None if rest else found


def _levels(entries: Iterable[str]) -> Iterator[list[bytes]]:
    """The hashes of the tree from the leaves up; nothing for no entries."""
    sha256 = _sha256
    level = [sha256(b"\0" + entry.encode()).digest() for entry in entries]
    while level:
        yield level
        if len(level) == 1:
            return
        # A node without a neighbour moves up as it is: just how RFC 6962 splits lists that are no
        # power of two.
        alone = level[-1:] if len(level) % 2 else []
        pairs = iter(level)
        level = [
            sha256(b"\1" + left + right).digest() for left, right in zip(pairs, pairs, strict=False)
        ]
        level += alone


def draw_key(seed: bytes, sale: str, root: bytes, beacon: str = "") -> bytes:
    """The key of the draw: nobody can know it before the seed, the list and the beacon are all fixed."""
    message = f"{_KEY_CONTEXT}{sale}\n{root.hex()}\n{beacon}"
    return hmac.digest(seed, message.encode(), "sha256")


def number(key: bytes, entry: str) -> bytes:
    """The lottery number of an entry: HMAC-SHA256(draw key, entry id)."""
    return hmac.digest(key, entry.encode(), "sha256")


def numbers(key: bytes, entries: Iterable[str]) -> list[bytes]:
    """The lottery numbers of many entries, about 0.8 us each.

    The two halves of HMAC (RFC 2104) begin with a block that depends on the key alone: both are
    hashed once and copied, which takes half the time of a call of :func:`number` for each.
    """
    block = key.ljust(_BLOCK_BYTES, b"\0")
    begin_inner = _sha256(bytes(byte ^ 0x36 for byte in block)).copy
    begin_outer = _sha256(bytes(byte ^ 0x5C for byte in block)).copy
    found = []
    for entry in entries:
        inner, outer = begin_inner(), begin_outer()
        inner.update(entry.encode())
        outer.update(inner.digest())
        found.append(outer.digest())
    return found


def order_in_parts(drawn: Sequence[bytes]) -> Iterator[list[int]]:
    """Indexes of the lottery numbers, the lowest number first, in up to 256 parts.

    Numbers are even over their first byte: a part for each value of it is sorted when it is asked
    for, so that the first people are known long before the last ones are sorted.
    """
    parts: list[list[int]] = [[] for _ in range(256)]
    for index, found in enumerate(drawn):
        parts[found[0]].append(index)
    for part in parts:
        part.sort(key=drawn.__getitem__)
        if part:
            yield part


def order(drawn: Sequence[bytes]) -> list[int]:
    """All of it: indexes of the lottery numbers, the lowest number first."""
    return [index for part in order_in_parts(drawn) for index in part]
