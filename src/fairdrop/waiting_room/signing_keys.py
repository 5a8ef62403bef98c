"""The keys behind admission tokens: made, read, rotated and published (W12).

A key has one algorithm, fixed by what it is: Ed25519 signs ``EdDSA``, P-256 signs ``ES256``, a shared
secret signs ``HS256``. A token names a key, and is checked with that key's algorithm only, so no
token can choose a weaker one (RFC 8725, section 3.1).

Keys are kept as text, newest first: PEM blocks (PKCS #8) and JSON Web Keys, one a line, in any
mixture. A JSON Web Key may say from when on it signs. Rotation needs that: a new key is made known
to every process and to everyone who fetches the public keys *before* the first token is signed
with it, so the order in which processes are restarted does not matter.
"""

from __future__ import annotations

import base64
import copy
import json
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OctKey, OKPKey
from joserfc.jws import JWSRegistry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Key = OKPKey | ECKey | OctKey


class Algorithm(StrEnum):
    """What can sign an admission token."""

    EDDSA = "EdDSA"
    ES256 = "ES256"
    HS256 = "HS256"


class SigningKey(NamedTuple):
    """A key that signs from ``signs_from_s`` (Unix seconds) on; 0 is always."""

    key: Key
    algorithm: Algorithm
    signs_from_s: int

    @property
    def kid(self) -> str:
        """Its name in tokens: the thumbprint of RFC 7638, unless it came with a name."""
        return str(self.key.kid)


class Admission(msgspec.Struct, frozen=True):
    """The claims of an admission token. ``exp`` is the lease's deadline, in seconds."""

    iss: str
    aud: str
    sub: str
    jti: str
    iat: int
    exp: int
    epoch: int


_SIGNS_FROM = "fairdrop_signs_from_s"
_SECRET_BYTES = 32
_PEM = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----", re.DOTALL)
_NAMES = Algorithm.EDDSA, Algorithm.ES256, Algorithm.HS256

_EDDSA = copy.copy(JWSRegistry.algorithms["EdDSA"])
# RFC 9864 renames EdDSA with this curve to "Ed25519", and the library warns at every token. The
# gateways that verify ours know the old name, some of them no other.
_EDDSA.security_warning = None

REGISTRY = JWSRegistry(algorithms=list(_NAMES))
REGISTRY.algorithms = {**{name: JWSRegistry.algorithms[name] for name in _NAMES}, "EdDSA": _EDDSA}


def new_signing_key(algorithm: Algorithm = Algorithm.EDDSA, *, signs_from_s: int = 0) -> str:
    """A fresh key as the line of text that :func:`read_keys` reads. It is a secret."""
    key: Key
    if algorithm is Algorithm.EDDSA:
        key = OKPKey.generate_key("Ed25519")
    elif algorithm is Algorithm.ES256:
        key = ECKey.generate_key("P-256")
    else:
        key = OctKey.generate_key(8 * _SECRET_BYTES)
    key.ensure_kid()
    members = {**key.as_dict(private=True), _SIGNS_FROM: signs_from_s}
    return json.dumps(members, separators=(",", ":"))


def split_keys(text: str) -> list[str]:
    """The texts of the single keys, in order. Raises ValueError for anything else between them."""
    keys: list[str] = []
    rest = text
    while rest := rest.strip():
        if rest.startswith("{"):
            line, _, rest = rest.partition("\n")
            keys.append(line.strip())
            continue
        found = _PEM.match(rest)
        if found is None:
            raise ValueError("a signing key is neither a PEM block nor a JSON Web Key")
        keys.append(found[0] + "\n")
        rest = rest[found.end() :]
    return keys


def read_key(text: str) -> SigningKey:
    """One key. Raises ValueError for what is no key, or none that signs tokens."""
    try:
        if not text.lstrip().startswith("{"):
            return _pem_key(text)
        members = json.loads(text)
        signs_from_s = int(members.pop(_SIGNS_FROM, 0))
        key = _jwk(members)
    except (JoseError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"this is no signing key: {error}") from None
    if not isinstance(key, OctKey) and not key.is_private:
        raise ValueError("this is the public part of a key: it cannot sign")
    return _named(key, signs_from_s)


def read_keys(texts: Iterable[str]) -> list[SigningKey]:
    """All keys, in order. Raises ValueError."""
    return [read_key(text) for text in texts]


def signing_at(keys: Sequence[SigningKey], now_s: int) -> SigningKey:
    """The key that signs at a time: the newest that may; of equals, the first."""
    ready = [key for key in keys if key.signs_from_s <= now_s]
    if not ready:
        return min(keys, key=lambda key: key.signs_from_s)
    return max(ready, key=lambda key: key.signs_from_s)


