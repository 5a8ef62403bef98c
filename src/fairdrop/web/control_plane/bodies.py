"""What operators send. Unknown fields, nulls and values of another type are refused."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from fairdrop.ids import is_uuid
from fairdrop.money import is_currency

from .local_time import zone_of

_DAY_MS = 86_400_000
UNITS_MAX = 10_000_000
"""Units of one variant; a sale of more is split into variants."""


def _plain(text: str) -> str:
    """Any script, emoji and writing direction (case 31), but nothing that steers a terminal."""
    if any(unicodedata.category(character) == "Cc" for character in text):
        raise ValueError("control characters and line breaks are not allowed here")
    return _not_blank(text)


def _prose(text: str) -> str:
    if any(unicodedata.category(c) == "Cc" and c not in "\n\t" for c in text):
        raise ValueError("control characters other than line breaks and tabs are not allowed")
    return text


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("it may not be blank")
    return text


def _currency(code: str) -> str:
    if not is_currency(code):
        raise ValueError("ISO 4217 has no currency of this code")
    return code


def _variant(text: str) -> str:
    if not is_uuid(text):
        raise ValueError("no variant has this id")
    return text


def _zone(name: str) -> str:
    zone_of(name)
    return name


Name = Annotated[str, Field(min_length=1, max_length=300), AfterValidator(_plain)]
Description = Annotated[str, Field(max_length=5_000), AfterValidator(_prose)]
Slug = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$",
        description="Small letters, digits and hyphens; part of the sale's address.",
    ),
]
Currency = Annotated[
    str,
    Field(pattern=r"^[A-Z]{3}$", description="ISO 4217, like EUR."),
    AfterValidator(_currency),
]
Zone = Annotated[
    str,
    Field(max_length=64, description="IANA zone, like Europe/Zurich."),
    AfterValidator(_zone),
]
Time = Annotated[
    str,
    Field(
        max_length=40,
        description="On the clock of the sale's zone (2026-03-01T08:30), or with an offset"
        " (2026-03-01T08:30:00+01:00, 2026-03-01T07:30:00Z).",
    ),
]
Rate = Annotated[
    float,
    Field(ge=0.001, le=100_000, allow_inf_nan=False, description="People called per second (W8)."),
]
Cap = Annotated[int, Field(ge=1, le=1_000_000, description="People inside at a time (W9).")]
Burst = Annotated[
    int,
    Field(
        ge=0,
        le=60_000,
        description="What the token bucket holds, as milliseconds at the pace: so much more than the"
        " pace may be called after a quiet moment. At least one person (W8).",
    ),
]
LineCap = Annotated[
    float,
    Field(
        ge=0,
        le=1_000,
        allow_inf_nan=False,
        description="People in the line for each unit that is not sold; 0: any number (W16).",
    ),
]
LatencyTarget = Annotated[
    int, Field(ge=1, le=60_000, description="Slower answers of the checkout count as slow (W10).")
]
Grace = Annotated[
    int,
    Field(
        ge=0,
        le=3_600_000,
        description="How long nobody is called after the store lost the line, while people get their"
        " places back (W15).",
    ),
]
Duration = Annotated[int, Field(ge=100, le=7 * _DAY_MS)]
OrderLimit = Annotated[int, Field(ge=1, le=1_000, description="Units of one order (H6).")]
BuyerLimit = Annotated[
    int, Field(ge=1, le=100_000, description="Units of one buyer, held and bought (H6).")
]
Lobby = Annotated[
    int,
    Field(
        ge=0,
        le=7 * _DAY_MS,
        description="How long before the opening the lobby opens, whose people are drawn (W3); 0: no"
        " lobby.",
    ),
]
Window = Annotated[
    int,
    Field(
        ge=0,
        le=60_000,
        description="How long after the opening arrivals still belong to the lobby (W3).",
    ),
]
Beacon = Annotated[
    str,
    Field(
        max_length=300,
        pattern=r"^(none|manual|https?://[^\s]+)$",
        description="Public randomness that goes into the draw (W4): none; manual, a value that an"
        " operator enters once the list is closed; or the address of a drand chain, like"
        " https://api.drand.sh/CHAIN.",
    ),
]
BeaconFailure = Annotated[
    Literal["without", "wait"],
    Field(
        description="When the beacon does not answer within 15 s: draw without it, and publish that;"
        " or wait, until it does or an operator enters a value."
    ),
]
Buffer = Annotated[
    int,
    Field(
        ge=0,
        le=99,
        description="Safety buffer: so many percent of each variant's units stay unsold, rounded up"
        " (H9).",
    ),
]
StockSource = Annotated[
    Literal["catalogue", "warehouse"],
    Field(
        description="warehouse: the stock is asked for a minute before the opening, until it comes; a"
        " sale that opens without it sells what was set up here (H9)."
    ),
]
Attempts = Annotated[int, Field(ge=1, le=100, description="Declines until an order fails.")]


class _Body(BaseModel):
    # Strict: "3" is no number and true is not 1.
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class VariantBody(_Body):
    """A variant to sell."""

    product: Name
    name: Name
    price_minor: Annotated[int, Field(ge=0, le=10**12, description="In minor units.")]
    quantity: Annotated[int, Field(ge=0, le=UNITS_MAX)]


class NewSaleBody(_Body):
    """A sale to create. Whatever is left out has the default shown."""

    slug: Slug
    name: Name
    opens_at: Time
    currency: Currency
    variants: Annotated[list[VariantBody], Field(min_length=1, max_length=100)]
    description: Description = ""
    timezone: Zone = "UTC"
    closes_at: Time | None = None
    rate_per_s: Rate = 50.0
    cap: Cap = 1_000
    claim_ttl_ms: Duration = 60_000
    lease_ttl_ms: Duration = 300_000
    hold_ttl_ms: Duration = 600_000
    payment_ttl_ms: Duration = 300_000
    order_limit: OrderLimit = 4
    buyer_limit: BuyerLimit = 4
    buffer_percent: Buffer = 0
    stock_source: StockSource = "catalogue"
    fee_bps: Annotated[int, Field(ge=0, le=10_000, description="Booking fee; 1000 is 10 %.")] = (
        1_000
    )
    accept_late: Annotated[bool, Field(description="Late money buys units that are left (O7).")] = (
        True
    )
    payment_attempts: Attempts = 3
    gateway: Annotated[str, Field(min_length=1, max_length=40)] = "sandbox"
    capture: Annotated[
        Literal["automatic", "manual"],
        Field(
            description="manual: the money is set aside first and taken when the units are secured;"
            " a buyer who agrees too late is never charged (O4)."
        ),
    ] = "automatic"
    burst_ms: Burst = 250
    line_cap_factor: LineCap = 3.0
    adaptive: Annotated[
        bool, Field(description="The pace follows what the checkout can serve (W10).")
    ] = False
    rate_min_per_s: Rate = 1.0
    rate_max_per_s: Rate = 1_000.0
    latency_target_ms: LatencyTarget = 500
    restore_grace_ms: Grace = 60_000
    lobby_ms: Lobby = 900_000
    window_ms: Window = 100
    beacon: Beacon = "none"
    beacon_failure: BeaconFailure = "without"


def _without_null(schema: dict[str, Any]) -> None:
    """A field of a change may be left out, which is not the same as null."""
    for name, field in schema["properties"].items():
        options = [option for option in field.pop("anyOf", []) if option != {"type": "null"}]
        field.pop("default", None)
        if len(options) == 1:
            schema["properties"][name] = {**options[0], **field}


class SaleChangeBody(_Body):
    """What to change; what is left out stays."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, json_schema_extra=_without_null
    )

    name: Name | None = None
    description: Description | None = None
    timezone: Zone | None = None
    opens_at: Time | None = None
    closes_at: Time | None = None
    rate_per_s: Rate | None = None
    cap: Cap | None = None
    claim_ttl_ms: Duration | None = None
    lease_ttl_ms: Duration | None = None
    hold_ttl_ms: Duration | None = None
    payment_ttl_ms: Duration | None = None
    order_limit: OrderLimit | None = None
    buyer_limit: BuyerLimit | None = None
    buffer_percent: Buffer | None = None
    stock_source: StockSource | None = None
    accept_late: bool | None = None
    payment_attempts: Attempts | None = None
    burst_ms: Burst | None = None
    line_cap_factor: LineCap | None = None
    adaptive: bool | None = None
    rate_min_per_s: Rate | None = None
    rate_max_per_s: Rate | None = None
    latency_target_ms: LatencyTarget | None = None
    restore_grace_ms: Grace | None = None
    lobby_ms: Lobby | None = None
    window_ms: Window | None = None
    beacon: Beacon | None = None
    beacon_failure: BeaconFailure | None = None

    @model_validator(mode="after")
    def _no_nulls(self) -> Self:
        for name in sorted(self.model_fields_set):
            if getattr(self, name) is None:
                raise ValueError(f"{name} may be left out, not null")
        return self


