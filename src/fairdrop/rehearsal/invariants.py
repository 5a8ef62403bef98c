"""What must hold at the end of a sale, each with its figures. Pure: figures in, verdicts out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fairdrop.money import format_minor
from fairdrop.payments import CaptureMode

UNITS = ("units_total", "units_sold", "units_held", "units_free")


@dataclass(frozen=True, slots=True)
class Invariant:
    """One promise, and whether it was kept."""

    name: str
    promise: str
    figures: str
    holds: bool


def judge(  # noqa: PLR0913 - all that a verdict looks at
    figures: Mapping[str, int],
    differences: Sequence[str],
    *,
    currency: str,
    unfinished: Mapping[str, int],
    still_wanting: int,
    complaints: Mapping[str, int],
    capture: CaptureMode = CaptureMode.AUTOMATIC,
) -> list[Invariant]:
    """Every invariant of a sale that has ended.

    ``figures`` are the audit's (see the keys used), ``differences`` what it found between store,
    orders, units, ledger and gateway, in words. ``unfinished`` counts what is still under way by
    kind; ``still_wanting`` the buyers who were there to the end and had no unit; ``complaints``
    the answers that buyers should not have got. With manual ``capture`` money is taken last, and so
    there is one promise more.
    """
    total, sold, held, free = (figures[name] for name in UNITS)
    debits, credits_ = figures["ledger_debits_minor"], figures["ledger_credits_minor"]
    pending = {name: count for name, count in unfinished.items() if count}
    going_back = figures["orders_refunded"] + figures["refunds_pending"]
    taken_last = Invariant(
        "nothing_to_refund",
        "Money is taken for units that are secured: none has to go back",
        f"{going_back:,} orders refunded",
        going_back == 0,
    )
    return [
        Invariant(
            "never_oversold",
            "No unit is sold twice, and none that does not exist",
            f"{sold:,} of {total:,} sold, oversold {figures['oversold']:,}",
            figures["oversold"] == 0 and sold <= total,
        ),
        Invariant(
            "units_add_up",
            "Sold, held and free units are all the units there are",
            f"{sold:,} + {held:,} + {free:,} = {sold + held + free:,} of {total:,}",
            sold + held + free == total,
        ),
        Invariant(
            "all_that_was_wanted_is_sold",
            "Units that came back went to those who still wanted them",
            f"{free:,} free, {still_wanting:,} buyers still wanting one",
            free == 0 or still_wanting == 0,
        ),
        Invariant(
            "paid_means_served",
            "Whoever paid has an order, or the money back",
            f"paid without order {figures['paid_without_order']:,}",
            figures["paid_without_order"] == 0,
        ),
        Invariant(
            "charged_once",
            "Nobody is charged twice for one order",
            f"duplicate charges {figures['duplicate_charges']:,}",
            figures["duplicate_charges"] == 0,
        ),
        Invariant(
            "books_balance",
            "Debits equal credits, and the books match the gateway's record",
            f"{format_minor(debits, currency)} = {format_minor(credits_, currency)}, "
            f"variance {format_minor(figures['ledger_variance_minor'], currency)}",
            debits == credits_ and figures["ledger_variance_minor"] == 0,
        ),
        Invariant(
            "everything_ended",
            "No order, payment, refund or held unit is left half done",
            ", ".join(f"{name} {count:,}" for name, count in pending.items()) or "0 left",
            not pending and held == 0,
        ),
        Invariant(
            "audit_is_clean",
            "Store, orders, units, ledger and gateway agree",
            f"{len(differences):,} differences",
            not differences,
        ),
        Invariant(
            "answers_as_promised",
            "Every buyer got an answer that the API promises",
            f"{sum(complaints.values()):,} others",
            not complaints,
        ),
        *([taken_last] if capture is CaptureMode.MANUAL else []),
    ]


def broken(invariants: Sequence[Invariant]) -> list[Invariant]:
    """Those that do not hold."""
    return [invariant for invariant in invariants if not invariant.holds]
