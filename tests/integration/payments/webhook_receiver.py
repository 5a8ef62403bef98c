"""A merchant's webhook address: a real HTTP server that can refuse, and remembers what came."""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Received(NamedTuple):
    """One request that reached the address, accepted or not."""

    at: float
    headers: dict[str, str]
    body: bytes
    answered: int

    @property
    def document(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.body)
        return document

    @property
    def kind(self) -> str:
        return str(self.document["type"])


class WebhookReceiver:
    """Accepts webhooks on a free port, in a thread; told apart by the reference they carry."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._received: dict[str, list[Received]] = defaultdict(list)
        self._refusals: dict[str, int] = defaultdict(int)
        self.refuse_all = False
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = receiver._take(dict(self.headers), body)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1/webhooks/sandbox"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def refuse_next(self, reference: str, times: int) -> None:
        """Answer 503 to the next webhooks of this reference."""
        with self._lock:
            self._refusals[reference] = times

    def received(self, reference: str) -> list[Received]:
        """Everything that came for this reference, in order of arrival."""
        with self._lock:
            return list(self._received[reference])

    def accepted(self, reference: str) -> list[Received]:
        """What came for this reference and was answered 200."""
        return [one for one in self.received(reference) if one.answered == 200]

    def kinds(self, reference: str) -> list[str]:
        """The kinds of what was accepted, in order of arrival."""
        return [one.kind for one in self.accepted(reference)]

    def _take(self, headers: dict[str, str], body: bytes) -> int:
        at = time.monotonic()
        reference = json.loads(body)["data"]["reference"]
        with self._lock:
            status = 200
            if self.refuse_all:
                status = 503
            elif self._refusals[reference]:
                self._refusals[reference] -= 1
                status = 503
            self._received[reference].append(Received(at, headers, body, status))
            return status
