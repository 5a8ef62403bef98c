"""The schedule of a rehearsal with faults: drawn from its seed, and from nothing else."""

import json
from collections import Counter
from dataclasses import asdict, replace

from rich.console import Console

from fairdrop.cli.rehearse import print_endurance
from fairdrop.faults import Point
from fairdrop.payments import CaptureMode
from fairdrop.rehearsal.crowd import CrowdReport
from fairdrop.rehearsal.drop import Drop
from fairdrop.rehearsal.invariants import Invariant
from fairdrop.rehearsal.plan import Manners
from fairdrop.rehearsal.rehearse import Rehearsed, Wanted
from fairdrop.rehearsal.report import Report
from fairdrop.rehearsal.rounds import ADDED_UP, Endurance, Held
from fairdrop.rehearsal.schedule import LAST_BLOW_MS, Target, draw_round


def test_the_same_seed_and_number_give_the_same_round() -> None:
    assert asdict(draw_round(3, 2, faults=True)) == asdict(draw_round(3, 2, faults=True))
    assert draw_round(3, 2, faults=True) != draw_round(4, 2, faults=True)
    assert draw_round(3, 2, faults=True) != draw_round(3, 1, faults=True)


def test_a_hundred_rounds_strike_every_process_and_every_point() -> None:
    blows = [blow for number in range(100) for blow in draw_round(1, number, faults=True).blows]
    assert {blow.target for blow in blows if blow.target} == set(Target)
    assert {blow.point for blow in blows if blow.point} == set(Point)
    assert all(0 < blow.at_ms <= LAST_BLOW_MS for blow in blows)


def test_a_hundred_rounds_take_the_money_at_once_and_last() -> None:
    drawn = Counter(draw_round(1, number, faults=True).capture for number in range(100))
    assert set(drawn) == set(CaptureMode)
    assert min(drawn.values()) > 30


def test_a_promise_of_some_rounds_is_counted_in_these() -> None:
    found = endurance(holds=[True, True, False])
    report = found.rounds[1].report
    only = Invariant("nothing_to_refund", "None has to go back", "1 refunded", holds=False)
    changed = replace(report, invariants=[*report.invariants, only])
    rounds = (found.rounds[0], replace(found.rounds[1], report=changed), found.rounds[2])
    verdicts = {each["name"]: each for each in replace(found, rounds=rounds).verdicts()}
    assert [verdicts["never_oversold"][key] for key in ("held", "rounds")] == [2, 3]
    assert [verdicts["nothing_to_refund"][key] for key in ("held", "rounds")] == [0, 1]
    assert verdicts["nothing_to_refund"]["broken"] == {2: "1 refunded"}


def test_without_faults_the_same_crowd_comes_and_nothing_is_done() -> None:
    rough, calm = draw_round(5, 1, faults=True), draw_round(5, 1, faults=False)
    assert calm == replace(rough, manners=Manners(), blows=())


def test_what_broke_is_named_with_its_round_and_figures() -> None:
    found = endurance(holds=[True, False])
    assert not found.holds
    assert json.loads(json.dumps(found.document()))["rounds"][0]["schedule"]["capture"] in {
        "automatic",
        "manual",
    }
    console = Console(width=80, record=True, file=None)
    with console.capture() as printed:
        print_endurance(found, console)
    words = printed.get()
    assert "held 1 of 2" in words
    assert "Not everything held. Again: --seed 9" in words
    assert found.verdicts()[0]["broken"] == {2: "oversold 1"}
    assert all(len(line) <= 80 for line in words.splitlines())


def endurance(holds: list[bool]) -> Endurance:
    rounds = []
    for number, held in enumerate(holds, start=1):
        invariant = Invariant("never_oversold", "No unit is sold twice", "oversold 1", held)
        crowd = CrowdReport(1, {}, {}, 1, 0, {}, 1.0)
        report = Report(
            Wanted(Drop("a", "A", 1, 1.0), 1, number),
            Rehearsed("sale", crowd, 1.0, {}, 1.0),
            dict.fromkeys(ADDED_UP, 1),
            [],
            [invariant],
            workers=1,
            command_s=1.0,
        )
        rounds.append(Held(draw_round(9, number, faults=True), (), 0, 0, report))
    return Endurance(9, faults=True, rounds=tuple(rounds), differences=(), wall_s=1.0)
