"""Rate limits: token buckets in the process, made one limit for all servers beside the requests (W18).

A request meets a bucket in its own process: one look-up and some arithmetic, no call. Once a second,
a process that has counted anything sends its counts to the store and takes what the others counted
out of its own buckets. So the hot path pays nothing for the sharing, and what it costs is
sharpness: for the length of that second, each of N processes may let a client take its burst.

A bucket is one number, the time at which it would be full again (the virtual scheduling of the
generic cell rate algorithm, ITU-T I.371): a request moves it on by one interval, and is refused when
that leads more than the burst ahead of the clock. What others counted moves it on likewise.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec
import structlog

from fairdrop.drivers.sale_scripts import SaleScript
from fairdrop.errors import StoreUnavailable
from fairdrop.ids import SaleRef
from fairdrop.memory import make_room

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairdrop.drivers.store import Store

SHARE_EVERY_S = 1.0
SHARED_AT_ONCE = 500
"""Keys in one run of the script: about 0.3 ms of the store's time."""
SELDOM = 8
"""A key is shared when one process has met it for an eighth of what it may do in a second."""
SHARED_MOST = 5_000
"""Keys that one process shares in one go: the busiest."""
_REMEMBERED = 200_000
_ROUNDING_S = 1e-9
_SITE = SaleRef("site", 0)
"""Limits are of the installation, not of a sale: its keys have a tag of their own."""

_log = structlog.get_logger(__name__)


class Policy(NamedTuple):
    """A limit: so many a second in the long run, and ``burst`` at one moment; rate 0 is no limit."""

    name: str
    rate_per_s: float
    burst: int


class Exceeded(NamedTuple):
    """A request too much, and in how many seconds the next one is welcome."""

    policy: Policy
    retry_after_s: int


class Bucket(Protocol):
    """The bucket of a key that somebody else keeps; 0.0 to begin with."""

    key: str
    full_at: float


class Counted(msgspec.Struct, array_like=True, frozen=True):
    """The reply of ``rates``."""

    status: str
    period: int
    totals: list[int]


class _Buckets:
    """The buckets of one policy: when each is full again, and who was met since the last sharing."""

    __slots__ = ("full_at", "interval_s", "met", "policy", "span_s")

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.interval_s = 1 / policy.rate_per_s if policy.rate_per_s > 0 else 0.0
        self.span_s = policy.burst * self.interval_s
        self.full_at: dict[str, float] = {}
        self.met: list[str] = []
        """A key for each time it was met: to count them is left to the sharing, once for all."""

    def remember(self, key: str, then: float, clock: Callable[[], float]) -> None:
        """The bucket of the key is full again then; the clock is asked when room has to be made."""
        if len(self.full_at) >= _REMEMBERED:
            self.forget(clock())
        self.full_at[key] = then

    def forget(self, now: float) -> None:
        """Drop the buckets that are full again; all of them when hardly any is."""
        kept = {key: then for key, then in self.full_at.items() if then > now}
        self.full_at.clear()
        if len(kept) < _REMEMBERED // 2:
            self.full_at.update(kept)


class Limits:
    """The buckets of one process, a set for each policy."""

    def __init__(
        self, store: Store, *policies: Policy, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Take the policies; nothing is sent before something is counted. ``clock`` gives seconds."""
        self._clock = clock
        self._script = SaleScript(store, "fairdrop.access", "rates", Counted)
        self._buckets = {policy.name: _Buckets(policy) for policy in policies}
        self._seen: dict[tuple[str, str], tuple[int, int]] = {}
        self._share_at = 0.0
        self._sharing: asyncio.Task[None] | None = None

    def take(self, name: str, key: str) -> Exceeded | None:
        """Count one of ``key``; Exceeded, and nothing counted, when its bucket is empty."""
        buckets = self._buckets[name]
        if not buckets.interval_s:
            return None
        then = self._after_one(buckets, key, buckets.full_at.get(key, 0.0))
        if isinstance(then, Exceeded):
            return then
        buckets.remember(key, then, self._clock)
        return None

    def take_from(self, name: str, bucket: Bucket) -> Exceeded | None:
        """The same for a caller who keeps the bucket, and so spares a look-up."""
        buckets = self._buckets[name]
        if not buckets.interval_s:
            return None
        full_at = bucket.full_at
        if buckets.full_at:  # what other processes counted
            full_at = max(full_at, buckets.full_at.get(bucket.key, 0.0))
        then = self._after_one(buckets, bucket.key, full_at)
        if isinstance(then, Exceeded):
            return then
        bucket.full_at = then
        return None

    def _after_one(self, buckets: _Buckets, key: str, full_at: float) -> float | Exceeded:
        """When a bucket is full again after one more; it is noted for the sharing."""
        now = self._clock()
        then = buckets.interval_s + max(full_at, now)
        ahead = then - now - buckets.span_s
        if ahead > _ROUNDING_S:
            return Exceeded(buckets.policy, max(1, math.ceil(ahead)))
        buckets.met.append(key)
        if now >= self._share_at and self._sharing is None:
            self._share_at = now + SHARE_EVERY_S
            self._sharing = asyncio.get_running_loop().create_task(self._share_quietly())
        return then

    async def share(self) -> None:
        """Send the counts, and take in what the others counted. Raises StoreUnavailable.

        A key that was met so seldom that it matters to no limit is left out: most people ask once a
        second.
        """
        busy: list[tuple[tuple[str, str], int]] = []
        for name, buckets in self._buckets.items():
            met, buckets.met = buckets.met, []
            least = buckets.policy.rate_per_s / SELDOM
            busy += [((name, key), count) for key, count in Counter(met).items() if count >= least]
        busiest = sorted(busy, key=lambda item: -item[1])[:SHARED_MOST]
        for at in range(0, len(busiest), SHARED_AT_ONCE):
            some = busiest[at : at + SHARED_AT_ONCE]
            batch = [(f"{name}:{key}", count) for (name, key), count in some]
            reply = await self._script(_SITE, batch)
            for (counted, own), total in zip(some, reply.totals, strict=True):
                self._take_in(counted, own, reply.period, total)

    def _take_in(self, counted: tuple[str, str], own: int, period: int, total: int) -> None:
        seen_period, seen = self._seen.get(counted, (period, 0))
        others = total - own - (seen if seen_period == period else 0)
        make_room(self._seen, _REMEMBERED)
        self._seen[counted] = (period, total)
        name, key = counted
        buckets = self._buckets[name]
        if others > 0 and buckets.interval_s:
            # Never further than an empty bucket: what the others let pass is not a debt.
            now = self._clock()
            then = max(buckets.full_at.get(key, now), now) + others * buckets.interval_s
            buckets.remember(key, min(then, now + buckets.span_s), self._clock)

    async def _share_quietly(self) -> None:
        try:
            await self.share()
        except StoreUnavailable as error:
            _log.debug("limits_not_shared", error=str(error))
        finally:
            self._sharing = None
