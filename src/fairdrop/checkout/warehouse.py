"""Stock from a warehouse: asked over HTTP, within a time limit, and believed as a whole or not at all.

The warehouse answers ``GET`` with ``{"stock": [{"variant": "Standing", "units": 120}, ...]}``; a
variant is named by its id, its name, or its product and name. What it does not name stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import aiohttp
import msgspec

from fairdrop.errors import FairdropError

if TYPE_CHECKING:
    from fairdrop.catalog import Sale

_ANSWER_LIMIT = 1_000_000
"""Bytes of an answer: a line takes about fifty, so this is twenty thousand variants."""
_OK = 200


class WarehouseFailed(FairdropError):
    """The warehouse did not answer, or not with stock; the message says what it did instead."""


class _Line(msgspec.Struct, frozen=True):
    variant: Annotated[str, msgspec.Meta(min_length=1, max_length=700)]
    units: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]


class _Listed(msgspec.Struct, frozen=True):
    stock: Annotated[list[_Line], msgspec.Meta(min_length=1, max_length=20_000)]


_decoder = msgspec.json.Decoder(_Listed)


class Warehouse:
    """One endpoint that knows the stock of sales."""

    def __init__(self, url: str, token: str, *, timeout_s: float) -> None:
        """``url`` has ``{sale}`` where the sale's slug goes, ``{id}`` for its id; each may be left out.

        ``token`` is sent as a bearer token, when there is one. ``timeout_s`` bounds the whole call.
        """
        self._url = url
        self._headers = {"accept": "application/json"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._timeout_s = timeout_s

    async def stock_of(self, sale: Sale) -> list[tuple[str, int]]:
        """What the warehouse has for the sale, as (variant, units). Raises WarehouseFailed."""
        url = self._url.replace("{sale}", quote(sale.slug, safe="")).replace("{id}", sale.id)
        try:
            async with (
                aiohttp.ClientSession(timeout=self._timeout, headers=self._headers) as session,
                # A redirect would carry the token somewhere else.
                session.get(url, allow_redirects=False) as answer,
            ):
                content = await answer.content.read(_ANSWER_LIMIT + 1)
                while len(content) <= _ANSWER_LIMIT and not answer.content.at_eof():
                    content += await answer.content.read(_ANSWER_LIMIT + 1 - len(content))
                status = answer.status
        except TimeoutError:
            raise WarehouseFailed(f"no answer within {self._timeout_s:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise WarehouseFailed(f"not reached: {str(error) or type(error).__name__}") from None
        if status != _OK:
            raise WarehouseFailed(f"answered with status {status}")
        if len(content) > _ANSWER_LIMIT:
            raise WarehouseFailed(f"answered with more than {_ANSWER_LIMIT} bytes")
        try:
            listed = _decoder.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise WarehouseFailed(f"answered with what is no stock: {error}") from None
        return [(line.variant, line.units) for line in listed.stock]
