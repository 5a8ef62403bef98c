"""Buyers whom the shop knows: a signed token of the shop says who asks (S2).

The token is a JWT (RFC 7519) of the shop's own login, signed with a key of its JWKS address or with a
shared secret. It has to be meant for us (``aud``), to end (``exp``) and to name somebody (``sub``).
Its verification is remembered, so a buyer costs a signature once for each token. Nothing waits for
the shop: its keys are fetched beside the requests, every five minutes, and when a token names a key
that is not known, at most once in five seconds.
"""

from __future__ import annotations

import asyncio
import copy
import time
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp
import msgspec
import structlog
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet, OctKey
from joserfc.jws import JWSRegistry

from fairdrop.memory import make_room

if TYPE_CHECKING:
    from collections.abc import Callable

KEYS_FRESH_S = 300.0
KEYS_PAUSE_S = 5.0
SECRET_SHORTEST = 32
"""Bytes of a shared secret at the least (RFC 7518, section 3.2)."""
_SUBJECT_LONGEST = 200
_TOKEN_LONGEST = 8_192
_REMEMBERED = 100_000
_ANSWER_LIMIT = 262_144
_TIMEOUT = aiohttp.ClientTimeout(total=3)

_PUBLIC = ("EdDSA", "Ed25519", "ES256", "RS256", "PS256")
"""Never HS256 among them: a public key is no secret (RFC 8725, section 2.1)."""

_log = structlog.get_logger(__name__)


class BuyerRefusal(StrEnum):
    """Why a shop's token names nobody; each is the ``code`` of the answer."""

    FORGED = "buyer_token_forged"
    EXPIRED = "buyer_token_expired"
    NOT_FOR_US = "buyer_token_not_for_us"
    KEYS_AWAY = "buyer_keys_unavailable"


class ShopBuyer(NamedTuple):
    """A buyer as the shop's token names them; ``email`` when the token has one, not known as unverified."""

    subject: str
    email: str | None
    expires_s: float


class ShopTokens:
    """Reads the shop's tokens. :meth:`read` never waits."""

    def __init__(
        self,
        *,
        audience: str,
        issuer: str = "",
        jwks_url: str | None = None,
        secret: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take either the address of the shop's public keys or the shared secret.

        Raises ValueError for a short secret, and for both or neither.
        """
        if (jwks_url is None) is (secret is None):
            raise ValueError("set either the address of the shop's keys or its secret")
        self._audience, self._issuer, self._url = audience, issuer, jwks_url
        self._clock = clock
        self._keys: KeySet | OctKey | None = None
        self._kids: frozenset[str] = frozenset()
        self._registry = _registry(_PUBLIC)
        if secret is not None:
            if len(secret.encode()) < SECRET_SHORTEST:
                raise ValueError(f"the shop's secret has at least {SECRET_SHORTEST} bytes")
            self._keys = OctKey.import_key(secret)
            self._registry = _registry(("HS256",))
        self._fetched_at = self._asked_at = float("-inf")
        self._fetching: asyncio.Task[None] | None = None
        self._known: dict[str, ShopBuyer] = {}

    def read(self, token: str, now_s: float) -> ShopBuyer | BuyerRefusal:
        """Who the token names, or why it names nobody. Costs a look-up for a token seen before."""
        if self._url is not None and self._clock() - self._fetched_at >= KEYS_FRESH_S:
            self._fetch_beside()
        buyer = self._known.get(token)
        if buyer is None:
            found = self._verify(token)
            if isinstance(found, BuyerRefusal):
                return found
            buyer = found
            make_room(self._known, _REMEMBERED)
            self._known[token] = buyer
        return buyer if buyer.expires_s > now_s else BuyerRefusal.EXPIRED

    async def fetch(self) -> None:
        """Fetch the shop's keys now; what is known stays when that fails."""
        assert self._url is not None, "a shared secret is not fetched"
        self._asked_at = self._clock()
        try:
            async with (
                aiohttp.ClientSession(timeout=_TIMEOUT) as session,
                session.get(self._url, allow_redirects=False) as answer,
            ):
                answer.raise_for_status()
                document = msgspec.json.decode(await answer.content.read(_ANSWER_LIMIT))
            keys = KeySet.import_key_set(document)
        except (
            aiohttp.ClientError,
            TimeoutError,
            OSError,
            JoseError,
            ValueError,
            TypeError,
            KeyError,
        ) as error:
            _log.warning("shop_keys_not_fetched", error=repr(error))
            return
        kids = frozenset(str(key.kid) for key in keys.keys if key.kid)
        if kids != self._kids:
            self._known.clear()  # tokens of a key that was taken back are worth nothing
        self._keys, self._kids, self._fetched_at = keys, kids, self._clock()

    async def close(self) -> None:
        """Stop fetching."""
        if self._fetching is not None:
            self._fetching.cancel()

    def _fetch_beside(self) -> None:
        if self._fetching is not None or self._clock() - self._asked_at < KEYS_PAUSE_S:
            return
        self._fetching = asyncio.get_running_loop().create_task(self.fetch())
        self._fetching.add_done_callback(self._fetched)

    def _fetched(self, _: asyncio.Task[None]) -> None:
        self._fetching = None

    def _verify(self, token: str) -> ShopBuyer | BuyerRefusal:
        if len(token) > _TOKEN_LONGEST:
            return BuyerRefusal.FORGED
        if self._keys is None:
            return BuyerRefusal.KEYS_AWAY
        try:
            claims = jwt.decode(token, self._find_key, registry=self._registry).claims
        except _UnknownKey:
            self._fetch_beside()
            # One that comes with the next fetch is worth asking again for.
            return BuyerRefusal.FORGED if self._fetching is None else BuyerRefusal.KEYS_AWAY
        except (JoseError, ValueError, TypeError, KeyError, RecursionError, AttributeError):
            return BuyerRefusal.FORGED
        return self._buyer(claims)

    def _find_key(self, token: Any) -> Any:
        if isinstance(self._keys, OctKey):
            return self._keys
        assert self._keys is not None, "looked at before"
        header = token.headers()
        kid = header.get("kid")
        if kid is None and len(self._keys.keys) == 1:
            return self._keys.keys[0]
        if kid not in self._kids:
            raise _UnknownKey
        return self._keys.get_by_kid(kid, {"alg": header["alg"]})

    def _buyer(self, claims: Any) -> ShopBuyer | BuyerRefusal:
        subject, expires = claims.get("sub"), claims.get("exp")
        starts = claims.get("nbf", 0)
        if not isinstance(subject, str) or not 0 < len(subject) <= _SUBJECT_LONGEST:
            return BuyerRefusal.FORGED
        if not all(isinstance(each, int | float) for each in (expires, starts)):
            return BuyerRefusal.FORGED
        audience = claims.get("aud")
        meant = audience if isinstance(audience, list) else [audience]
        if self._audience not in meant or (self._issuer and claims.get("iss") != self._issuer):
            return BuyerRefusal.NOT_FOR_US
        email = claims.get("email")
        known = isinstance(email, str) and claims.get("email_verified") is not False
        return ShopBuyer(subject, email if known else None, float(expires))


class _UnknownKey(Exception):
    """The token names a key that the shop had not published when it was asked last."""


def _registry(names: tuple[str, ...]) -> JWSRegistry:
    registry = JWSRegistry(algorithms=list(names))
    registry.algorithms = {name: copy.copy(JWSRegistry.algorithms[name]) for name in names}
    for algorithm in registry.algorithms.values():
        # The library warns of EdDSA's old name (RFC 9864), which is the one that shops use.
        algorithm.security_warning = None
    return registry
