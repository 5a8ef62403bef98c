"""Each invariant breaks on its own figures, and a good sale breaks none."""

from collections.abc import Mapping

import pytest

from fairdrop.payments import CaptureMode
from fairdrop.rehearsal.invariants import Invariant, broken, judge

GOOD = {
    "units_total": 200,
    "units_sold": 200,
    "units_held": 0,
    "units_free": 0,
    "oversold": 0,
    "paid_without_order": 0,
    "duplicate_charges": 0,
    "ledger_debits_minor": 123_456,
    "ledger_credits_minor": 123_456,
    "ledger_variance_minor": 0,
    "orders_refunded": 0,
    "refunds_pending": 0,
}


def verdicts(
    figures: Mapping[str, int] = GOOD,
    *,
    differences: tuple[str, ...] = (),
    unfinished: Mapping[str, int] | None = None,
    still_wanting: int = 0,
    complaints: Mapping[str, int] | None = None,
    capture: CaptureMode = CaptureMode.AUTOMATIC,
) -> list[Invariant]:
    return judge(
        figures,
        differences,
        currency="EUR",
        unfinished=unfinished or {"orders": 0},
        still_wanting=still_wanting,
        complaints=complaints or {},
        capture=capture,
    )


def names(invariants: list[Invariant]) -> set[str]:
    return {invariant.name for invariant in broken(invariants)}


def test_a_good_sale_breaks_nothing() -> None:
    assert names(verdicts()) == set()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"oversold": 1}, {"never_oversold"}),
        ({"units_sold": 201}, {"never_oversold", "units_add_up"}),
        ({"units_sold": 199}, {"units_add_up"}),
        ({"units_sold": 199, "units_held": 1}, {"everything_ended"}),
        ({"units_sold": 199, "units_free": 1}, set()),
        ({"paid_without_order": 1}, {"paid_means_served"}),
        ({"duplicate_charges": 1}, {"charged_once"}),
        ({"ledger_debits_minor": 1}, {"books_balance"}),
        ({"ledger_variance_minor": -1}, {"books_balance"}),
    ],
)
def test_each_figure_breaks_its_invariant(change: dict[str, int], expected: set[str]) -> None:
    assert names(verdicts({**GOOD, **change})) == expected


def test_a_free_unit_that_somebody_still_wants_breaks_the_sale() -> None:
    left = {**GOOD, "units_sold": 199, "units_free": 1}
    assert names(verdicts(left, still_wanting=1)) == {"all_that_was_wanted_is_sold"}
    assert names(verdicts(still_wanting=1)) == set()


@pytest.mark.parametrize("figure", ["orders_refunded", "refunds_pending"])
def test_a_refund_breaks_a_sale_that_takes_the_money_last_and_no_other(figure: str) -> None:
    one = {**GOOD, figure: 1}
    assert names(verdicts(one, capture=CaptureMode.MANUAL)) == {"nothing_to_refund"}
    assert names(verdicts(one)) == set()
    assert names(verdicts(capture=CaptureMode.MANUAL)) == set()


def test_what_is_under_way_breaks_the_end() -> None:
    found = verdicts(unfinished={"orders": 0, "refunds": 2})
    assert names(found) == {"everything_ended"}
    assert broken(found)[0].figures == "refunds 2"


def test_a_difference_between_the_parts_breaks_the_audit() -> None:
    assert names(verdicts(differences=("order x is paid at the gateway only",))) == {
        "audit_is_clean"
    }


def test_an_answer_that_must_not_be_breaks_the_promise() -> None:
    assert names(verdicts(complaints={"join: 500": 3})) == {"answers_as_promised"}
