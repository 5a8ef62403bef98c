"""What all endpoints of the data plane share: who asks, for which sale, and how errors are told."""

from __future__ import annotations

import functools
import re
import time
from time import perf_counter
from typing import TYPE_CHECKING, Any

import msgspec
import structlog

from fairdrop.access import BuyerRefusal
from fairdrop.drivers.sale_scripts import SaleNotLoaded
from fairdrop.errors import DatabaseUnavailable, Overloaded, StoreUnavailable
from fairdrop.inventory import Unverifiable
from fairdrop.payments import GatewayRefused, GatewayUnavailable
from fairdrop.waiting_room import Visitor, VisitorTokens
from fairdrop.web.tally import SUCCESS, Tallies
from fairdrop.web.wire import Problem, cookie_of, send_problem, unavailable

from .limits import SHOP_KEY, limit_address, limit_buyer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from fairdrop.access import ShopBuyer
    from fairdrop.app import Parts
    from fairdrop.catalog import Sale
    from fairdrop.web.watch import CheckoutWatch
    from fairdrop.web.wire import Receive, Scope, Send

    from .documents import Verified

    Handler = Callable[..., Awaitable[None]]

_log = structlog.get_logger(__name__)

SALE = "fairdrop.sale"
"""Where a handler notes which sale a request is about, when its address does not say it."""
VISITOR_COOKIE = "fairdrop_visitor"
_COOKIE = VISITOR_COOKIE.encode()
_BEARER = b"Bearer "
_OURS = _BEARER + f"{VisitorTokens.PREFIX}.".encode()
"""What nearly everybody sends: nobody asks who else it could be of."""
_KEY = re.compile(rb'"?([A-Za-z0-9_-]{1,64})"?').fullmatch


