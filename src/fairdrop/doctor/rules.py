"""What the figures mean. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .model import Finding, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .model import Waiting

SKEW_MS = 500
"""Clocks further apart than this end holds and orders at visibly different moments."""
TRIED_OFTEN = 5
"""Tries after which something that is retried by itself is worth a look."""
_SHOWN = 120

_KINDS = {
    "webhooks": ("Webhooks to settle", "is a worker running, and what does its log say?"),
    "refunds": ("Refunds to pay out", "does the gateway answer, and has its account the money?"),
    "mails": ("Mails to send", "does the mail server answer, and take mails from us?"),
    "payments": ("Payments to ask about", "is a worker running, and does the gateway answer?"),
    "deadlines": ("Orders to expire", "is a worker running? Nothing else expires orders."),
    "completions": ("Completions to tell", "does the store answer, and is a worker running?"),
}


def judge_waiting(found: Iterable[Waiting]) -> Iterator[Finding]:
    """Work that waits: well while it moves; wrong when nobody takes it, or it fails again and again."""
    for each in found:
        about, question = _KINDS[each.kind]
        if not each.waiting:
            yield Finding(about, Verdict.WELL, "none")
            continue
        words = f"{each.waiting:,}, the oldest for {duration(each.oldest_s)}"
        if each.left_lying:
            words = f"{each.left_lying:,} of {words}: nobody takes them"
            advice = "Start `fairdrop worker`; one that runs says in its log what it waits for."
            yield Finding(about, Verdict.WRONG, words, advice)
        elif each.tries >= TRIED_OFTEN and each.kind != "payments":
            why = f" ({each.error[:_SHOWN]})" if each.error else ""
            words += f", tried {each.tries} times{why}"
            yield Finding(about, Verdict.WRONG, words, f"It is tried again by itself: {question}")
        else:
            yield Finding(about, Verdict.WELL, words)


def judge_failed_mails(mails: int, error: str | None) -> Iterator[Finding]:
    """Mails that were given up."""
    if mails:
        yield Finding(
            "Mails given up",
            Verdict.WRONG,
            f"{mails:,}, such as: {(error or 'no reason')[:_SHOWN]}",
            "Tell these buyers another way: SELECT order_id FROM order_mails WHERE state = 'FAILED'.",
        )


def judge_overdue_holds(overdue: Mapping[str, int]) -> Finding:
    """Holds of running sales that are past their deadline by more than a minute, by sale."""
    late = {sale: count for sale, count in overdue.items() if count}
    if not late:
        return Finding("Holds to release", Verdict.WELL, "none past its deadline")
    words = ", ".join(f"{count:,} of {sale}" for sale, count in late.items())
    return Finding(
        "Holds to release",
        Verdict.WRONG,
        f"{words}, a minute past their deadline",
        "Start `fairdrop worker`: its sweep gives units back. Then `fairdrop audit`.",
    )


def judge_gateways(needed: Mapping[str, int], configured: Iterable[str]) -> Iterator[Finding]:
    """Payments and refunds whose gateway is not configured here: nobody asks about their money."""
    there = set(configured)
    for name, count in needed.items():
        if name not in there:
            yield Finding(
                f"Gateway {name}",
                Verdict.WRONG,
                f"not configured, and {count:,} open payments or refunds wait for it",
                "Set its key and address again (`fairdrop config`), at least for the workers.",
            )
    if not there:
        yield Finding("Gateways", Verdict.NOTE, "none is configured: nothing can be paid")


def judge_clocks(ours_ms: float, store_ms: float, database_ms: float) -> Finding:
    """The three clocks, each read at the same moment as near as the network allows."""
    apart = {
        "store and database": abs(store_ms - database_ms),
        "this machine and store": abs(ours_ms - store_ms),
        "this machine and database": abs(ours_ms - database_ms),
    }
    worst = max(apart, key=lambda pair: apart[pair])
    if apart[worst] <= SKEW_MS:
        return Finding("Clocks", Verdict.WELL, f"agree within {max(apart.values()):.0f} ms")
    return Finding(
        "Clocks",
        Verdict.WRONG,
        f"{worst} are {duration(apart[worst] / 1_000)} apart",
        "Have all machines follow one time server (chrony, systemd-timesyncd).",
    )


def judge_revision(present: str | None, expected: str) -> Finding:
    """Whether the database has the schema that this code expects."""
    if present is not None and present >= expected:
        newer = " (newer code has been here)" if present > expected else ""
        return Finding("Migrations", Verdict.WELL, f"at {present}{newer}")
    return Finding(
        "Migrations",
        Verdict.WRONG,
        f"the database is at {present or 'nothing'}, this code expects {expected}",
        "Start `fairdrop web` or `fairdrop worker` once: the first one to come migrates.",
    )


def duration(seconds: float) -> str:
    """For people.

    >>> duration(0.25), duration(42), duration(600), duration(90_000)
    ('0.2 s', '42 s', '10 min', '25 h')
    """
    if seconds < 1:
        return f"{seconds:.1f} s"
    for unit, size in (("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
