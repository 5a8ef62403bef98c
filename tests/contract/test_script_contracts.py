"""A script's header is its contract: complete, true on a real server, and known to Python."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path

import pytest

import fairdrop
from fairdrop.access import SpendOutcome
from fairdrop.drivers.keys import NAMES
from fairdrop.drivers.store import Script
from fairdrop.inventory import (
    ChangeOutcome,
    CommitOutcome,
    ExtendOutcome,
    GivenBack,
    Loaded,
    Reduced,
    ReleaseOutcome,
    ReserveOutcome,
    StartOutcome,
)
from fairdrop.waiting_room import Filled, FrontOutcome, LeaveOutcome, RestoreOutcome, State
from fairdrop.waiting_room.model import Adapted, Measures
from tests.contract.scenarios import SCENARIOS
from tests.driven_sale import DrivenSale

FILES = sorted((Path(fairdrop.__file__).parent).glob("*/lua/*.lua"))
BY_NAME = {path.stem: path for path in FILES}

OUTCOMES: dict[str, type[StrEnum]] = {
    "leave": LeaveOutcome,
    "restore": RestoreOutcome,
    "front": FrontOutcome,
    "spend": SpendOutcome,
    "reserve": ReserveOutcome,
    "change": ChangeOutcome,
    "start": StartOutcome,
    "release": ReleaseOutcome,
    "commit": CommitOutcome,
    "extend": ExtendOutcome,
}
TELL_STATES = ("join", "status", "claim")
STATUS_ONLY = {
    "load": Loaded,
    "reduce": Reduced,
    "give_back": GivenBack,
    "fill": Filled,
    "measures": Measures,
    "adapt": Adapted,
}

each_script = pytest.mark.parametrize("name", sorted(BY_NAME))


def header(name: str) -> str:
    lines = BY_NAME[name].read_text().splitlines()
    return "\n".join(line for line in lines[: lines.index(first_code_line(lines))])


def first_code_line(lines: list[str]) -> str:
    return next(line for line in lines if not line.startswith("--"))


def section(name: str, title: str) -> set[str]:
    """The replies that the header lists below ``title``."""
    found: set[str] = set()
    inside = False
    for line in header(name).splitlines():
        if heading := re.match(r"-- ([A-Z][A-Za-z]+):", line):
            inside = heading[1] == title
        elif inside and (reply := re.match(r"--   ([A-Z][A-Z_]+)  +\S", line)):
            found.add(reply[1])
    return found


def declared(name: str) -> set[str]:
    return section(name, "Status") | section(name, "Outcomes") | section(name, "States")


def test_every_script_has_a_name_of_its_own() -> None:
    assert len(BY_NAME) == len(FILES) > 0


@each_script
def test_a_header_tells_purpose_keys_arguments_reply_cost_and_invariant(name: str) -> None:
    text = header(name)
    assert re.match(rf"-- {name}: \w.+\.$", text.splitlines()[0]), text.splitlines()[0]
    for title in ("KEYS", "ARGV", "REPLY", "Status", "Cost"):
        assert re.search(rf"^-- {title}:( \S|$)", text, re.MULTILINE), title
    # A script that changes nothing says so; every other one what it keeps true, also when repeated.
    for title in ("Invariant", "Repeat"):
        assert re.search(rf"^-- {title}: \S", text, re.MULTILINE) or "changes nothing" in text


@each_script
def test_a_script_uses_the_keys_of_its_header_and_no_others(name: str) -> None:
    script = Script.load(f"fairdrop.{BY_NAME[name].parts[-3]}", name)
    assert set(script.key_names) <= set(NAMES)
    used = {int(number) for number in re.findall(r"KEYS\[(\d+)\]", script.source)}
    assert used == set(range(1, len(script.key_names) + 1))


@each_script
def test_a_script_says_nothing_that_its_header_does_not_declare(name: str) -> None:
    source = BY_NAME[name].read_text()
    code = "\n".join(line.split("--")[0] for line in source.splitlines())
    code = re.sub(r"redis\.call\('[A-Z]+'", "", code)
    options = {"GET", "LIMIT", "EX", "NX", "PX", "WITHSCORES"}
    said = set(re.findall(r"'([A-Z][A-Z_]+)'", code)) - options
    assert said == declared(name)


@each_script
async def test_each_declared_reply_is_given_by_a_real_server(name: str, sale: DrivenSale) -> None:
    provoked = set()
    async for promised, came in SCENARIOS[name](sale):
        assert came == promised
        provoked.add(promised)
    assert provoked == declared(name)


@pytest.mark.parametrize("name", sorted(OUTCOMES))
def test_python_knows_exactly_the_outcomes_of_a_script(name: str) -> None:
    assert section(name, "Outcomes") == {outcome.value for outcome in OUTCOMES[name]}
    assert section(name, "Status") - {"NO_SALE"} == {"OK"}
    assert ("NO_SALE" in section(name, "Status")) is (name != "spend")


def test_python_knows_exactly_the_states_that_scripts_tell() -> None:
    told = set().union(*(section(name, "States") for name in TELL_STATES))
    assert told == {state.value for state in State}


@pytest.mark.parametrize("name", sorted(STATUS_ONLY))
def test_python_names_the_statuses_of_a_script_without_outcomes(name: str) -> None:
    named = set(re.findall(r"\b[A-Z][A-Z_]+\b", STATUS_ONLY[name].__doc__ or ""))
    assert section(name, "Status") - {"NO_SALE"} == named


def test_every_script_is_compared_with_python() -> None:
    of_no_sale = {"rates"}
    without_outcomes = {
        "rates",
        "tick",
        "expire",
        "figures",
        "revocations",
        "observe",
        "grace",
        "called",
    }
    compared = {*OUTCOMES, *TELL_STATES, *STATUS_ONLY, *without_outcomes, "entrants"}
    assert compared == set(BY_NAME)
    for name in without_outcomes - of_no_sale:
        assert declared(name) == {"OK", "NO_SALE"}
    for name in of_no_sale:
        assert declared(name) == {"OK"}
