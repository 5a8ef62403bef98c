"""What one person can do in one sale: each method is one request of the public API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

import msgspec
from yarl import URL

from fairdrop.payments.sandbox.mischief import Mischief

from .board import Board
from .client import Answer, Client

_encode = msgspec.json.Encoder().encode


class Place(msgspec.Struct, frozen=True):
    """The personal status document."""

    state: str
    position: int = 0
    poll_after_ms: int = 1_000
    claim_by_ms: int | None = None
    token: str | None = None
    visitor_token: str | None = None


class Reservation(msgspec.Struct, frozen=True):
    """Units held for a while."""

    id: str
    total_minor: int


class Payment(msgspec.Struct, frozen=True):
    """Where an order is paid."""

    url: str | None


class Order(msgspec.Struct, frozen=True):
    """An order, as its buyer sees it."""

    id: str
    state: str
    total_minor: int
    deadline_ms: int
    server_time_ms: int
    payment: Payment | None = None


class Attempt(msgspec.Struct, frozen=True):
    """What the gateway says to an attempt to pay: succeeded, processing or requires_payment."""

    status: str


place_of = msgspec.json.Decoder(Place).decode
reservation_of = msgspec.json.Decoder(Reservation).decode
order_of = msgspec.json.Decoder(Order).decode
attempt_of = msgspec.json.Decoder(Attempt).decode


class Unexpected(Exception):
    """An answer that the API does not promise in this place."""


@dataclass(frozen=True, slots=True)
class Shop:
    """One sale of one shop, and what all of its visitors share.

    ``complain`` is told of everything that must not be, in words.
    """

    client: Client
    board: Board
    url: str
    """The shop's address, without a slash at the end."""
    sale: str
    """The sale's id or slug."""
    complain: Callable[[str], None]

    def path(self, rest: str) -> URL:
        """An address below the sale's."""
        return URL(f"{self.url}/v1/sales/{self.sale}{rest}", encoded=True)

    def order(self, order_id: str, rest: str = "") -> URL:
        """An address of an order's."""
        return URL(f"{self.url}/v1/orders/{order_id}{rest}", encoded=True)


class Visitor:
    """One person's requests: who they are, and the proof that they are inside."""

    def __init__(self, shop: Shop) -> None:
        """Nobody yet: joining makes the shop say who this is."""
        self._shop = shop
        self._call = shop.client.call
        self._me: dict[str, str] | None = None
        self._admitted: dict[str, str] = {}

    def admit(self, token: str) -> None:
        """Show this admission token from now on."""
        self._admitted = {"Fairdrop-Admission": token, "Content-Type": "application/json"}

    async def join(self) -> Answer:
        """Take a place in the line; the first time, also an identity."""
        answer = await self._call("join", "POST", self._shop.path("/join"), self._me)
        if self._me is None and answer.status == HTTPStatus.OK:
            token = place_of(answer.body).visitor_token
            if token is None:
                raise Unexpected("join: no visitor token")
            self._me = {"Authorization": f"Bearer {token}"}
        return answer

    async def look(self) -> Place:
        """The personal status."""
        answer = await self._call("status", "GET", self._shop.path("/me"), self._me)
        return place_of(expect(answer, "status").body)

    async def claim(self) -> Answer:
        """Follow the call and enter."""
        return await self._call("claim", "POST", self._shop.path("/claim"), self._me)

    async def leave(self) -> None:
        """Give the place up, in the line or inside."""
        expect(await self._call("leave", "DELETE", self._shop.path("/me"), self._me), "leave")

    async def reserve(self, key: str, variant: str, quantity: int) -> Answer:
        """Ask for units under this idempotency key."""
        headers = {**(self._me or {}), **self._admitted, "Idempotency-Key": key}
        body = _encode({"lines": [{"variant": variant, "quantity": quantity}]})
        return await self._call("reserve", "POST", self._shop.path("/reservations"), headers, body)

    async def release(self, reservation: str) -> Answer:
        """Give a reservation back."""
        url = self._shop.path(f"/reservations/{reservation}")
        return await self._call("release", "DELETE", url, self._me)

    async def start_checkout(self, reservation: str, email: str) -> Answer:
        """Make an order of a reservation."""
        headers = {**(self._me or {}), "Content-Type": "application/json"}
        body = _encode({"reservation": reservation, "email": email})
        return await self._call("checkout", "POST", self._shop.path("/orders"), headers, body)

    async def pay(self, order: str) -> Answer:
        """Ask for the gateway's page."""
        return await self._call("pay", "POST", self._shop.order(order, "/pay"), self._me)

    async def cancel(self, order: str) -> Answer:
        """Give an order up."""
        return await self._call("cancel", "POST", self._shop.order(order, "/cancel"), self._me)

    async def order(self, order: str) -> Order:
        """How the order stands."""
        answer = await self._call("order", "GET", self._shop.order(order), self._me)
        return order_of(expect(answer, "order").body)

    async def pay_at_gateway(self, page: str, card: str, mischief: Mischief) -> Answer:
        """Pay on the gateway's page, as the browser does there."""
        return await self._at_gateway(page, "pay", {"card": card, "mischief": mischief})

    async def ask_gateway(self, page: str) -> Attempt:
        """What the gateway's page says of this payment."""
        return attempt_of(expect(await self._at_gateway(page, "status", {}), "gateway").body)

    async def _at_gateway(self, page: str, action: str, body: dict[str, object]) -> Answer:
        """``page`` is ``…/pay/INTENT#SECRET``; browsers keep the fragment to themselves."""
        address, _, secret = page.partition("#")
        gateway, _, intent = address.rpartition("/pay/")
        return await self._call(
            f"gateway_{action}",
            "POST",
            URL(f"{gateway}/v1/intents/{intent}/{action}", encoded=True),
            {"Content-Type": "application/json"},
            _encode({"client_secret": secret, **body}),
        )


def expect(answer: Answer, step: str, *statuses: int) -> Answer:
    """The answer, if it has one of these statuses (200 without any). Raises Unexpected."""
    if answer.status in (statuses or (HTTPStatus.OK,)):
        return answer
    raise Unexpected(f"{step}: {answer.status} {answer.code}".rstrip())
