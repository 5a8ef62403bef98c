"""What is sold, when, and under which limits."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property

import msgspec

from fairdrop.ids import SaleRef


class Variant(msgspec.Struct, frozen=True):
    """One variant of a product, with its own stock and price."""

    id: str
    product: str
    name: str
    price_minor: int
    quantity: int
    last_serial: int


class SaleTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What is set up for a sale, with the defaults of the specification.

    ``*_ttl_ms`` are durations, ``fee_bps`` is in basis points. The lobby opens ``lobby_ms`` before the
    opening (0: there is none) and takes people in until ``window_ms`` after it (W3).
    """

    slug: str
    name: str
    opens_at: datetime
    currency: str
    description: str = ""
    timezone: str = "UTC"
    closes_at: datetime | None = None
    rate_per_s: float = 50.0
    cap: int = 1_000
    claim_ttl_ms: int = 60_000
    lease_ttl_ms: int = 300_000
    hold_ttl_ms: int = 600_000
    payment_ttl_ms: int = 300_000
    order_limit: int = 4
    buyer_limit: int = 4
    fee_bps: int = 1_000
    accept_late: bool = True
    payment_attempts: int = 3
    gateway: str = "sandbox"
    capture: str = "automatic"
    burst_ms: int = 250
    line_cap_factor: float = 3.0
    adaptive: bool = False
    rate_min_per_s: float = 1.0
    rate_max_per_s: float = 1_000.0
    latency_target_ms: int = 500
    restore_grace_ms: int = 60_000
    lobby_ms: int = 900_000
    window_ms: int = 100
    beacon: str = "none"
    beacon_failure: str = "without"
    buffer_percent: int = 0
    stock_source: str = "catalogue"


class Sale(SaleTerms, frozen=True, kw_only=True, dict=True):
    """A sale as the database has it; ``commitment`` is the hash of its draw's seed, in hex (W4)."""

    id: str
    mode: str
    epoch: int
    version: int
    variants: tuple[Variant, ...] = ()
    sold_out: bool = False
    line_mark: int = 0
    line_served: int = 0
    receipts_from: int = 1
    commitment: str | None = None

    @cached_property
    def ref(self) -> SaleRef:
        """The sale as the store knows it."""
        return SaleRef(self.id, self.epoch)

    def variant(self, variant_id: str) -> Variant | None:
        """The variant of that id, if it is of this sale."""
        for variant in self.variants:
            if variant.id == variant_id:
                return variant
        return None

    def store_config(self) -> dict[str, str | int]:
        """The fields of ``cfg`` that scripts read."""
        return {
            "mode": self.mode,
            "rate_milli": round(self.rate_per_s * 1_000),
            "burst_ms": self.burst_ms,
            "cap": self.cap,
            "line_cap_milli": round(self.line_cap_factor * 1_000),
            "adaptive": int(self.adaptive),
            "rate_min_milli": max(1, round(self.rate_min_per_s * 1_000)),
            "rate_max_milli": round(self.rate_max_per_s * 1_000),
            "claim_ttl_ms": self.claim_ttl_ms,
            "lease_ttl_ms": self.lease_ttl_ms,
            "hold_ttl_ms": self.hold_ttl_ms,
            "order_limit": self.order_limit,
            "buyer_limit": self.buyer_limit,
            "buffer_percent": self.buffer_percent,
            "lobby_ms": self.lobby_ms,
            "window_ms": self.window_ms,
            "opens_ms": int(self.opens_at.timestamp() * 1_000),
            "closes_ms": int(self.closes_at.timestamp() * 1_000) if self.closes_at else 0,
        }


class NewVariant(msgspec.Struct, frozen=True):
    """A variant to create."""

    product: str
    name: str
    price_minor: int
    quantity: int


class NewSale(SaleTerms, frozen=True, kw_only=True):
    """A sale to create."""

    variants: tuple[NewVariant, ...]
