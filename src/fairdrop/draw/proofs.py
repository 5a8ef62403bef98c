"""The proof of an entry that anybody can check: signed with Ed25519, on demand (W4).

The receipt that joining gives is a MAC: quick to make, and worth something only to us. Whoever
wants one that holds against us exchanges it here for a JWT. Signing takes some 50 us, nearly what
a whole join costs, so it is not done for everybody (docs/decisions tells the figures).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OKPKey

from fairdrop.waiting_room.signing_keys import REGISTRY, Algorithm, published_key

if TYPE_CHECKING:
    from fairdrop.waiting_room import EntryReceipt
    from fairdrop.waiting_room.signing_keys import SigningKey

TYPE = "fairdrop-entry+jwt"


class EntryProof(msgspec.Struct, frozen=True):
    """The claims: this entry is in this sale's lobby, whose draw is bound to this commitment."""

    iss: str
    sale: str
    entry: str
    epoch: int
    commitment: str


class EntryProofs:
    """Signs proofs of entries. The public keys are published with the draw."""

    def __init__(self, keys: Sequence[SigningKey], *, issuer: str = "fairdrop") -> None:
        """Take the site's signing keys; of these, the Ed25519 ones count."""
        self._keys = [key for key in keys if key.algorithm is Algorithm.EDDSA]
        self._issuer = issuer

    def issue(self, receipt: EntryReceipt, commitment: str) -> str | None:
        """The proof as a JWT; None when the site has no Ed25519 key."""
        if not self._keys:
            return None
        key = self._keys[0]
        claims = EntryProof(self._issuer, receipt.sale, receipt.entry, receipt.epoch, commitment)
        header = {"alg": "EdDSA", "kid": key.kid, "typ": TYPE}
        return jwt.encode(header, msgspec.to_builtins(claims), key.key, registry=REGISTRY)

    def public_keys(self) -> list[dict[str, Any]]:
        """The public keys (RFC 8037)."""
        return [shown for key in self._keys if (shown := published_key(key)) is not None]


def read_proof(text: str, keys: Iterable[dict[str, Any]]) -> EntryProof | None:
    """What a proof says when one of the public keys signed it, else None."""
    for members in keys:
        try:
            key = OKPKey.import_key(members)
            decoded = jwt.decode(text, key, registry=REGISTRY)
            if decoded.header.get("typ") == TYPE:
                return msgspec.convert(decoded.claims, EntryProof)
        except (JoseError, msgspec.ValidationError, ValueError, TypeError, KeyError):
            continue
    return None
