"""Tampering is found, and told apart: each kind has a message of its own (W4)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairdrop.draw import Fault, PublicFiles, claimed_entry, verify, verify_entry
from fairdrop.ids import new_secret_id
from fairdrop.waiting_room import (
    EntryReceipt,
    PositionReceipt,
    Receipts,
    new_signing_key,
    read_keys,
)
from tests.unit.draw.made_draws import SALE, TAMPERINGS, packed, proof_of, right, short_cases


@pytest.mark.parametrize("beacon", ["", "lotto 7 12 31"])
@pytest.mark.parametrize("people", [1, 2, 9, 64])
def test_a_right_draw_has_no_fault(people: int, beacon: str) -> None:
    verdict = verify(packed(right(people, beacon)))
    assert (verdict.findings, verdict.entries) == ([], people)


@pytest.mark.parametrize("done", sorted(TAMPERINGS))
def test_what_was_tampered_with_is_named(done: str) -> None:
    fault, tamper = TAMPERINGS[done]
    files = right()
    tamper(files)
    assert [finding.fault for finding in verify(packed(files)).findings] == [fault]


def test_no_two_faults_are_told_in_the_same_words() -> None:
    told: dict[str, Fault] = {}
    for fault, tamper in TAMPERINGS.values():
        files = right()
        tamper(files)
        (finding,) = verify(packed(files)).findings
        assert told.setdefault(finding.message, fault) is fault
    assert {*told.values()} == {*Fault} - {Fault.RECEIPT}


@pytest.mark.parametrize("case", range(len(short_cases())))
def test_one_entry_is_checked_by_its_short_proof_alone(case: int) -> None:
    """Near misses included: another entry's proof, another place, a step too few."""
    fault, parameters, proof, receipt = short_cases()[case]
    verdict = verify_entry(parameters, proof, receipt)
    assert [finding.fault for finding in verdict.findings] == ([] if fault is None else [fault])
    assert verdict.place is None, "that takes the whole list"


def test_a_short_proof_tells_the_number_that_the_list_has() -> None:
    _, parameters, proof, receipt = short_cases()[0]
    verdict = verify_entry(parameters, proof, receipt)
    assert verdict.entry == claimed_entry(parameters, receipt)
    assert verdict.number is not None
    assert len(bytes.fromhex(verdict.number)) == 32
    assert claimed_entry(parameters, "hello") is None


@pytest.mark.parametrize("done", ["seed", "commitment", "entry changed", "root"])
def test_without_the_order_file_a_change_is_still_found(done: str) -> None:
    files = right()
    TAMPERINGS[done][1](files)
    assert verify(packed(files)._replace(order=None)).findings


def test_a_beacon_that_is_not_the_hash_of_its_signature_is_no_beacon() -> None:
    files = right()
    files["parameters"]["beacon"]["proof"] = {"signature": "00" * 48}
    assert [finding.fault for finding in verify(packed(files)).findings] == [Fault.BEACON]


def test_a_beacon_that_failed_is_mentioned() -> None:
    files = right(beacon="")
    files["parameters"]["beacon"] = {"source": "https://x", "value": "", "problem": "TimeoutError"}
    verdict = verify(packed(files))
    assert verdict.findings == []
    assert any("held without it" in note for note in verdict.notes)


def test_a_signed_receipt_finds_its_place() -> None:
    files = right()
    for place, (number, entry) in enumerate(files["order"], start=1):
        verdict = verify(packed(files), proof_of(files, entry))
        found = (verdict.findings, verdict.entry, verdict.number, verdict.place)
        assert found == ([], entry, number, place)


def bad_receipts(files: Any) -> dict[str, str]:
    entry = files["entries"][0]
    seal = Receipts(b"s" * 32)
    good = proof_of(files, entry)
    head, body, signature = good.split(".")
    return {
        "forged": f"{head}.{body}.{('A' if signature[0] != 'A' else 'B') + signature[1:]}",
        "of somebody left out": proof_of(files, new_secret_id()),
        "of another sale": proof_of(files, entry, sale="another"),
        "unsigned, of another sale": seal.issue(EntryReceipt("another", "me", 1, entry)),
        "unsigned, left out": seal.issue(EntryReceipt(SALE, "me", 1, new_secret_id())),
        "of the line": seal.issue(PositionReceipt(SALE, "me", 1, 4)),
        "no receipt": "hello",
        "no receipt either": "fdr1.hello",
        "empty": "",
    }


@pytest.mark.parametrize("kind", sorted(bad_receipts(right())))
def test_a_receipt_that_proves_nothing_is_named_so(kind: str) -> None:
    files = right()
    verdict = verify(packed(files), bad_receipts(files)[kind])
    assert [finding.fault for finding in verdict.findings] == [Fault.RECEIPT]


def test_a_receipt_of_before_the_commitment_was_changed_tells_so() -> None:
    files = right()
    text = proof_of(files, files["entries"][0], commitment="ab" * 32)
    findings = verify(packed(files), text).findings
    assert [finding.fault for finding in findings] == [Fault.COMMITMENT]


def test_a_proof_by_another_site_s_key_is_forged() -> None:
    files = right()
    from fairdrop.draw import EntryProofs

    stranger = EntryProofs(read_keys([new_signing_key()]))
    text = stranger.issue(EntryReceipt(SALE, "me", 1, files["entries"][0]), "x")
    verdict = verify(packed(files), text)
    assert [finding.fault for finding in verdict.findings] == [Fault.RECEIPT]


@given(st.binary(max_size=200), st.binary(max_size=200), st.binary(max_size=200))
def test_any_bytes_are_judged_and_never_crash(one: bytes, two: bytes, three: bytes) -> None:
    assert verify(PublicFiles(one, two, three)).findings


@given(st.binary(max_size=300), st.text(max_size=50))
def test_a_right_draw_with_any_bytes_as_a_file_is_found_out(junk: bytes, receipt: str) -> None:
    files = packed(right(3))
    assert verify(files._replace(entries=junk)).findings
    assert verify(files._replace(order=junk)).findings
    assert verify(files, receipt).findings
