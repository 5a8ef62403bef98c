"""Client secrets: what lets a buyer's browser pay one intent.

A client secret is derived from the gateway's secret key and the intent's id, so the books hold no
secret and a wrong one is refused without reading them.
"""

from __future__ import annotations

import hmac

_PURPOSE = b"client-secret:"


def client_secret(secret_key: bytes, intent_id: str) -> str:
    """The secret of this intent: 256 bits, hex."""
    return hmac.digest(secret_key, _PURPOSE + intent_id.encode(), "sha256").hex()


def is_client_secret(secret_key: bytes, intent_id: str, offered: str) -> bool:
    """Whether the secret is this intent's, compared in constant time."""
    return hmac.compare_digest(client_secret(secret_key, intent_id).encode(), offered.encode())
