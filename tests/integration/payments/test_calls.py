"""Calls to a server that answers, hangs, hangs up or talks nonsense: an answer, or none, in time."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fairdrop.payments import calls
from fairdrop.payments.calls import Answer, Calls, NoAnswer

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Server:
    """Says what it was told to, answer by answer, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.answers: list[bytes | None] = []
        """None: it hangs up."""
        self.connections = 0
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]
                self.asked.append(head + await reader.readexactly(int(length or 0)))
                answer = self.answers.pop(0) if self.answers else OK
                if answer is None:
                    break
                writer.write(answer)
        writer.close()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    told = Server()
    running = await asyncio.start_server(told.serve, "127.0.0.1", 0)
    told.port = running.sockets[0].getsockname()[1]
    yield told
    running.close()


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Calls]:
    calling = Calls(
        f"http://127.0.0.1:{server.port}/base",
        {"authorization": "Bearer secret"},
        connect_timeout_s=1,
        timeout_s=0.3,
    )
    yield calling
    calling.close()


async def test_calls_that_follow_one_another_share_a_connection(
    server: Server, client: Calls
) -> None:
    for _ in range(3):
        assert await client.call("POST", "/x", b"{}", {"idempotency-key": "k"}) == Answer(
            200, b"ok"
        )
    assert server.connections == 1
    first = server.asked[0].decode()
    assert first.startswith("POST /base/x HTTP/1.1\r\n")
    for line in (f"host: 127.0.0.1:{server.port}", "authorization: Bearer secret"):
        assert f"\r\n{line}\r\n" in first
    assert first.endswith("\r\nidempotency-key: k\r\ncontent-length: 2\r\n\r\n{}")


async def test_calls_at_once_never_get_one_anothers_answers(server: Server, client: Calls) -> None:
    server.answers = [
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n%02d" % number for number in range(20)
    ]
    answers = await asyncio.gather(*(client.call("GET", f"/{number}") for number in range(20)))
    order = [int(asked.split(b"/")[2].split(b" ")[0]) for asked in server.asked]
    assert [int(answers[number].body) for number in order] == list(range(20))


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n", Answer(404, b"")),
        (b"HTTP/1.1 204 Nothing\r\n\r\n", Answer(204, b"")),
        (b"HTTP/1.1 302 There\r\nlocation: /y\r\ncontent-length: 0\r\n\r\n", Answer(302, b"")),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n",
            Answer(200, b"abc"),
        ),
        (b"HTTP/1.1 103 Early\r\n\r\n" + OK, Answer(200, b"ok")),
        (
            b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
            Answer(200, b"ok"),
        ),
    ],
    ids=["refused", "empty", "redirect", "chunks", "told early", "last of its connection"],
)
async def test_every_kind_of_answer_is_read(
    server: Server, client: Calls, said: bytes, answer: Answer
) -> None:
    server.answers = [said]
    assert await client.call("GET", "/x") == answer
    assert await client.call("GET", "/x") == Answer(200, b"ok")


@pytest.mark.parametrize(
    "said",
    [
        None,
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nconte",
        b"220 mail.example.org ESMTP\r\n",
        b"HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n" + b"x" * 99,
    ],
    ids=["hangs up", "body cut off", "head cut off", "another protocol", "upgrade", "too long"],
)
async def test_what_is_no_answer_is_told_in_time_and_the_next_call_is_fine(
    server: Server, client: Calls, said: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "ANSWER_BYTES", 50)
    server.answers = [said]
    with pytest.raises(NoAnswer):
        async with asyncio.timeout(2):
            await client.call("GET", "/x")
    assert await client.call("GET", "/x") == Answer(200, b"ok")
    assert server.connections == 2


async def test_an_answer_that_comes_too_late_is_not_that_of_the_next_call(
    server: Server, client: Calls
) -> None:
    server.answers = [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nnext"]
    with pytest.raises(NoAnswer, match="in time"):
        await client.call("GET", "/late")
    assert (await client.call("GET", "/x")).body == b"next"


async def test_a_caller_who_goes_away_leaves_no_answer_to_the_next_one(
    server: Server, client: Calls
) -> None:
    server.answers = [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nnext"]
    gone = asyncio.create_task(client.call("GET", "/gone"))
    async with asyncio.timeout(5):
        while not server.asked:
            await asyncio.sleep(0)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    assert (await client.call("GET", "/x")).body == b"next"


@pytest.mark.parametrize("more", [OK, OK[:20], b"nonsense"])
async def test_what_nobody_asked_for_ends_the_connection(
    server: Server, client: Calls, more: bytes
) -> None:
    server.answers = [OK + more]
    with suppress(NoAnswer):
        await client.call("GET", "/x")
    assert (await client.call("GET", "/y")).body == b"ok"
    assert server.connections == 2


async def test_a_connection_that_has_rested_long_is_not_used_again(
    server: Server, client: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    await asyncio.gather(*(client.call("GET", "/x") for _ in range(3)))
    monkeypatch.setattr(calls, "IDLE_S", -1.0)
    await client.call("GET", "/x")
    assert server.connections == 4


async def test_a_server_that_is_not_there_is_told_at_once() -> None:
    nowhere = Calls("http://127.0.0.1:9", {}, connect_timeout_s=1, timeout_s=1)
    with pytest.raises(NoAnswer):
        await nowhere.call("GET", "/x")


async def test_a_server_whose_certificate_nobody_vouches_for_is_told_nothing(
    server: Server, tmp_path: Path
) -> None:
    """Over TLS the other side is who it says, or there is no call."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = tmp_path / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    pem.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    theirs, ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=pem)
    theirs.load_cert_chain(pem)
    running = await asyncio.start_server(server.serve, "localhost", 0, ssl=theirs)
    port = running.sockets[0].getsockname()[1]
    calling = Calls(f"https://localhost:{port}", {}, connect_timeout_s=1, timeout_s=1)
    try:
        with pytest.raises(NoAnswer):
            await calling.call("GET", "/x")
        assert server.asked == []
        calling._ssl = ours  # now it is vouched for
        assert await calling.call("GET", "/x") == Answer(200, b"ok")
    finally:
        calling.close()
        running.close()


@pytest.mark.parametrize("bad", ["a\r\nb: c", "a\nb"])
async def test_nothing_passed_on_can_add_a_header_or_a_request(client: Calls, bad: str) -> None:
    with pytest.raises(ValueError, match="line break"):
        await client.call("GET", "/x", headers={"idempotency-key": bad})
    with pytest.raises(ValueError, match="path"):
        await client.call("GET", f"/{bad}")
