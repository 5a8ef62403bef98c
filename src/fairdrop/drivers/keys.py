"""The names of all keys in the store, made in one place.

Every key of a sale carries the sale's hash tag, so that one script can touch them all in a
cluster, and the sale's epoch, so that nothing written before a rebuild or a reset can count after
it. Scripts name their keys in their header (``KEYS: cfg line ...``); the names below are the only
ones they may use.
"""

from __future__ import annotations

from types import MappingProxyType

NAMES = MappingProxyType(
    {
        "cfg": "hash: mode, pace, limits and deadlines of the sale, and the version they come from",
        "ctr": "hash: counters of the line (seq, served, joined, admitted, left, ...), its token bucket",
        "line": "sorted set: visitor -> position; those who wait",
        "lobby": "list: <entry id><visitor>, in order of arrival; those who came before the opening",
        "entrant": "hash: visitor -> entry id, '!' before it once they left; gone when they are in the line",
        "called": "sorted set: visitor -> claim deadline (ms); those invited to enter",
        "active": "sorted set: visitor -> lease deadline (ms); those inside",
        "missed": "sorted set: visitor -> position; called, but did not claim in time",
        "place": "hash: visitor -> position, for those called or inside",
        "adm": "hash: visitor -> '<admission id>:<issued at, s>', for those inside",
        "admhold": "hash: visitor -> hold id, for those inside who have reserved; '' once it is sold",
        "revoked": "sorted set: admission id -> lease deadline (ms); those that ended before it",
        "rates": "prefix of hashes, one a minute: <policy>:<client> -> requests (of the installation)",
        "seen": "hash: what the checkout did since the last step of the adaptive pace, and its number",
        "spent": "prefix of strings that expire: <id> -> the attempt that used it, for what counts once",
        "stk": "hash: <variant>:q quantity, :l last serial, :n next fresh serial, :h held, :s sold",
        "ret": "prefix of lists: <ret>:<variant> -> serials that came back",
        "holds": "hash: hold id -> msgpack [buyer, admission, deadline, phase, lines, marks if any]",
        "verified": "hash: mark of a verified phone or payment method -> hold id",
        "due": "sorted set: hold id -> deadline (ms)",
        "backs": "set: ids of refunds whose units have come back",
        "buyer": "hash: buyer -> units held and bought in the sale",
        "waited": "string: written after a script whose effects are waited for, to be waited for",
        "idem": "prefix of hashes, one a period: <buyer>:<key> -> msgpack [fingerprint, first answer]",
    }
)

EVENT_STREAM = "fd:{events}"
"""The stream of all events, of the installation: ``event`` -> a CloudEvents document (E3)."""


def sale_key(sale_id: str, epoch: int, name: str) -> str:
    """The full key of one of a sale's structures; ``name`` is one of :data:`NAMES`."""
    if name not in NAMES:
        raise KeyError(name)
    return f"fd:{{{sale_id}}}:{epoch}:{name}"
