"""The operator's side of a rehearsal: create the sale, look at its figures, over the admin API."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

import aiohttp
import msgspec

from fairdrop.errors import FairdropError

TIMEOUT_S = 5.0
_POLL_S = 0.1


class ControlRefused(FairdropError):
    """The control plane did not do what the rehearsal needs; the message says what it answered."""


class VariantFigures(msgspec.Struct, frozen=True):
    """Live stock of one variant."""

    name: str
    quantity: int
    free: int
    held: int
    sold: int


class Figures(msgspec.Struct, frozen=True):
    """What the console shows of a sale, as far as a rehearsal needs it."""

    mode: str
    waiting: int
    called: int
    inside: int
    joined: int
    admitted: int
    cap: int
    variants: tuple[VariantFigures, ...]
    orders: dict[str, int]
    revenue_minor: int
    fees_minor: int
    currency: str

    @property
    def units(self) -> VariantFigures:
        """All variants together."""
        return VariantFigures(
            name="all",
            quantity=sum(variant.quantity for variant in self.variants),
            free=sum(variant.free for variant in self.variants),
            held=sum(variant.held for variant in self.variants),
            sold=sum(variant.sold for variant in self.variants),
        )


class _Created(msgspec.Struct, frozen=True):
    id: str
    loaded: bool = False


_figures = msgspec.json.Decoder(Figures).decode
_created = msgspec.json.Decoder(_Created).decode
_encode = msgspec.json.Encoder().encode


class Control:
    """A client of the control plane; an asynchronous context manager."""

    def __init__(self, url: str, key: str) -> None:
        """``url`` is the site's, without a slash at the end; ``key`` its API key."""
        self._base = f"{url}/admin/v1"
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        """Open the connection."""
        self._session = aiohttp.ClientSession(
            headers=self._headers, timeout=aiohttp.ClientTimeout(total=TIMEOUT_S)
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        await self._session.close()

    async def create(self, body: dict[str, Any], *, ready_within_s: float = 15.0) -> str:
        """Create a sale and wait until it can be joined; returns its id. Raises ControlRefused."""
        status, raw = await self._send("POST", "/sales", body)
        if status != HTTPStatus.CREATED:
            raise ControlRefused(f"the sale was not created: {status} {raw.decode()[:300]}")
        sale_id = _created(raw).id
        try:
            async with asyncio.timeout(ready_within_s):
                while not await self._is_loaded(sale_id):  # noqa: ASYNC110 - over HTTP
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            raise ControlRefused(
                f"the sale was not in the store after {ready_within_s:.0f} s: is a worker running?"
            ) from None
        return sale_id

    async def figures(self, sale_id: str) -> Figures | None:
        """The live figures; None while some part of the shop does not answer."""
        try:
            status, raw = await self._send("GET", f"/sales/{sale_id}/figures")
        except (aiohttp.ClientError, OSError, TimeoutError):
            return None
        return _figures(raw) if status == HTTPStatus.OK else None

    async def _is_loaded(self, sale_id: str) -> bool:
        status, raw = await self._send("GET", f"/sales/{sale_id}")
        return status == HTTPStatus.OK and _created(raw).loaded

    async def _send(
        self, method: str, path: str, body: dict[str, Any] | None = None
    ) -> tuple[int, bytes]:
        data = None if body is None else _encode(body)
        async with self._session.request(method, self._base + path, data=data) as response:
            return response.status, await response.read()
