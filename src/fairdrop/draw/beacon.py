"""The public randomness that goes into a draw: none, entered by hand, or a round of a drand chain.

A drand chain publishes a random value every few seconds, which nobody can know before. The round
that counts is the first one after the list was published (``fixed_at``): nobody chooses it, and
when the operator could still have changed the list, the value did not exist. The address is that of
the chain, like ``https://api.drand.sh/52db9ba7…``; ``/info`` and ``/public/<round>`` are read
(https://docs.drand.love/dev-guide/developer/http-api/).
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec

from .model import BeaconValue, DrawRecord

if TYPE_CHECKING:
    from datetime import datetime

NONE, MANUAL, WITHOUT = "none", "manual", "without"
TIMEOUT_S = 15.0
"""How long a chain may take after the list was fixed, its own period included."""
_REQUEST_S = 3.0
_POLL_S = 0.3
_LONGEST = 16_384


class Chain(msgspec.Struct, frozen=True):
    """What ``/info`` says: rounds begin at ``genesis_time`` and come every ``period`` seconds."""

    genesis_time: int
    period: int
    hash: str = ""
    public_key: str = ""

    def round_after(self, moment: datetime) -> int:
        """The first round whose value appears after the moment.

        Round 1 appears at the genesis time (drand's own count).
        """
        return max(1, int((moment.timestamp() - self.genesis_time) // self.period) + 2)

    def time_of(self, number: int) -> int:
        """When a round appears, in Unix seconds."""
        return self.genesis_time + (number - 1) * self.period


class Round(msgspec.Struct, frozen=True):
    """What ``/public/<round>`` says; the randomness is the hash of the signature."""

    round: int
    randomness: str
    signature: str = ""


class _Unfit(Exception):
    """The answer is none of a drand chain."""


class Beacons:
    """Reads beacons. Costs nothing until a draw needs one."""

    def __init__(self, *, timeout_s: float = TIMEOUT_S) -> None:
        """``timeout_s`` counts from the moment at which the list was fixed."""
        self._timeout_s = timeout_s

    async def value_for(self, record: DrawRecord) -> BeaconValue | None:
        """The value for a draw whose list is fixed; None while it has to be waited for.

        When a chain does not answer in time, the policy of the sale decides: ``without`` draws with
        no value and publishes why, ``wait`` goes on asking until the chain or the operator answers.
        """
        if record.beacon == NONE:
            return BeaconValue("")
        if record.beacon_value is not None:
            return BeaconValue(record.beacon_value)
        if record.beacon == MANUAL or record.fixed_at is None:
            return None
        left_s = record.fixed_at.timestamp() + self._timeout_s - time.time()
        try:
            # Whoever comes late, after a crash, still asks once.
            async with asyncio.timeout(max(min(_REQUEST_S, self._timeout_s), left_s)):
                return await _of_chain(record.beacon, record.fixed_at)
        except (TimeoutError, aiohttp.ClientError, _Unfit, OSError) as error:
            if record.beacon_failure != WITHOUT:
                return None
            return BeaconValue("", problem=f"{type(error).__name__}: {error}"[:300])


async def _of_chain(address: str, fixed_at: datetime) -> BeaconValue:
    """The value of the round that counts. Runs until the chain gives it; the caller limits it."""
    base = address.rstrip("/")
    timeout = aiohttp.ClientTimeout(total=_REQUEST_S)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        chain = await _patiently(session, f"{base}/info", Chain)
        if chain.period < 1:
            raise _Unfit("the chain has no period")
        number = chain.round_after(fixed_at)
        await asyncio.sleep(max(0.0, chain.time_of(number) - time.time()))
        found = await _patiently(session, f"{base}/public/{number}", Round)
    if found.round != number:
        raise _Unfit(f"round {found.round} came for round {number}")
    proof = {
        "chain": chain.hash,
        "public_key": chain.public_key,
        "genesis_time": chain.genesis_time,
        "period": chain.period,
        "round": number,
        "signature": found.signature,
    }
    if not is_hash_of(found.randomness, found.signature):
        raise _Unfit("the randomness is not the hash of the signature")
    return BeaconValue(found.randomness, proof)


def is_hash_of(randomness: str, signature: str) -> bool:
    """Whether a round's randomness is the hash of its signature, as every drand chain has it."""
    try:
        return hashlib.sha256(bytes.fromhex(signature)).hexdigest() == randomness
    except ValueError:
        return False


async def _patiently(session: aiohttp.ClientSession, url: str, kind: type[Any]) -> Any:
    """The document at the address, asked for until it is there."""
    while True:
        try:
            async with session.get(url, allow_redirects=False) as answer:
                body = b""
                async for piece in answer.content.iter_chunked(_LONGEST):
                    body += piece
                    if len(body) > _LONGEST:
                        raise _Unfit("the answer is too long for one of a drand chain")
                if answer.status == 200:  # noqa: PLR2004 - HTTP's own figure
                    return msgspec.json.decode(body, type=kind)
        except (aiohttp.ClientError, TimeoutError, msgspec.DecodeError):
            pass
        await asyncio.sleep(_POLL_S)
