"""Where a request comes from, as far as a limit is concerned: one household, one key.

An IPv4 address stands for itself: many people may share one (a company, a mobile network), so it
is never widened. An IPv6 address stands for its /56, which is what a home gets (RIPE-690): a client
there has 2^72 addresses to choose from.

The address is the peer's, unless the peer is a proxy that the settings trust; then it is the last
entry of X-Forwarded-For that no trusted proxy has written. What stands before it anybody can write.
"""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING

from fairdrop.memory import make_room

if TYPE_CHECKING:
    from collections.abc import Iterable
    from ipaddress import IPv4Address, IPv4Network, IPv6Network

IPV6_PREFIX = 56
PRIVATE = (
    "127.0.0.0/8",
    "::1/128",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "fc00::/7",
)
_REMEMBERED = 100_000
_LONGEST_REMEMBERED = 200


class Addresses:
    """Finds the key of a request's address; remembers what it found."""

    def __init__(self, trusted: Iterable[str]) -> None:
        """Take the trusted proxies as networks, like ``10.0.0.0/8``. Raises ValueError.

        ``private`` stands for this machine and all private networks (RFC 1918, RFC 4193).
        """
        networks = [n for each in trusted for n in (PRIVATE if each == "private" else (each,))]
        self._trusted: tuple[IPv4Network | IPv6Network, ...] = tuple(map(ip_network, networks))
        self._known: dict[tuple[str, str], str] = {}

    def key(self, peer: str, forwarded: str = "") -> str:
        """The key; empty for a machine of one's own, which no limit is for.

        ``peer`` is the other end of the connection, ``forwarded`` the X-Forwarded-For header. Costs
        one look-up for an address seen before.
        """
        found = self._known.get((peer, forwarded))
        if found is None:
            found = self._find(peer, forwarded)
            if len(forwarded) > _LONGEST_REMEMBERED:
                return found  # anybody can write a long one, and each would be kept
            make_room(self._known, _REMEMBERED)
            self._known[peer, forwarded] = found
        return found

    def _find(self, peer: str, forwarded: str) -> str:
        address = _address(peer)
        if address is None:
            # A Unix socket, which only a proxy on this machine can reach.
            address = ip_address("127.0.0.1")
        hops = forwarded.split(",") if forwarded else []
        while self._trusts(address):
            hop = _address(hops.pop().strip()) if hops else None
            if hop is None:
                return ""
            address = hop
        if isinstance(address, IPv6Address):
            return str(ip_network((int(address), IPV6_PREFIX), strict=False))
        return str(address)

    def _trusts(self, address: IPv4Address | IPv6Address) -> bool:
        return any(address in network for network in self._trusted)


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """The address; None when it is none. Some proxies add the port, and brackets around IPv6."""
    plain = text.strip()
    if plain.startswith("["):
        plain = plain[1:].partition("]")[0]
    elif plain.count(":") == 1:
        plain = plain.partition(":")[0]
    try:
        address = ip_address(plain.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
