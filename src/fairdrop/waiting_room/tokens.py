"""Proofs that people carry: the visitor token (who) and the admission token (may check out).

The admission token is a JWT signed with Ed25519 (RFC 8037), so that a gateway or a shop verifies
it with the public key alone (W12); ES256 and HS256 are there for gateways that know no Ed25519.
Verifying costs some 60 us; a process remembers tokens that it
signed or verified, so a token's second use costs a dictionary look-up. What the signature cannot
say, that the admission is still alive, the store says inside the reserve script.

The visitor token names a visitor id that the server made up, with a mac (:mod:`fairdrop.seals`): nobody
can take more places than identities they were given (case 39).
"""

from __future__ import annotations

import hashlib
import hmac
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec
from joserfc import jwt

from fairdrop import seals
from fairdrop.ids import base64url, new_secret_id
from fairdrop.memory import make_room

from .signing_keys import (
    REGISTRY,
    Admission,
    KeyRing,
    SigningKey,
    published_key,
    read_keys,
    signing_at,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_REMEMBERED = 100_000
"""Visitors a process remembers, and admission tokens: about 40 MB of each at the most, and as much again
where every visitor was admitted."""


class Refusal(StrEnum):
    """Why a token is refused; each is the ``code`` of the answer."""

    REQUIRED = "admission_required"
    FORGED = "admission_forged"
    EXPIRED = "admission_expired"
    OTHER_SALE = "admission_other_sale"
    OTHER_BUYER = "admission_other_buyer"
    REVOKED = "admission_revoked"


class Visitor:
    """A visitor, and what hot steps of one process remember of them.

    One object that one look-up finds: a crowd is larger than any cache of a processor, and each further
    dictionary of visitors costs a request several misses.
    """

    __slots__ = ("admission", "full_at", "key")

    def __init__(self, visitor: str) -> None:
        """Of this visitor id, ``key`` from here on, nothing is known."""
        self.key = visitor
        self.full_at = 0.0
        """When their rate limit's bucket is full again, which is the limit's business."""
        self.admission: tuple[bytes, Admission] | None = None
        """The last admission token that was theirs, and what it proves."""


class AdmissionTokens:
    """Signs and verifies admission tokens; one key signs at a time, all of them verify (rotation)."""

    def __init__(self, keys: Sequence[str], *, issuer: str = "fairdrop") -> None:
        """Take the keys as texts, newest first (``signing_keys`` tells their form).

        Raises ValueError for what is no key, and for none at all.
        """
        self._keys = read_keys(keys)
        if not self._keys:
            raise ValueError("at least one signing key is needed")
        self._ring = KeyRing.of(self._keys)
        self._issuer = issuer
        self._verified: dict[str, Admission] = {}
        self._issued: dict[Admission, str] = {}

    def issue(  # noqa: PLR0913 - the claims of the token
        self, *, sale: str, buyer: str, admission: str, issued_s: int, deadline_ms: int, epoch: int
    ) -> str:
        """The token of an admission; the same claims give the same token in one process.

        The key is the one that signed when the admission began, so that processes agree on it.
        Costs one signature for the first call, a look-up for the next.
        """
        claims = Admission(
            iss=self._issuer,
            aud=sale,
            sub=buyer,
            jti=admission,
            iat=issued_s,
            # Rounded down: the token never outlives the lease (case 36).
            exp=deadline_ms // 1_000,
            epoch=epoch,
        )
        token = self._issued.get(claims)
        if token is None:
            key = signing_at(self._keys, issued_s)
            header = {"alg": str(key.algorithm), "kid": key.kid, "typ": "JWT"}
            token = jwt.encode(header, msgspec.to_builtins(claims), key.key, registry=REGISTRY)
            make_room(self._issued, _REMEMBERED)
            self._issued[claims] = token
            self._remember(token, claims)
        return token

    def verify(
        self, token: str, *, sale: str, buyer: str | None, now_s: float
    ) -> Admission | Refusal:
        """The admission that the token proves for this buyer in this sale, or why it does not.

        ``buyer`` None stands for whoever shows it.

        Whether it has been revoked since, only the store knows.
        """
        claims = self._verified.get(token) or self.read(token)
        if claims is None:
            return Refusal.FORGED if token else Refusal.REQUIRED
        if claims.aud != sale:
            return Refusal.OTHER_SALE
        if buyer is not None and claims.sub != buyer:
            return Refusal.OTHER_BUYER
        if claims.exp <= now_s:
            return Refusal.EXPIRED
        return claims

    def verify_for(
        self, visitor: Visitor, token: bytes, *, sale: str, now_s: float
    ) -> Admission | Refusal:
        """As :meth:`verify` for one visitor: a comparison, for the token that was theirs before."""
        known = visitor.admission
        if known is not None and known[0] == token:
            claims = known[1]
            if claims.aud == sale and claims.exp > now_s:
                return claims
        verified = self.verify(token.decode("latin-1"), sale=sale, buyer=visitor.key, now_s=now_s)
        if not isinstance(verified, Refusal):
            visitor.admission = (token, verified)
        return verified

    def read(self, token: str) -> Admission | None:
        """What a token of ours says, whoever shows it and however old it is; None for a forgery."""
        claims = self._verified.get(token)
        if claims is None:
            claims = self._ring.read(token)
            if claims is None or claims.iss != self._issuer:
                return None
            self._remember(token, claims)
        return claims

    @property
    def keys(self) -> Sequence[SigningKey]:
        """All keys, in the order given."""
        return tuple(self._keys)

    def jwks(self) -> dict[str, Any]:
        """The public keys, as ``/.well-known/jwks.json`` shows them; a shared secret has none."""
        published = [published_key(key) for key in self._keys]
        return {"keys": [key for key in published if key is not None]}

    def _remember(self, token: str, claims: Admission) -> None:
        make_room(self._verified, _REMEMBERED)
        self._verified[token] = claims


class VisitorTokens:
    """Makes and checks visitor tokens: ``fdv1.<visitor>.<mac>``."""

    PREFIX = "fdv1"

    def __init__(self, key: bytes) -> None:
        """Take the secret key, at least 32 bytes."""
        self._mac = seals.Mac(key, b"visitor tokens")
        self._key = key
        self._known: dict[bytes, Visitor] = {}

    def new(self) -> tuple[str, str]:
        """A fresh visitor: (visitor id, token)."""
        visitor = new_secret_id()
        return visitor, self.token(visitor)

    def derived(self, key: str) -> tuple[str, str]:
        """The visitor of a client's random key: the same key gives the same (visitor id, token).

        Nothing is stored. Whoever knows the key is this visitor, so it has at least 128 random bits.
        """
        digest = hmac.digest(self._key, b"visitor of key\0" + key.encode(), hashlib.sha256)
        visitor = base64url(digest[:16])
        return visitor, self.token(visitor)

    def of_buyer(self, subject: str) -> str:
        """The visitor id of a buyer whom the shop knows by this name: always the same one (S2)."""
        digest = hmac.digest(self._key, b"buyer of the shop\0" + subject.encode(), hashlib.sha256)
        return base64url(digest[:16])

    def token(self, visitor: str) -> str:
        """The token of a visitor id that the server made up."""
        text = f"{self.PREFIX}.{visitor}"
        return f"{text}.{self._mac.of(text)}"

    def visitor(self, token: str) -> str | None:
        """The visitor that the token names, or None when we never gave it out."""
        known = self.known(token.encode())
        return None if known is None else known.key

    def known(self, token: bytes) -> Visitor | None:
        """The same with what is remembered of them. One look-up for a token that was shown before."""
        known = self._known.get(token)
        if known is not None:
            return known
        text, _, given = token.decode("latin-1").rpartition(".")
        prefix, _, visitor = text.partition(".")
        if prefix != self.PREFIX or not seals.same(given, self._mac.of(text)):
            return None
        make_room(self._known, _REMEMBERED)
        known = self._known[token] = Visitor(visitor)
        return known