class StockBody(_Body):
    """More units (positive) or fewer (negative)."""

    delta: Annotated[int, Field(ge=-100_000, le=UNITS_MAX)]

    @model_validator(mode="after")
    def _not_zero(self) -> Self:
        if self.delta == 0:
            raise ValueError("delta is not 0")
        return self


class BeaconBody(_Body):
    """The value of a public beacon, as it was published (W4)."""

    value: Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_plain)]


class RestorationBody(_Body):
    """How long people come back to a lost line before anybody is called, from now on."""

    grace_ms: Grace


class RefundUnit(_Body):
    """One unit of the order."""

    variant: Annotated[str, Field(max_length=64), AfterValidator(_variant)]
    serial: Annotated[int, Field(ge=1, le=2**31 - 1)]


class StockLine(_Body):
    """How many units of a variant there are, held and sold ones included."""

    variant: Annotated[
        str,
        Field(
            min_length=1,
            max_length=700,
            description="Its id, its name, or its product and name: Ticket, Standing.",
        ),
    ]
    units: Annotated[int, Field(ge=0, le=UNITS_MAX)]


class StockListBody(_Body):
    """Stock as a list; variants that it does not name stay as they are."""

    stock: Annotated[list[StockLine], Field(min_length=1, max_length=100)]
    source: Annotated[
        str,
        Field(min_length=1, max_length=200, description="Where it comes from, for the audit."),
        AfterValidator(_plain),
    ] = "list"


class RefundBody(_Body):
    """Money to give back: all that is left, ``amount_minor`` of it, or that of single units."""

    amount_minor: Annotated[
        int | None, Field(ge=1, le=10**15, description="In minor units; left out or null: all.")
    ] = None
    units: Annotated[
        list[RefundUnit] | None,
        Field(min_length=1, max_length=1_000, description="Units whose money goes back."),
    ] = None
    to_pool: Annotated[
        bool,
        Field(description="Put the units on sale again: those named, or all with a full refund."),
    ] = False
    keep_fee: Annotated[bool, Field(description="Keep the booking fee.")] = False
    reason: Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_plain)]

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.amount_minor is not None and self.units is not None:
            raise ValueError("an amount or units, not both")
        if self.to_pool and self.amount_minor is not None:
            raise ValueError("only units, or all of them, can go back to the pool")
        named = [(unit.variant, unit.serial) for unit in self.units or ()]
        if len(set(named)) != len(named):
            raise ValueError("each unit once")
        return self
