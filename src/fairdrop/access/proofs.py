"""Proofs of work: a browser computes for some tenths of a second, a bot farm computes for its money (W18).

The challenge is ALTCHA's (altcha.org, version 1): find the number whose SHA-256 together with the salt
is the one given. It is made and checked by the official library. The salt, which the signature
covers, says for which sale and which step it is and when it expires, so nothing is stored until a
right solution comes; that one is spent in the store, once.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qs

import msgspec
from altcha.v1 import create_challenge, verify_solution

from fairdrop.drivers.sale_scripts import CoalescedScript, SaleScript
from fairdrop.ids import new_id

if TYPE_CHECKING:
    from fairdrop.drivers.store import Store
    from fairdrop.ids import SaleRef

SOLUTION_LIMIT = 2_000
"""Characters of a solution; a real one has some 400."""


class Proof(StrEnum):
    """What a solution is worth."""

    GOOD = "good"
    MISSING = "missing"
    WRONG = "wrong"
    EXPIRED = "expired"
    ELSEWHERE = "elsewhere"
    USED = "used"


class SpendOutcome(StrEnum):
    """Whether something that counts once was used before."""

    FRESH = "FRESH"
    SPENT = "SPENT"


class Spent(msgspec.Struct, array_like=True, frozen=True):
    """The reply of ``spend``."""

    status: str
    outcomes: list[SpendOutcome]


class _Solution(msgspec.Struct, frozen=True):
    algorithm: Literal["SHA-256"]
    challenge: str
    number: int
    salt: str
    signature: str


_DECODER = msgspec.json.Decoder(_Solution)


class Proofs:
    """Makes challenges and checks solutions, for any sale."""

    def __init__(self, store: Store, key: bytes, *, max_number: int, ttl_s: int) -> None:
        """``max_number`` is the most hashes that a challenge takes; half of them on average."""
        self._key = hmac.digest(key, b"fairdrop proof of work", hashlib.sha256)
        self._max_number = max_number
        self._ttl_s = ttl_s
        self._spend: CoalescedScript[tuple[str, int, str], SpendOutcome] = CoalescedScript(
            SaleScript(store, "fairdrop.access", "spend", Spent), lambda spent: spent.outcomes
        )

    def challenge(self, sale: SaleRef, step: str, now_s: float | None = None) -> dict[str, Any]:
        """A fresh challenge, in the form that ALTCHA's own widget takes too. Costs two hashes."""
        expires_s = (time.time() if now_s is None else now_s) + self._ttl_s
        made = create_challenge(
            algorithm="SHA-256",
            max_number=self._max_number,
            salt_length=12,
            hmac_key=self._key,
            salt="",
            number=None,
            expires=datetime.fromtimestamp(expires_s, UTC),
            params={"sale": sale.id, "step": step},
        )
        return {
            "algorithm": made.algorithm,
            "challenge": made.challenge,
            "maxnumber": made.max_number,
            "salt": made.salt,
            "signature": made.signature,
        }

    async def check(
        self, sale: SaleRef, step: str, solution: str, now_s: float | None = None
    ) -> Proof:
        """What the solution (base64 of JSON) is worth for this step of this sale; uses it up.

        Costs two hashes, and a coalesced call for a right one. Raises StoreUnavailable.
        """
        if not solution:
            return Proof.MISSING
        now = time.time() if now_s is None else now_s
        found = _read(solution)
        if found is None:
            return Proof.WRONG
        payload: Any = msgspec.to_builtins(found)
        good, _ = verify_solution(payload, self._key, check_expires=False)
        if not good:
            return Proof.WRONG
        # The signature covers the salt: what it says is what we wrote.
        said = parse_qs(found.salt.partition("?")[2])
        if said.get("sale") != [sale.id] or said.get("step") != [step]:
            return Proof.ELSEWHERE
        left_s = int(said["expires"][0]) - now
        if left_s <= 0:
            return Proof.EXPIRED
        outcome = await self._spend.submit(
            sale, (found.signature[:32], int(left_s * 1_000) + 1, new_id())
        )
        return Proof.GOOD if outcome is SpendOutcome.FRESH else Proof.USED


def _read(solution: str) -> _Solution | None:
    if len(solution) > SOLUTION_LIMIT:
        return None
    try:
        return _DECODER.decode(base64.b64decode(solution, validate=True))
    except (binascii.Error, msgspec.DecodeError, ValueError):
        return None
