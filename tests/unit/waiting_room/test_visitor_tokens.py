"""The visitor token: an identity exists only if the server gave it out (case 39)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairdrop.waiting_room import VisitorTokens

KEY = b"k" * 32
OTHER_KEY = b"o" * 32


def test_an_identity_that_was_given_out_is_known_in_every_process() -> None:
    visitor, token = VisitorTokens(KEY).new()
    assert token.startswith("fdv1.")
    assert VisitorTokens(KEY).visitor(token) == visitor
    assert VisitorTokens(KEY).token(visitor) == token


def test_every_identity_is_another() -> None:
    tokens = VisitorTokens(KEY)
    assert len({tokens.new() for _ in range(1_000)}) == 1_000


def test_a_client_cannot_make_identities_up() -> None:
    tokens = VisitorTokens(KEY)
    visitor, token = tokens.new()
    other, other_token = tokens.new()
    mac = token.split(".")[2]
    for made_up in (
        f"fdv1.{other}.{mac}",
        f"fdv1.{visitor}x.{mac}",
        f"fdv1.{visitor}.",
        f"fdv1.{visitor}",
        f"fdv1..{mac}",
        f"fdv1.{visitor}.{mac}.",
        f"fdv1.{visitor}.{mac}=",
        f"fdv1.{visitor}.{mac[:-1]}",
        f"fdv2.{visitor}.{mac}",
        f".{visitor}.{mac}",
        VisitorTokens(OTHER_KEY).token(visitor),
        visitor,
        "",
        "..",
    ):
        assert tokens.visitor(made_up) is None
        assert tokens.visitor(made_up) is None
    assert tokens.visitor(other_token) == other


def test_a_change_in_any_character_is_seen() -> None:
    tokens = VisitorTokens(KEY)
    _, token = tokens.new()
    for at in range(len(token)):
        changed = token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]
        assert tokens.visitor(changed) is None


@given(text=st.text())
def test_nothing_that_a_client_can_send_is_more_than_unknown(text: str) -> None:
    assert VisitorTokens(KEY).visitor(text) is None


@given(visitor=st.text(), mac=st.text())
def test_nothing_of_the_right_shape_is_either(visitor: str, mac: str) -> None:
    assert VisitorTokens(KEY).visitor(f"fdv1.{visitor}.{mac}") is None


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        VisitorTokens(b"k" * 31)


def test_what_a_process_remembers_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairdrop.waiting_room.tokens._REMEMBERED", 20)
    tokens = VisitorTokens(KEY)
    made = [tokens.new() for _ in range(60)]
    for visitor, token in made * 2:
        assert tokens.visitor(token) == visitor
        assert len(tokens._known) <= 20
    tokens.visitor("fdv1.stranger.mac")
    assert b"fdv1.stranger.mac" not in tokens._known


def test_a_visitor_is_one_object_however_often_the_token_is_shown() -> None:
    tokens = VisitorTokens(KEY)
    visitor, token = tokens.new()
    known = tokens.known(token.encode())
    assert known is not None
    assert known.key == visitor == tokens.visitor(token)
    assert tokens.known(token.encode()) is known
    for forged in (b"", b"\xff", token.encode()[:-1], b"Bearer " + token.encode()):
        assert tokens.known(forged) is None


def test_a_clients_random_key_is_one_visitor_however_often_it_is_sent() -> None:
    tokens = VisitorTokens(b"k" * 32)
    first, again = tokens.derived("a" * 32), tokens.derived("a" * 32)
    assert first == again
    visitor, token = first
    assert tokens.visitor(token) == visitor
    assert tokens.derived("b" * 32)[0] != visitor
    assert VisitorTokens(b"l" * 32).derived("a" * 32)[0] != visitor
