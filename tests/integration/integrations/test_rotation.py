"""A shop's door follows the keys of its Fairdrop, and shares a secret where there is no public key (W12)."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from fairdrop.integrations import Answer, Door, Passed, Visit
from fairdrop.waiting_room import AdmissionTokens, Algorithm, new_signing_key


class Keys:
    """What a Fairdrop publishes: its keys and its list, and how often it was asked for each."""

    def __init__(self) -> None:
        self.tokens = AdmissionTokens([new_signing_key()])
        self.revoked: list[str] = []
        self.epoch = 1
        self.asked: list[str] = []
        keys = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                keys.asked.append(self.path)
                document: Any = {
                    "sale": "the-sale",
                    "slug": "drop",
                    "epoch": keys.epoch,
                    "revoked": keys.revoked,
                }
                if self.path == "/.well-known/jwks.json":
                    document = keys.tokens.jwks()
                body = json.dumps(document).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Silent."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def token(self, **changes: Any) -> str:
        now_s = int(time.time())
        claims = {
            "sale": "the-sale",
            "buyer": "ann",
            "admission": "adm-of-ann-and-more",
            "issued_s": now_s,
            "deadline_ms": (now_s + 60) * 1_000,
            "epoch": 1,
        }
        return self.tokens.issue(**{**claims, **changes})

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def keys() -> Iterator[Keys]:
    keys = Keys()
    yield keys
    keys.stop()


def shown(door: Door, token: str) -> str:
    """What the door says: ``in``, or the reason."""
    visit = Visit("GET", "/", "http://shop.test/", {"fairdrop-admission": token})
    decided = door.decide(visit)
    if isinstance(decided, Passed):
        return "in"
    assert isinstance(decided, Answer)
    return dict(decided.headers)["fairdrop-reason"]


def test_a_new_key_is_fetched_when_its_first_token_comes(
    keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairdrop.integrations.knowledge.KEYS_PAUSE_S", 0.0)
    door = Door(keys.url, "drop")
    old_token = keys.token()
    assert shown(door, old_token) == "in"
    old = keys.tokens
    text = new_signing_key(Algorithm.ES256)
    keys.tokens = AdmissionTokens([text])
    new_token = keys.token()
    assert shown(door, new_token) == "in"
    # The ring it now has is the one published: the old key was taken back, and so were its tokens.
    assert shown(door, old_token) == "admission_forged"
    assert old.read(old_token) is not None


def test_a_key_that_is_not_there_is_looked_for_once_in_a_while(keys: Keys) -> None:
    door = Door(keys.url, "drop")
    assert shown(door, keys.token()) == "in"
    keys.tokens = AdmissionTokens([new_signing_key()])
    for _ in range(20):
        assert shown(door, keys.token()) == "admission_forged"
    assert keys.asked.count("/.well-known/jwks.json") == 1


def test_a_shared_secret_verifies_what_no_public_key_can(keys: Keys) -> None:
    secret = new_signing_key(Algorithm.HS256)
    keys.tokens = AdmissionTokens([secret])
    assert keys.tokens.jwks() == {"keys": []}
    token = keys.token()
    assert shown(Door(keys.url, "drop", secrets=[secret]), token) == "in"
    assert shown(Door(keys.url, "drop"), token) == "admission_forged"


def test_what_the_list_says_counts_at_its_next_refresh(
    keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairdrop.integrations.knowledge.LIST_FRESH_S", 0.0)
    door = Door(keys.url, "drop")
    token = keys.token()
    keys.revoked = ["another8"]
    assert _settles(door, token, "in")
    keys.revoked = ["adm-of-a"]
    assert _settles(door, token, "admission_revoked")
    keys.revoked, keys.epoch = [], 2
    assert _settles(door, token, "admission_revoked")
    assert _settles(door, keys.token(epoch=2), "in")


def _settles(door: Door, token: str, wanted: str) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        visit = Visit("GET", "/", "http://shop.test/", {"fairdrop-admission": token})
        decided = door.decide(visit)
        reason = (
            "in" if isinstance(decided, Passed) else dict(decided.headers).get("fairdrop-reason")
        )
        if reason == wanted:
            return True
        time.sleep(0.01)
    return False


def test_a_door_may_ask_whose_token_it_has_to_be(keys: Keys) -> None:
    """A shop that knows its buyers lets nobody in with somebody else's token."""
    door = Door(keys.url, "drop", buyer=lambda visit: visit.headers.get("x-customer"))
    for customer, said in (("ann", "in"), ("bob", "admission_other_buyer")):
        headers = {"fairdrop-admission": keys.token(), "x-customer": customer}
        decided = door.decide(Visit("GET", "/", "http://shop.test/", headers))
        reason = "in" if isinstance(decided, Passed) else dict(decided.headers)["fairdrop-reason"]
        assert reason == said
