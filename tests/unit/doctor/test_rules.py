"""What figures mean to the doctor: near misses beside what is wrong."""

import pytest

from fairdrop.doctor import Finding, Verdict, Waiting
from fairdrop.doctor.rules import (
    SKEW_MS,
    TRIED_OFTEN,
    judge_clocks,
    judge_failed_mails,
    judge_gateways,
    judge_overdue_holds,
    judge_revision,
    judge_waiting,
)

KINDS = ["webhooks", "refunds", "mails", "payments", "deadlines", "completions"]


def verdict(waiting: Waiting) -> Verdict:
    (found,) = judge_waiting([waiting])
    assert bool(found.advice) == (found.verdict is Verdict.WRONG)
    return found.verdict


@pytest.mark.parametrize("kind", KINDS)
def test_work_that_moves_is_well_and_work_that_nobody_takes_is_wrong(kind: str) -> None:
    assert verdict(Waiting(kind, 0, 0, 0.0, 0, None)) is Verdict.WELL
    assert verdict(Waiting(kind, 9, 0, 90_000.0, 0, None)) is Verdict.WELL
    assert verdict(Waiting(kind, 9, 1, 70.0, 0, None)) is Verdict.WRONG


def test_work_that_fails_again_and_again_is_wrong_and_says_why() -> None:
    assert verdict(Waiting("mails", 1, 0, 9.0, TRIED_OFTEN - 1, "451 later")) is Verdict.WELL
    (found,) = judge_waiting([Waiting("mails", 1, 0, 9.0, TRIED_OFTEN, "451 later")])
    assert found.verdict is Verdict.WRONG
    assert "451 later" in found.words


def test_payments_that_are_asked_about_often_are_only_slow_buyers() -> None:
    assert verdict(Waiting("payments", 1, 0, 9.0, 99, None)) is Verdict.WELL


def test_mails_given_up_are_wrong() -> None:
    assert not list(judge_failed_mails(0, None))
    (found,) = judge_failed_mails(2, "550 no such user")
    assert found.verdict is Verdict.WRONG
    assert "550 no such user" in found.words


def test_a_gateway_that_money_waits_for_has_to_be_configured() -> None:
    assert not list(judge_gateways({"stripe": 1}, ["stripe"]))
    (found,) = judge_gateways({"stripe": 3, "sandbox": 1}, ["sandbox"])
    assert (found.about, found.verdict) == ("Gateway stripe", Verdict.WRONG)
    (none,) = judge_gateways({}, [])
    assert none.verdict is Verdict.NOTE


def test_holds_past_their_deadline_are_named_by_their_sale() -> None:
    assert judge_overdue_holds({"a": 0}).verdict is Verdict.WELL
    found = judge_overdue_holds({"a": 0, "b": 7})
    assert found.verdict is Verdict.WRONG
    assert "7 of b" in found.words


@pytest.mark.parametrize(
    ("clocks", "expected"),
    [
        ((0.0, SKEW_MS, 0.0), Verdict.WELL),
        ((0.0, SKEW_MS + 1, SKEW_MS + 1), Verdict.WRONG),
        ((0.0, SKEW_MS * 0.6, -SKEW_MS * 0.6), Verdict.WRONG),
    ],
)
def test_clocks_may_differ_by_half_a_second_and_no_more(
    clocks: tuple[float, float, float], expected: Verdict
) -> None:
    assert judge_clocks(*clocks).verdict is expected


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        ("0010", Verdict.WELL),
        ("0011", Verdict.WELL),
        ("0009", Verdict.WRONG),
        (None, Verdict.WRONG),
    ],
)
def test_a_database_of_an_older_release_is_wrong_and_of_a_newer_one_is_not(
    present: str | None, expected: Verdict
) -> None:
    found: Finding = judge_revision(present, "0010")
    assert found.verdict is expected
