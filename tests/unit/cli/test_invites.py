"""``fairdrop sale invite``, ``uninvite`` and ``access``, against a server that notes what it is asked."""

from __future__ import annotations

import re
from pathlib import Path

from tests.unit.cli.test_sale_commands import Answers, sale, server

__all__ = ["server"]


def test_a_file_of_codes_is_sent_once_each_in_pieces(server: Answers, tmp_path: Path) -> None:
    server.document = {"sale": "s", "changed": 5_000}
    file = tmp_path / "codes.txt"
    file.write_text("".join(f" code-{n:05d} \n\n" for n in range(6_000)) + "code-00001\n")
    ran = sale(server, "invite", "drop", str(file), "--tier", "priority", "--uses", "2")
    assert ran.status == 0, ran.errors
    bodies = [body for _, path, body, _ in server.asked if path.endswith("/sales/drop/invites")]
    assert [len(body["values"]) for body in bodies] == [5_000, 1_000]
    assert bodies[0]["values"][1] == "code-00001"
    assert (bodies[0]["kind"], bodies[0]["tier"], bodies[0]["uses"]) == ("code", "priority", 2)


def test_made_codes_are_printed_and_nothing_else_is(server: Answers) -> None:
    server.document = {"sale": "s", "changed": 20}
    ran = sale(server, "invite", "drop", "--generate", "20")
    codes = ran.output.split()
    assert len(set(codes)) == 20
    assert all(re.fullmatch(r"([A-HJ-NP-Z2-9]{4}-){2}[A-HJ-NP-Z2-9]{4}", code) for code in codes)
    assert server.asked[0][2]["values"] == codes
    assert "20 invited" in ran.errors


def test_invitations_are_taken_back(server: Answers, tmp_path: Path) -> None:
    server.document = {"sale": "s", "changed": 1}
    file = tmp_path / "codes.txt"
    file.write_text("code-00001\n")
    ran = sale(server, "uninvite", "drop", str(file))
    assert "1 invitations taken back" in ran.output
    assert server.asked[0][1].endswith("/sales/drop/invites/revoke")


def test_access_is_shown_and_only_changed_when_asked_to(server: Answers) -> None:
    count = {"kind": "code", "tier": "bypass", "invites": 3, "uses": 3, "used": 1, "revoked": 0}
    server.document = {
        "sale": "s",
        "entry": "invited",
        "priority_opens_at": None,
        "invites": [count],
    }
    ran = sale(server, "access", "drop")
    assert "the invited only" in ran.output
    assert "3 by code, bypass: 1 of 3 uses" in ran.output
    assert [asked[0] for asked in server.asked] == ["GET"]


def test_what_makes_no_sense_is_said_before_anybody_is_asked(server: Answers) -> None:
    assert sale(server, "invite", "drop").status == 2
    assert server.asked == []
