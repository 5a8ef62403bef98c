"""A whole running Fairdrop for tests that look at it from outside: `fairdrop up` as a process."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fairdrop.embedded import free_ports, remove_data
from tests.browser.site import LiveSite

START_S = 60


@dataclass(frozen=True)
class RunningSite:
    """Where it is, and what an operator knows of it."""

    url: str
    gateway_url: str
    store_url: str
    database_url: str
    mail_url: str
    smtp_url: str
    data_dir: Path
    admin_key: str
    shop_key: str
    shop_origin: str
    """Where a test may run a shop that the waiting room leads to: another host for a browser."""

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        """Call the control plane; raises for anything but 2xx."""
        request = urllib.request.Request(  # noqa: S310 - our own address
            f"{self.url}/admin/v1{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "authorization": f"Bearer {self.admin_key}",
                "content-type": "application/json",
            },
        )
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return json.load(answer)

    def create_sale(self, slug: str, **fields: Any) -> dict[str, Any]:
        """An open sale with two variants; ``fields`` change or add to its description."""
        sale: dict[str, Any] = {
            "slug": slug,
            "name": "Midnight Drop",
            "opens_at": (datetime.now(UTC) - timedelta(seconds=1)).isoformat(),
            "currency": "EUR",
            "variants": [
                {"product": "Ticket", "name": "Standing", "price_minor": 4500, "quantity": 50},
                {"product": "Ticket", "name": "Balcony", "price_minor": 8000, "quantity": 20},
            ],
            **fields,
        }
        created: dict[str, Any] = self.admin("POST", "/sales", sale)
        return created


@pytest.fixture(scope="session")
def running_site() -> Iterator[RunningSite]:
    """The site that most tests look at."""
    with site_up() as site:
        yield site


@contextmanager
def site_up(**variables: str) -> Iterator[RunningSite]:
    """`fairdrop up` in a directory of its own, with these variables, stopped with SIGTERM at the end."""
    data = Path(tempfile.mkdtemp(prefix="fairdrop-site-"))
    shop_origin = f"http://localhost:{free_ports(1)[0]}"
    process = subprocess.Popen(
        [sys.executable, "-m", "fairdrop", "up", "--data-dir", str(data / "data"), "--port", "0"],
        env={**os.environ, "FAIRDROP_SHOP_ORIGINS": shop_origin, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield _wait_for(process, data / "data", shop_origin)
    finally:
        process.terminate()
        output, _ = process.communicate(timeout=30)
        remove_data(data / "data")
        shutil.rmtree(data, ignore_errors=True)
    assert process.returncode == 0, output


@pytest.fixture(scope="session")
def live_site(running_site: RunningSite) -> LiveSite:
    """The site that browser tests buy from."""
    running_site.create_sale("midnight-drop", rate_per_s=50)
    return LiveSite(running_site.url, "midnight-drop", running_site.admin_key)


def _wait_for(process: subprocess.Popen[str], data: Path, shop_origin: str) -> RunningSite:
    addresses = data / "site.json"
    deadline = time.monotonic() + START_S
    while not addresses.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            pytest.fail(f"fairdrop up did not start: {process.communicate()[0]}")
        time.sleep(0.05)
    known = json.loads(addresses.read_text("utf-8"))
    secrets = json.loads((data / "secrets.json").read_text("utf-8"))
    return RunningSite(
        **known,
        data_dir=data,
        admin_key=secrets["admin_key"],
        shop_key=secrets["shop_keys"],
        shop_origin=shop_origin,
    )