class Endpoint:
    """A handler as a plain ASGI application, with every known failure told as a problem document.

    Starlette's router calls classes' instances directly, without making a Request or a Response.
    """

    __slots__ = ("_handler", "_limited", "_parts", "_watch", "tallies")

    def __init__(
        self,
        parts: Parts,
        handler: Handler,
        *,
        limited: bool = True,
        watch: CheckoutWatch | None = None,
    ) -> None:
        """Wrap the handler; ``limited`` unless it is for servers, or the same for everybody.

        ``watch`` is told how the checkout does, for the steps that are part of it.
        """
        self._watch = watch
        self._parts = parts
        self._limited = limited
        self._handler = handler
        self.tallies = Tallies()
        """Answers so far, for metrics: a few additions a request, here where nothing is looked up."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        began, status = perf_counter(), SUCCESS
        try:
            if self._limited:
                limit_address(self._parts, scope, "requests")
            await self._handler(scope, receive, send)
        except Problem as problem:
            status = problem.status
            await send_problem(send, problem)
        except SaleNotLoaded:
            status = 503
            # The store has been emptied or is being filled: look up the sale's epoch anew.
            self._parts.catalog.forget(scope["path_params"].get("sale", ""))
            await send_problem(
                send, unavailable("store_unavailable", "The line is being restored. Try again.")
            )
        except StoreUnavailable as error:
            status = 503
            _tell("store_unavailable", error)
            await send_problem(
                send,
                unavailable("store_unavailable", "The line does not answer. Your place is safe."),
            )
        except DatabaseUnavailable as error:
            status = 503
            _tell("database_unavailable", error)
            await send_problem(
                send,
                unavailable(
                    "database_unavailable", "Orders do not answer at the moment. Try again."
                ),
            )
        except Overloaded as error:
            status = 503
            await send_problem(
                send,
                unavailable("overloaded", "Too many requests at once.", error.retry_after_s),
            )
        except GatewayUnavailable as error:
            status = 503
            _tell("gateway_unavailable", error)
            await send_problem(
                send,
                unavailable(
                    "gateway_unavailable",
                    "The payment service does not answer. Nothing was charged; try again.",
                    2,
                ),
            )
        except GatewayRefused as error:
            status = 502
            _log.error("gateway_refused", code=error.code, status=error.status)
            await send_problem(
                send,
                Problem(502, "gateway_refused", "The payment service refused this payment."),
            )
        except Exception:  # noqa: BLE001 - told to whoever asked, and logged with its trace
            # A bug of ours: told here, since hot steps do not pass the framework's own handler.
            _log.exception("request_failed", path=scope["path"])
            await send_problem(
                send, Problem(500, "internal_error", "Something went wrong on our side.")
            )
        seconds = perf_counter() - began
        self.tallies[status].add(seconds)
        if self._watch is not None:
            sale = scope.get(SALE) or scope["path_params"].get("sale", "")
            self._watch.note(sale, seconds, status)


class Steps:
    """The endpoints of one sale's steps, by method and last word of the path."""

    def __init__(self, endpoints: Mapping[tuple[str, str], Endpoint]) -> None:
        """Take the endpoints; :attr:`endpoints` lists them for the API document."""
        self.endpoints = dict(endpoints)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request to its step; 404 or 405 when there is none."""
        step = scope["path_params"]["step"]
        found = self.endpoints.get((scope["method"], step))
        if found is not None:
            await found(scope, receive, send)
            return
        allowed = sorted(method for method, name in self.endpoints if name == step)
        if not allowed:
            await send_problem(send, Problem(404, "not_found", "There is no such address."))
            return
        await send_problem(
            send,
            Problem(
                405,
                "method_not_allowed",
                f"This address takes {', '.join(allowed)}.",
                headers=((b"allow", ", ".join(allowed).encode()),),
            ),
        )


_told: dict[str, float] = {}


def _tell(event: str, error: Exception) -> None:
    """Log an outage once a second, however many requests meet it."""
    now = time.monotonic()
    if now - _told.get(event, -1.0) >= 1.0:
        _told[event] = now
        _log.warning(event, error=str(error))


def visitor_of(parts: Parts, headers: Mapping[bytes, bytes]) -> Visitor | None:
    """The visitor who asks, as :func:`named_visitor` finds them, counted for the limit of a buyer.

    A server of the shop is trusted to know how often. Raises Problem 429 besides.
    """
    if ACTED_FOR not in headers:
        known = _known(parts, headers)
        if known is not None:
            limit_buyer(parts, known, kept=True)
            return known
    named = named_visitor(parts, headers)
    if named is None:
        return None
    visitor = Visitor(named)
    if ACTED_FOR not in headers:
        limit_buyer(parts, visitor, kept=False)
    return visitor


def _known(parts: Parts, headers: Mapping[bytes, bytes]) -> Visitor | None:
    """The visitor of a token of ours, by bearer token or cookie."""
    shown = headers.get(b"authorization")
    if shown is not None and shown.startswith(_OURS):
        return parts.visitors.known(shown[len(_BEARER) :])
    bearer = bearer_of(headers)
    token = cookie_of(headers, _COOKIE) if bearer is None else bearer
    return None if token is None else parts.visitors.known(token.encode())


def named_visitor(parts: Parts, headers: Mapping[bytes, bytes]) -> str | None:
    """The visitor whom a request names, by bearer token or cookie; None without either (S2).

    The bearer token is one of ours, or a JWT of the shop. A server of the shop, with its API key, names
    the buyer for whom it acts in Fairdrop-Buyer. Raises Problem 401 for a token that names nobody. A
    cookie that is not one of ours counts as none: the browser may have it from another installation
    on the same host, and no script can take it away.
    """
    acted_for = headers.get(ACTED_FOR)
    if acted_for is not None:
        return _acted_for(parts, headers, acted_for)
    bearer = bearer_of(headers)
    if bearer is None:
        return visitor_by_cookie(parts, headers)
    if (buyer := shop_buyer(parts, headers)) is not None:
        return parts.visitors.of_buyer(buyer.subject)
    visitor = parts.visitors.visitor(bearer)
    if visitor is None:
        raise Problem(
            401, "visitor_unknown", "The visitor token is not one of ours. Join without it."
        )
    return visitor


ACTED_FOR = b"fairdrop-buyer"
_BUYER_LONGEST = 200
_JWT_DOTS = 2
_BUYER_PROBLEMS = {
    BuyerRefusal.FORGED: "The shop's token is not one that the shop signed.",
    BuyerRefusal.EXPIRED: "The shop's token has expired: log in at the shop again.",
    BuyerRefusal.NOT_FOR_US: "The shop's token is meant for somebody else.",
}


def shop_buyer(parts: Parts, headers: Mapping[bytes, bytes]) -> ShopBuyer | None:
    """The buyer whom the shop's JWT names; None when the bearer token is none.

    Raises Problem 401 for one that names nobody, 503 while the shop's keys are not known.
    """
    tokens = parts.shop_tokens
    bearer = bearer_of(headers) if tokens is not None else None
    if tokens is None or bearer is None:
        return None
    if bearer.count(".") != _JWT_DOTS or bearer.startswith(parts.visitors.PREFIX):
        return None
    found = tokens.read(bearer, time.time())
    if found is BuyerRefusal.KEYS_AWAY:
        raise unavailable(found, "Who you are cannot be checked just now. Try again.")
    if isinstance(found, BuyerRefusal):
        raise Problem(401, found, _BUYER_PROBLEMS[found])
    return found


def _acted_for(parts: Parts, headers: Mapping[bytes, bytes], named: bytes) -> str:
    """The visitor for whom a server of the shop acts; it is trusted to know how often."""
    bearer = bearer_of(headers)
    shown = headers.get(SHOP_KEY, b"") if bearer is None else bearer.encode("latin-1")
    if shown not in parts.server_keys and headers.get(SHOP_KEY, b"") not in parts.server_keys:
        raise Problem(
            401, "api_key_required", "Only a server of the shop acts for a buyer: send its API key."
        )
    try:
        buyer = named.decode()
    except UnicodeDecodeError:
        buyer = ""
    if not 0 < len(buyer) <= _BUYER_LONGEST:
        raise Problem(422, "invalid_request", "Fairdrop-Buyer has 1 to 200 characters, in UTF-8.")
    return parts.visitors.of_buyer(buyer)


def required_visitor(parts: Parts, headers: Mapping[bytes, bytes]) -> str:
    """The id of the visitor who asks. Raises Problem 401 when nobody is named."""
    return required_asker(parts, headers).key


def required_asker(parts: Parts, headers: Mapping[bytes, bytes]) -> Visitor:
    """The visitor who asks. Raises Problem 401 when nobody is named."""
    visitor = visitor_of(parts, headers)
    if visitor is None:
        raise Problem(
            401,
            "visitor_required",
            "Say who you are with the visitor token that joining the sale gave you.",
        )
    return visitor


def require_shop_key(parts: Parts, headers: Mapping[bytes, bytes]) -> None:
    """Raise Problem 401 unless a server of the shop asks, for the buyer that the token names (S2)."""
    if headers.get(SHOP_KEY, b"") not in parts.server_keys:
        raise Problem(
            401,
            "api_key_required",
            "Only the shop's server says what it has verified: send its API key as Fairdrop-Shop-Key.",
        )


def verified_marks(
    parts: Parts, sale: Sale, headers: Mapping[bytes, bytes], verified: Verified | None
) -> list[str]:
    """The marks of what the shop's server has verified of the buyer; none without (H6).

    Raises Problem 401 without the shop's key, 422 for what is no phone number.
    """
    if verified is None:
        return []
    require_shop_key(parts, headers)
    try:
        return parts.verified_marks.of(
            sale.id, phone=verified.phone, payment_method=verified.payment_method
        )
    except Unverifiable as error:
        raise Problem(422, "invalid_request", f"{error}.") from None


def visitor_by_cookie(parts: Parts, headers: Mapping[bytes, bytes]) -> str | None:
    """The visitor whose cookie the browser sent; None without one of ours."""
    cookie = cookie_of(headers, _COOKIE)
    return None if cookie is None else parts.visitors.visitor(cookie)


def bearer_of(headers: Mapping[bytes, bytes]) -> str | None:
    """The token of the Authorization header; None without one of this kind."""
    value = headers.get(b"authorization")
    if value is None:
        return None
    scheme, _, token = value.partition(b" ")
    if scheme.lower() != b"bearer":
        return None
    return token.decode("latin-1")


def known_sale(parts: Parts, scope: Scope) -> Sale | None:
    """The sale that the path names, if this process has met it: one look-up, nothing awaited."""
    return parts.catalog.known(scope["path_params"]["sale"])


async def sale_of(parts: Parts, scope: Scope) -> Sale:
    """The sale that the path names, by id or slug. Raises Problem 404."""
    sale = known_sale(parts, scope) or await parts.catalog.sale(scope["path_params"]["sale"])
    if sale is None:
        raise Problem(404, "no_such_sale", "There is no sale of this name.")
    return sale


def idempotency_key(headers: Mapping[bytes, bytes]) -> str:
    """The request's Idempotency-Key (H3). Raises Problem 400 when it is missing or malformed."""
    key = _KEY(headers.get(b"idempotency-key", b""))
    if key is None:
        raise Problem(
            400,
            "idempotency_key_required",
            "Send an Idempotency-Key of 1 to 64 letters, digits, - or _, and the same one when you"
            " repeat the request.",
        )
    return key[1].decode()


def decode(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    """The body as the decoder's type. Raises Problem 400 (not JSON) or 422 (not what we take)."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Problem(422, "invalid_request", f"{error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Problem(400, "malformed_json", "The body is not a JSON document.") from None


def endpoint(
    parts: Parts,
    handler: Handler,
    *args: Any,
    limited: bool = True,
    watch: CheckoutWatch | None = None,
) -> Endpoint:
    """The handler with its first arguments filled in, as an ASGI application."""
    return Endpoint(parts, functools.partial(handler, parts, *args), limited=limited, watch=watch)
