"""Buyers whom the shop knows (S2): by its JWT, or by a server that acts for them; always one visitor."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, RSAKey
from pydantic import SecretStr

from fairdrop.access import BuyerRefusal, ShopBuyer, ShopTokens
from fairdrop.app import open_parts
from fairdrop.embedded import BackgroundServices
from tests.integration.control_plane.own_parts import (
    ADMIN_KEY,
    client,
    client_of,
    database_url,
    opened,
    parts,
    problem,
    settings_for,
)

__all__ = ["client", "database_url", "parts"]

SECRET = "a-secret-that-the-shop-and-fairdrop-share"
NOW_S = 1_800_000_000
CLAIMS = {"sub": "customer-1", "aud": "fairdrop", "exp": NOW_S + 60}
RSA = RSAKey.generate_key(2048, {"kid": "rsa-1"})
EC = ECKey.generate_key("P-256", {"kid": "ec-1"})


def signed(key: Any = None, algorithm: str = "HS256", **changes: Any) -> str:
    claims = {name: value for name, value in {**CLAIMS, **changes}.items() if value is not None}
    key = key or OctKey.import_key(SECRET)
    header = {"alg": algorithm}
    if getattr(key, "kid", None):
        header["kid"] = key.kid
    return jwt.encode(header, claims, key, algorithms=[algorithm])


def by_secret(**more: Any) -> ShopTokens:
    return ShopTokens(audience="fairdrop", secret=SECRET, **more)


def test_a_token_of_the_shop_names_its_buyer() -> None:
    read = by_secret().read(signed(email="ada@example.org"), NOW_S)
    assert read == ShopBuyer("customer-1", "ada@example.org", NOW_S + 60)
    assert isinstance(by_secret().read(signed(aud=["x", "fairdrop"]), NOW_S), ShopBuyer)
    unverified = by_secret().read(signed(email="a@b.c", email_verified=False), NOW_S)
    assert isinstance(unverified, ShopBuyer)
    assert unverified.email is None


@pytest.mark.parametrize(
    ("token", "refusal"),
    [
        (signed(OctKey.import_key("another-secret-of-more-than-32-bytes")), BuyerRefusal.FORGED),
        (signed()[:-4] + "AAAA", BuyerRefusal.FORGED),
        (signed(sub=None), BuyerRefusal.FORGED),
        (signed(sub=""), BuyerRefusal.FORGED),
        (signed(sub="x" * 201), BuyerRefusal.FORGED),
        (signed(sub=["a"]), BuyerRefusal.FORGED),
        (signed(exp=None), BuyerRefusal.FORGED),
        (signed(exp="never"), BuyerRefusal.FORGED),
        (signed(aud="somebody"), BuyerRefusal.NOT_FOR_US),
        (signed(aud=None), BuyerRefusal.NOT_FOR_US),
        (signed(exp=NOW_S), BuyerRefusal.EXPIRED),
        ("a.b.c", BuyerRefusal.FORGED),
        ("x" * 10_000, BuyerRefusal.FORGED),
        ("eyJhbGciOiJub25lIn0.e30.", BuyerRefusal.FORGED),
    ],
)
def test_what_names_nobody_is_told_apart(token: str, refusal: BuyerRefusal) -> None:
    tokens = by_secret()
    assert tokens.read(token, NOW_S) is refusal
    assert tokens.read(token, NOW_S) is refusal


def test_a_remembered_token_expires_all_the_same() -> None:
    tokens, token = by_secret(), signed()
    assert isinstance(tokens.read(token, NOW_S), ShopBuyer)
    assert tokens.read(token, NOW_S + 60) is BuyerRefusal.EXPIRED


def test_the_issuer_counts_where_it_is_set() -> None:
    tokens = by_secret(issuer="https://shop.test")
    assert tokens.read(signed(), NOW_S) is BuyerRefusal.NOT_FOR_US
    assert isinstance(tokens.read(signed(iss="https://shop.test"), NOW_S), ShopBuyer)


def test_settings_that_would_be_unsafe_are_refused() -> None:
    for wrong in ({}, {"secret": "short"}, {"secret": SECRET, "jwks_url": "http://shop.test"}):
        with pytest.raises(ValueError):  # noqa: PT011 - each with words of its own
            ShopTokens(audience="fairdrop", **wrong)  # type: ignore[arg-type]


# ---------------------------------------------------------------- public keys


class _Keys(BaseHTTPRequestHandler):
    """The shop's JWKS address."""

    document: Any = {}  # noqa: RUF012 - of this test's server
    status = 200
    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        body = json.dumps(self.document).encode()
        self.send_response(self.status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Silent."""


@pytest.fixture
def jwks() -> Iterator[str]:
    _Keys.document, _Keys.status, _Keys.asked = KeySet([RSA, EC]).as_dict(), 200, 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Keys)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/jwks"
    server.shutdown()
    server.server_close()
    thread.join()


async def until_read(tokens: ShopTokens, token: str) -> ShopBuyer | BuyerRefusal:
    async with asyncio.timeout(10):
        while (read := tokens.read(token, NOW_S)) is BuyerRefusal.KEYS_AWAY:
            await asyncio.sleep(0.01)
    return read


async def test_the_shops_public_keys_are_fetched_beside_the_requests(jwks: str) -> None:
    tokens = ShopTokens(audience="fairdrop", jwks_url=jwks)
    assert tokens.read(signed(RSA, "RS256"), NOW_S) is BuyerRefusal.KEYS_AWAY
    assert isinstance(await until_read(tokens, signed(RSA, "RS256")), ShopBuyer)
    assert isinstance(tokens.read(signed(EC, "ES256"), NOW_S), ShopBuyer)
    # The public key as the secret of a MAC is no way in.
    public = OctKey.import_key(RSA.as_pem(private=False).hex(), {"kid": "rsa-1"})
    assert tokens.read(signed(public), NOW_S) is BuyerRefusal.FORGED
    assert _Keys.asked == 1


async def test_a_new_key_of_the_shop_is_looked_for_but_not_for_everybody_who_asks(
    jwks: str,
) -> None:
    now = 1_000.0
    tokens = ShopTokens(audience="fairdrop", jwks_url=jwks, clock=lambda: now)
    await tokens.fetch()
    new = ECKey.generate_key("P-256", {"kid": "ec-2"})
    token = signed(new, "ES256")
    for n in range(20):
        stranger = ECKey.generate_key("P-256", {"kid": f"made-up-{n}"})
        assert tokens.read(signed(stranger, "ES256"), NOW_S) is BuyerRefusal.FORGED
    assert _Keys.asked == 1
    _Keys.document = KeySet([new]).as_dict()
    now += 6
    assert tokens.read(token, NOW_S) is BuyerRefusal.KEYS_AWAY
    assert isinstance(await until_read(tokens, token), ShopBuyer)
    # And the old one is worth nothing any more.
    assert tokens.read(signed(EC, "ES256"), NOW_S) is BuyerRefusal.FORGED


async def test_a_shop_that_does_not_answer_leaves_the_keys_that_were_known(jwks: str) -> None:
    tokens = ShopTokens(audience="fairdrop", jwks_url=jwks)
    await tokens.fetch()
    for status, document in ((500, {}), (200, {"keys": 5}), (200, []), (404, None)):
        _Keys.status, _Keys.document = status, document
        await tokens.fetch()
        assert isinstance(tokens.read(signed(EC, "ES256"), NOW_S), ShopBuyer)


# ---------------------------------------------------------------- over HTTP


@asynccontextmanager
async def site(services: BackgroundServices, url: str) -> AsyncIterator[httpx.AsyncClient]:
    secret = SecretStr(SECRET)
    async with (
        open_parts(settings_for(services, url, shop_jwt_secret=secret)) as parts,
        client_of(parts, key=None) as client,
    ):
        yield client


def current(**changes: Any) -> dict[str, str]:
    return {"authorization": f"Bearer {signed(exp=int(time.time()) + 60, **changes)}"}


async def test_a_buyer_of_the_shop_is_one_visitor_however_they_come(
    services: BackgroundServices, database_url: str, client: httpx.AsyncClient
) -> None:
    """From two browsers, and through the shop's server: one place (W1, S2)."""
    sale = await opened(client)
    join, me = f"/v1/sales/{sale['id']}/join", f"/v1/sales/{sale['id']}/me"
    async with site(services, database_url) as shop:
        first = await shop.post(join, headers=current())
        assert first.status_code == 200, first.text
        assert "visitor_token" not in first.json()
        shop.cookies.clear()
        key = {"authorization": f"Bearer {ADMIN_KEY}"}
        beside = {"fairdrop-shop-key": ADMIN_KEY}
        for headers in (
            current(jti="another"),
            {**key, "fairdrop-buyer": "customer-1"},
            {**beside, "fairdrop-buyer": "customer-1"},
        ):
            answer = await shop.post(join, headers=headers)
            assert answer.json()["position"] == first.json()["position"] == 1
        other = await shop.post(join, headers={**key, "fairdrop-buyer": "customer-2"})
        assert other.json()["position"] == 2
        assert (await shop.get(me, headers=current(sub="customer-2"))).json()["position"] == 2
        unicode = {**key, "fairdrop-buyer": "Zoë 李".encode()}
        assert (await shop.post(join, headers=unicode)).json()["position"] == 3  # type: ignore[arg-type]
        assert (await shop.post(join, headers=current(sub="Zoë 李"))).json()["position"] == 3


async def test_nobody_acts_for_a_buyer_without_the_shops_key(
    services: BackgroundServices, database_url: str, client: httpx.AsyncClient
) -> None:
    sale = await opened(client)
    join = f"/v1/sales/{sale['id']}/join"
    async with site(services, database_url) as shop:
        for headers in (
            {"fairdrop-buyer": "customer-1"},
            {"fairdrop-buyer": "customer-1", "authorization": "Bearer not-the-key-of-the-shop"},
            {"fairdrop-buyer": "customer-1", **current()},
        ):
            problem(await shop.post(join, headers=headers), 401, "api_key_required")
        key = {"authorization": f"Bearer {ADMIN_KEY}"}
        for buyer in (b"", b"\xff\xfe", b"x" * 201):
            unreadable: Any = {**key, "fairdrop-buyer": buyer}
            problem(await shop.post(join, headers=unreadable), 422, "invalid_request")
        for token, code in (
            (current(aud="somebody"), "buyer_token_not_for_us"),
            ({"authorization": "Bearer a.b.c"}, "buyer_token_forged"),
            ({"authorization": f"Bearer {signed(exp=1)}"}, "buyer_token_expired"),
        ):
            problem(await shop.post(join, headers=token), 401, code)
        public = (await shop.get(f"/v1/sales/{sale['id']}")).json()
        assert public["tail"] == 0


async def test_an_invited_address_needs_no_code_when_the_shop_vouches_for_it(
    services: BackgroundServices, database_url: str, client: httpx.AsyncClient
) -> None:
    """W19: the address is invited, whichever way it is spelt; others are not."""
    sale = await opened(client)
    await client.put(f"/admin/v1/sales/{sale['id']}/access", json={"entry": "invited"})
    body = {"kind": "email", "values": ["Ada@Example.org"], "tier": "priority"}
    await client.post(f"/admin/v1/sales/{sale['id']}/invites", json=body)
    join = f"/v1/sales/{sale['id']}/join"
    async with site(services, database_url) as shop:
        invited = await shop.post(join, headers=current(sub="ada", email="ada@example.org"))
        assert invited.status_code == 200, invited.text
        assert invited.json()["position"] < 0
        for other in (
            current(sub="eve", email="eve@example.org"),
            current(sub="eve", email="ada@example.org", email_verified=False),
            current(sub="eve", email="ada@example.org"),  # used by ada already
        ):
            problem(await shop.post(join, headers=other), 403, "invite_required")