class KeyRing:
    """Keys that verify, by name. It is never changed: a rotation makes a new one."""

    def __init__(self, keys: Iterable[tuple[str, Key, Algorithm]]) -> None:
        """Take keys as (kid, key, algorithm)."""
        self._keys = {kid: (key, algorithm) for kid, key, algorithm in keys}

    @classmethod
    def of(cls, keys: Iterable[SigningKey]) -> KeyRing:
        """The ring of one's own keys."""
        return cls((key.kid, key.key, key.algorithm) for key in keys)

    @classmethod
    def published(cls, document: Mapping[str, Any], secrets: Iterable[str] = ()) -> KeyRing:
        """The ring of a published key set (RFC 7517), and of secrets shared besides.

        Keys of other kinds are left out. ``secrets`` are key texts (:func:`new_signing_key`) or base64url.
        """
        found: list[tuple[str, Key, Algorithm]] = []
        for members in document.get("keys", ()):
            try:
                key = _jwk(members)
                algorithm = _algorithm(key)
            except (JoseError, ValueError, TypeError, KeyError, AttributeError):
                continue
            if algorithm is not Algorithm.HS256:  # nobody publishes a secret
                key.ensure_kid()
                found.append((str(key.kid), key, algorithm))
        for secret in secrets:
            text = secret if secret.lstrip().startswith("{") else json.dumps(_oct(secret))
            shared = read_key(text)
            found.append((shared.kid, shared.key, shared.algorithm))
        return cls(found)

    def __contains__(self, kid: object) -> bool:
        return kid in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def read(self, token: str) -> Admission | None:
        """The claims of a token with a right signature by one of the keys, else None.

        Says nothing of time, sale or buyer. Costs some 60 us with Ed25519.
        """
        try:
            decoded = jwt.decode(token, self._key_for, registry=REGISTRY)
            return msgspec.convert(decoded.claims, Admission)
        except (
            JoseError,
            msgspec.ValidationError,
            ValueError,
            TypeError,
            KeyError,
            RecursionError,
        ):
            return None

    def _key_for(self, token: Any) -> Key:
        header = token.headers()
        key, algorithm = self._keys[header["kid"]]
        if header["alg"] != algorithm:
            raise ValueError("the token names another algorithm than its key's")
        return key


def kid_of(token: str) -> str:
    """The key that an unverified token names; empty when it is no token."""
    head, _, _ = token.partition(".")
    try:
        header = msgspec.json.decode(_unpadded(head))
        kid = header.get("kid", "")
    except (ValueError, AttributeError, RecursionError, msgspec.DecodeError):
        return ""
    return kid if isinstance(kid, str) else ""


def published_key(key: SigningKey) -> dict[str, Any] | None:
    """The public part as a JSON Web Key; None for a shared secret, which has none."""
    if key.algorithm is Algorithm.HS256:
        return None
    return {**key.key.as_dict(private=False), "use": "sig", "alg": str(key.algorithm)}


def _pem_key(text: str) -> SigningKey:
    key: Key
    try:
        key = OKPKey.import_key(text)
    except (JoseError, ValueError, TypeError):
        key = ECKey.import_key(text)
    if not key.is_private:
        raise ValueError("this is the public part of a key: it cannot sign")
    return _named(key, 0)


def _named(key: Key, signs_from_s: int) -> SigningKey:
    algorithm = _algorithm(key)
    key.ensure_kid()
    return SigningKey(key, algorithm, signs_from_s)


def _jwk(members: Mapping[str, Any]) -> Key:
    kinds: dict[str, Any] = {"OKP": OKPKey, "EC": ECKey, "oct": OctKey}
    if members["kty"] == "oct" and len(_unpadded(members["k"])) < _SECRET_BYTES:
        raise ValueError(f"a shared secret has at least {_SECRET_BYTES} bytes")
    key: Key = kinds[members["kty"]].import_key(dict(members))
    return key


def _algorithm(key: Key) -> Algorithm:
    if isinstance(key, OctKey):
        return Algorithm.HS256
    curve = key.as_dict(private=False).get("crv")
    if curve == "Ed25519":
        return Algorithm.EDDSA
    if curve == "P-256":
        return Algorithm.ES256
    raise ValueError(f"keys on the curve {curve} do not sign admission tokens")


def _oct(secret: str) -> dict[str, str]:
    return {"kty": "oct", "k": secret.strip().rstrip("=")}


def _unpadded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
