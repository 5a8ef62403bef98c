"""``fairdrop sale`` and its errors, against a server that answers what the test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.unit.cli.command import Ran, run

KEY = "the-key"


class Answers:
    """A server with one answer for everything, which notes what it was asked."""

    def __init__(self) -> None:
        self.status = 200
        self.document: Any = {}
        self.headers: dict[str, str] = {}
        self.asked: list[tuple[str, str, Any, str | None]] = []
        answers = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                length = int(self.headers.get("content-length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                key = self.headers.get("authorization")
                answers.asked.append((self.command, self.path, body, key))
                text = answers.document
                content = text if isinstance(text, bytes) else json.dumps(text).encode()
                self.send_response(answers.status)
                for name, value in answers.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PATCH = answer  # noqa: N815 - the names of the base class

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def server() -> Iterator[Answers]:
    answers = Answers()
    yield answers
    answers.stop()


def sale(server: Answers, *arguments: str, given: str | None = None) -> Ran:
    return run("sale", *arguments, given=given, FAIRDROP_URL=server.url, FAIRDROP_ADMIN_KEY=KEY)


SALE = {
    "id": "01920000-0000-7000-8000-000000000001",
    "slug": "concert",
    "name": "Konzert [bold]🎸[/bold]",
    "mode": "open",
    "loaded": False,
    "timezone": "Europe/Zurich",
    "opens_at": "2026-07-01T06:30:00Z",
    "opens_at_local": "2026-07-01T08:30:00",
    "closes_at": None,
    "closes_at_local": None,
    "currency": "EUR",
    "rate_per_s": 50.0,
    "cap": 1_000,
    "order_limit": 4,
    "buyer_limit": 4,
    "fee_bps": 1_000,
    "lobby_ms": 900_000,
    "beacon": "none",
    "commitment": "c0" * 32,
    "variants": [
        {"id": "v1", "product": "Ticket", "name": "Standing", "price_minor": 4_500, "quantity": 10},
        {"id": "v2", "product": "Ticket", "name": "Seat", "price_minor": 8_000, "quantity": 5},
        {"id": "v3", "product": "Shirt", "name": "Seat", "price_minor": 2_000, "quantity": 5},
    ],
}


def test_what_is_typed_becomes_a_sale(server: Answers) -> None:
    server.document = SALE
    ran = sale(
        server,
        *("create", "Rooftop concert", "--variant", "Standing:45.00:100"),
        *("--variant", "Shirt/Large:19.90:50", "--opens", "2026-07-01T08:30"),
        *("--timezone", "Europe/Zurich", "--fee", "2.5", "--cap", "7", "--currency", "chf"),
    )
    assert ran.status == 0, ran.errors
    ((method, path, body, key),) = server.asked
    assert (method, path, key) == ("POST", "/admin/v1/sales", f"Bearer {KEY}")
    assert body == {
        "name": "Rooftop concert",
        "slug": "rooftop-concert",
        "currency": "CHF",
        "opens_at": "2026-07-01T08:30",
        "timezone": "Europe/Zurich",
        "fee_bps": 250,
        "cap": 7,
        "variants": [
            {
                "product": "Rooftop concert",
                "name": "Standing",
                "price_minor": 4_500,
                "quantity": 100,
            },
            {"product": "Shirt", "name": "Large", "price_minor": 1_990, "quantity": 50},
        ],
    }


def test_a_sale_can_come_from_a_file_or_from_standard_input(server: Answers) -> None:
    server.document = SALE
    assert sale(server, "create", "--file", "-", given='{"slug": "x"}').status == 0
    assert server.asked[0][2] == {"slug": "x"}
    ran = sale(server, "create", "--file", "-", given="{")
    assert (ran.status, "not JSON" in ran.errors) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["create"], "--variant"),
        (["create", "X"], "--variant"),
        (["create", "X", "--variant", "A"], "NAME:PRICE:UNITS"),
        (["create", "X", "--variant", "A:1.999:1"], "decimals"),
        (["create", "X", "--variant", "A:1:1", "--fee", "0.001"], "decimals"),
        (["create", "演唱会", "--variant", "A:1:1"], "--slug"),
        (["orders", "concert", "--limit", "0"], "limit"),
        (["stock", "concert", "Standing", "many"], "DELTA"),
        (["list", "--limit", "201"], "limit"),
        (["fly", "concert"], "fly"),
    ],
)
def test_what_makes_no_sense_is_said_before_anybody_is_asked(
    server: Answers, arguments: list[str], word: str
) -> None:
    ran = sale(server, *arguments)
    assert ran.status == 2
    assert word in ran.errors
    assert server.asked == []


def test_sales_are_shown_as_they_are_named_in_80_columns(server: Answers) -> None:
    long = {**SALE, "slug": "s" * 30, "name": "名" * 150}
    server.document = {"sales": [SALE, long]}
    ran = sale(server, "list")
    assert ran.status == 0
    assert "Konzert [bold]🎸[/bold]" in ran.output or "Konzert [bold]" in ran.output
    assert "2026-07-01 08:30" in ran.output
    assert "Europe/Zurich" in ran.output.replace("\n", "")
    assert all(len(line) <= 80 for line in ran.output.splitlines())


def test_a_sale_that_the_store_has_not_got_yet_is_shown_without_figures(server: Answers) -> None:
    server.document = SALE
    ran = sale(server, "show", "concert")
    assert "not in the store yet" in ran.output
    assert "45.00 EUR" in ran.output
    assert len(server.asked) == 1


@pytest.mark.parametrize("verb", ["open", "pause", "resume", "drain"])
def test_a_sale_is_steered(server: Answers, verb: str) -> None:
    server.document = {**SALE, "mode": "somehow"}
    ran = sale(server, verb, "a/b c")
    assert (ran.status, ran.output) == (0, "concert is somehow.\n")
    assert server.asked[0][:2] == ("POST", f"/admin/v1/sales/a%2Fb%20c/{verb}")


def test_closing_from_a_script_needs_no_answer(server: Answers) -> None:
    server.document = {**SALE, "mode": "closed"}
    assert sale(server, "close", "concert").output == "concert is closed.\n"


@pytest.mark.parametrize(
    ("variant", "found"),
    [("Standing", "v1"), ("1", "v1"), ("v2", "v2"), ("Shirt, Seat", "v3"), ("3", "v3")],
)
def test_a_variant_is_named_or_counted_and_stock_may_be_negative(
    server: Answers, variant: str, found: str
) -> None:
    stock = {"name": "x", "quantity": 1, "free": 1, "held": 0, "sold": 0}
    server.document = {**SALE, **stock}
    ran = sale(server, "stock", "concert", variant, "-5")
    assert ran.status == 0, ran.errors
    assert server.asked[1][1] == f"/admin/v1/sales/concert/variants/{found}/stock"
    assert server.asked[1][2] == {"delta": -5}


@pytest.mark.parametrize(
    ("variant", "word"), [("Seat", "several"), ("Box", "no variant"), ("4", "no")]
)
def test_a_variant_that_is_none_or_several_is_told_with_the_choice(
    server: Answers, variant: str, word: str
) -> None:
    server.document = SALE
    ran = sale(server, "stock", "concert", variant, "5")
    assert ran.status == 2
    assert word in ran.errors
    assert "3: Shirt, Seat" in " ".join(ran.errors.split())
    assert len(server.asked) == 1


def test_json_is_printed_as_it_came(server: Answers) -> None:
    server.document = {"sales": [SALE]}
    assert json.loads(sale(server, "list", "--json").output) == {"sales": [SALE]}
    server.document = {"orders": [], "next": None}
    assert json.loads(sale(server, "orders", "concert", "--json").output) == server.document


def test_orders_say_how_to_go_on(server: Answers) -> None:
    order = {
        "id": "01920000-0000-7000-8000-00000000000a",
        "state": "PARTIALLY_REFUNDED",
        "currency": "JPY",
        "total_minor": 123_456_789,
        "lines": [{"quantity": 2}, {"quantity": 1}],
    }
    server.document = {"orders": [order], "next": order["id"]}
    ran = sale(server, "orders", "concert", "--state", "confirmed", "--limit", "1")
    assert server.asked[0][1] == "/admin/v1/sales/concert/orders?state=CONFIRMED&limit=1"
    assert f"--after {order['id']}" in ran.output
    assert "123456789 JPY" in ran.output
    assert all(len(line) <= 80 for line in ran.output.splitlines())


# ------------------------------------------------------------------ what goes wrong


PROBLEM = {"status": 409, "code": "wrong_mode", "detail": "The sale is open.", "title": "x"}


@pytest.mark.parametrize(
    ("status", "document", "words"),
    [
        (409, PROBLEM, ["The sale is open.", "wrong_mode"]),
        (401, {**PROBLEM, "code": "api_key_required"}, ["FAIRDROP_ADMIN_KEY"]),
        (
            422,
            {
                **PROBLEM,
                "code": "invalid_request",
                "errors": [
                    {"field": "body.cap", "detail": "Too small."},
                    {"field": "body.name", "detail": "Too long."},
                ],
            },
            ["cap: Too small.", "name: Too long."],
        ),
        (502, b"<html>", ["502", "right address"]),
        (200, b"<html>", ["200", "right address"]),
        (200, b"\xff\xfe", ["right address"]),
        (500, {"detail": "x"}, ["500"]),
    ],
)
def test_a_refusal_is_told_in_its_words(
    server: Answers, status: int, document: Any, words: list[str]
) -> None:
    server.status, server.document = status, document
    ran = sale(server, "open", "concert")
    assert ran.status == 1
    assert ran.errors.startswith("fairdrop: ")
    assert all(word in ran.errors for word in words), ran.errors
    assert "Traceback" not in ran.errors


def test_a_redirect_does_not_carry_the_key_away(server: Answers) -> None:
    server.status, server.headers = 307, {"location": server.url + "/elsewhere"}
    ran = sale(server, "list")
    assert ran.status == 1
    assert [path for _, path, _, _ in server.asked] == ["/admin/v1/sales?limit=50"]


def test_where_nothing_answers_that_is_said_with_what_to_do() -> None:
    ran = run("sale", "list", FAIRDROP_URL="http://127.0.0.1:9", FAIRDROP_ADMIN_KEY=KEY)
    assert ran.status == 1
    assert "nothing answers at http://127.0.0.1:9" in ran.errors
    assert "fairdrop up" in ran.errors
    assert KEY not in ran.errors


def test_without_a_key_that_is_said_with_what_to_do() -> None:
    ran = run("sale", "list")
    assert ran.status == 1
    assert "FAIRDROP_ADMIN_KEY" in ran.errors


def test_an_audit_of_nothing_is_not_done() -> None:
    ran = run("audit")
    assert ran.status == 2
    assert "fairdrop up" in ran.errors


def test_an_audit_of_what_does_not_answer_is_not_done() -> None:
    ran = run(
        "audit",
        FAIRDROP_STORE_URL="redis://127.0.0.1:9",
        FAIRDROP_DATABASE_URL="postgresql://x@127.0.0.1:9/x",
    )
    assert ran.status == 2
    assert "could not be done" in ran.errors
    assert "Traceback" not in ran.errors


@pytest.mark.parametrize("command", [["sale"], ["sale", "create"], ["audit"], ["config"]])
def test_help_says_what_a_newcomer_needs_in_80_columns(command: list[str]) -> None:
    ran = run(*command, "--help")
    assert ran.status == 0
    assert all(len(line) <= 80 for line in ran.output.splitlines())
