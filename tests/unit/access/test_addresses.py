"""Whose request it is, for a limit (W18): no header that a client can write changes that."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairdrop.access import Addresses

TRUSTED = ("private", "198.51.200.0/24")


@pytest.mark.parametrize(
    ("peer", "forwarded", "key"),
    [
        ("203.0.113.7", "", "203.0.113.7"),
        # A stranger says what they like: the peer is who they are.
        ("203.0.113.7", "198.51.100.1", "203.0.113.7"),
        ("127.0.0.1", "198.51.100.1", "198.51.100.1"),
        # The last entry is the proxy's own; the first is the client's invention.
        ("127.0.0.1", "1.2.3.4, 198.51.100.1", "198.51.100.1"),
        ("127.0.0.1", "198.51.100.1, 10.1.2.3", "198.51.100.1"),
        ("10.1.2.3", " 198.51.100.1 ", "198.51.100.1"),
        ("198.51.200.9", "198.51.100.1", "198.51.100.1"),
        ("127.0.0.1", "198.51.100.1:4711", "198.51.100.1"),
        ("127.0.0.1", "[2001:db8:1:2:3:4:5:6]:4711", "2001:db8:1::/56"),
        # One home has a /56 to choose from.
        ("2001:db8:0:11::1", "", "2001:db8::/56"),
        ("2001:db8:0:ff:ffff::1", "", "2001:db8::/56"),
        ("2001:db8:0:100::1", "", "2001:db8:0:100::/56"),
        ("::ffff:203.0.113.7", "", "203.0.113.7"),
        # One's own machines: a proxy that tells nothing, a test, a health check.
        ("127.0.0.1", "", ""),
        ("10.1.2.3", "10.9.9.9", ""),
        ("127.0.0.1", "unknown", ""),
        ("127.0.0.1", "198.51.100.1, nonsense", ""),
        ("", "198.51.100.1", "198.51.100.1"),
        ("", "", ""),
    ],
)
def test_a_request_has_one_key(peer: str, forwarded: str, key: str) -> None:
    addresses = Addresses(TRUSTED)
    assert addresses.key(peer, forwarded) == key
    assert addresses.key(peer, forwarded) == key


@given(st.text(), st.text())
def test_anything_may_be_sent(peer: str, forwarded: str) -> None:
    assert isinstance(Addresses(TRUSTED).key(peer, forwarded), str)


@given(st.text())
def test_a_stranger_cannot_change_their_key(forwarded: str) -> None:
    assert Addresses(TRUSTED).key("203.0.113.7", forwarded) == "203.0.113.7"


def test_what_is_no_network_is_refused() -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the library's words
        Addresses(["everywhere"])
