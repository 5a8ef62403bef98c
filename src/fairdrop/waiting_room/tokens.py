"""Proofs that people carry: the visitor token (who) and the admission token (may check out).

The admission token is a JWT signed with Ed25519 (RFC 8037), so that a gateway or a shop verifies
it with the public key alone (W12). Verifying costs some 60 us; a process remembers tokens that it
signed or verified, so a token's second use costs a dictionary look-up. What the signature cannot
say, that the admission is still alive, the store says inside the reserve script.

The visitor token names a visitor id that the server made up, with a truncated HMAC-SHA256
(RFC 2104): nobody can take more places than identities they were given (case 39).
"""

from __future__ import annotations

import base64
import copy
import hashlib
import hmac
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet, OKPKey
from joserfc.jws import JWSRegistry

from fairdrop.ids import new_secret_id

if TYPE_CHECKING:
    from collections.abc import Sequence

_REMEMBERED = 100_000
"""Tokens a process remembers: about 40 MB at the most."""


_EDDSA = copy.copy(JWSRegistry.algorithms["EdDSA"])
# RFC 9864 renames EdDSA with this curve to "Ed25519", and the library warns at every token. The
# gateways that verify ours know the old name, some of them no other.
_EDDSA.security_warning = None

_REGISTRY = JWSRegistry(algorithms=["EdDSA"])
# The one algorithm there is: a token that names another cannot choose it.
_REGISTRY.algorithms = {"EdDSA": _EDDSA}


class Refusal(StrEnum):
    """Why a token is refused; each is the ``code`` of the answer."""

    REQUIRED = "admission_required"
    FORGED = "admission_forged"
    EXPIRED = "admission_expired"
    OTHER_SALE = "admission_other_sale"
    OTHER_BUYER = "admission_other_buyer"
    REVOKED = "admission_revoked"


class Admission(msgspec.Struct, frozen=True):
    """The claims of an admission token. ``exp`` is the lease's deadline, in seconds."""

    iss: str
    aud: str
    sub: str
    jti: str
    iat: int
    exp: int
    epoch: int


class AdmissionTokens:
    """Signs and verifies admission tokens; the first key signs, all of them verify (rotation)."""

    def __init__(self, private_pems: Sequence[str], *, issuer: str = "fairdrop") -> None:
        """Take the private keys as PEM texts (PKCS #8, Ed25519), newest first."""
        keys = [OKPKey.import_key(pem) for pem in private_pems]
        if not keys:
            raise ValueError("at least one signing key is needed")
        for key in keys:
            key.ensure_kid()
        self._signing = keys[0]
        self._header = {"alg": "EdDSA", "kid": keys[0].kid, "typ": "JWT"}
        self._known = KeySet(list(keys))
        self._issuer = issuer
        self._verified: dict[str, Admission] = {}

    def issue(  # noqa: PLR0913 - the claims of the token
        self, *, sale: str, buyer: str, admission: str, issued_s: int, deadline_ms: int, epoch: int
    ) -> str:
        """The token of an admission; the same claims give the same token. Costs one signature."""
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
        token = jwt.encode(
            self._header, msgspec.to_builtins(claims), self._signing, registry=_REGISTRY
        )
        self._remember(token, claims)
        return token

    def verify(self, token: str, *, sale: str, buyer: str, now_s: float) -> Admission | Refusal:
        """The admission that the token proves for this buyer in this sale, or why it does not.

        Whether it has been revoked since, only the store knows.
        """
        if not token:
            return Refusal.REQUIRED
        claims = self._verified.get(token)
        if claims is None:
            try:
                decoded = jwt.decode(token, self._known, registry=_REGISTRY)
                claims = msgspec.convert(decoded.claims, Admission)
            except (JoseError, msgspec.ValidationError, ValueError, TypeError, KeyError):
                return Refusal.FORGED
            if claims.iss != self._issuer:
                return Refusal.FORGED
            self._remember(token, claims)
        if claims.aud != sale:
            return Refusal.OTHER_SALE
        if claims.sub != buyer:
            return Refusal.OTHER_BUYER
        if claims.exp <= now_s:
            return Refusal.EXPIRED
        return claims

    def jwks(self) -> dict[str, Any]:
        """The public keys, as ``/.well-known/jwks.json`` shows them."""
        return {
            "keys": [
                {**key.as_dict(private=False), "use": "sig", "alg": "EdDSA"}
                for key in self._known.keys
            ]
        }

    def _remember(self, token: str, claims: Admission) -> None:
        if len(self._verified) >= _REMEMBERED:
            for old in list(self._verified)[: _REMEMBERED // 10]:
                del self._verified[old]
        self._verified[token] = claims


def new_signing_key() -> str:
    """A fresh Ed25519 private key as a PEM text."""
    return OKPKey.generate_key("Ed25519").as_pem(private=True).decode()


class VisitorTokens:
    """Makes and checks visitor tokens: ``fdv1.<visitor>.<mac>``."""

    _PREFIX = "fdv1"
    _MAC_BYTES = 16

    def __init__(self, key: bytes) -> None:
        """Take the secret key, at least 32 bytes."""
        if len(key) < 32:  # noqa: PLR2004 - the output size of SHA-256
            raise ValueError("the visitor key has at least 32 bytes")
        self._key = key
        self._verified: dict[str, str] = {}

    def new(self) -> tuple[str, str]:
        """A fresh visitor: (visitor id, token)."""
        visitor = new_secret_id()
        return visitor, self.token(visitor)

    def token(self, visitor: str) -> str:
        """The token of a visitor id that the server made up."""
        return f"{self._PREFIX}.{visitor}.{self._mac(visitor)}"

    def visitor(self, token: str) -> str | None:
        """The visitor that the token names, or None when we never gave it out."""
        known = self._verified.get(token)
        if known is not None:
            return known
        parts = token.split(".")
        if len(parts) != 3 or parts[0] != self._PREFIX:  # noqa: PLR2004 - prefix, visitor, mac
            return None
        if not hmac.compare_digest(parts[2].encode(), self._mac(parts[1]).encode()):
            return None
        if len(self._verified) >= _REMEMBERED:
            self._verified.clear()
        self._verified[token] = parts[1]
        return parts[1]

    def _mac(self, visitor: str) -> str:
        digest = hmac.digest(self._key, visitor.encode(), hashlib.sha256)
        return base64.urlsafe_b64encode(digest[: self._MAC_BYTES]).rstrip(b"=").decode()
