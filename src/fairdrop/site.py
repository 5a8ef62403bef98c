"""A whole Fairdrop on one machine: embedded services, gateway, web workers and worker.

``fairdrop up`` and ``fairdrop demo`` run one, and so do the tests. Everything lives in one data
directory: data, logs, secrets and the addresses that the command line looks up.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Self

from fairdrop.embedded import ChildSpec, EmbeddedServices, free_port, free_ports, listening
from fairdrop.faults import DIRECTORY
from fairdrop.schema.migrate import ensure_migrated
from fairdrop.settings import OTHERS_SECRETS, SECRETS, Settings
from fairdrop.waiting_room import Algorithm, new_signing_key

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from fairdrop.embedded import Directories, Supervisor

SECRETS_FILE = "secrets.json"
ADDRESSES_FILE = "site.json"


class Site:
    """Everything that one machine runs, while the ``async with`` block lasts.

    Raises, on entering, what :class:`~fairdrop.embedded.EmbeddedServices` raises. External services
    named in the settings are used instead of embedded ones.
    """

    url: str
    gateway_url: str
    mail_url: str | None
    """Where the mails of a site without a mail server of its own can be read."""
    admin_key: str
    settings: Settings
    supervisor: Supervisor

    def __init__(
        self, settings: Settings, *, with_worker: bool = True, faults: Path | None = None
    ) -> None:
        """Take the settings; ``port`` is preferred, not insisted on, when it is in use.

        ``faults`` is the directory in which a rehearsal arms fault points (:mod:`fairdrop.faults`).
        """
        self._wanted = settings
        self._faults = faults
        self._with_worker = with_worker
        self._open = AsyncExitStack()

    @property
    def data_dir(self) -> Path:
        """Where everything of this site lives."""
        return self._directories.data

    async def __aenter__(self) -> Self:
        """Start everything; return when the site answers."""
        async with AsyncExitStack() as stack:
            wanted = self._wanted
            services = await stack.enter_async_context(
                EmbeddedServices(
                    wanted.data_dir,
                    external_store_url=wanted.store_url,
                    external_database_url=wanted.database_url,
                )
            )
            self._directories = services.directories
            self.supervisor = services.supervisor
            await ensure_migrated(services.database_url)
            self._settle_settings(services.store_url, services.database_url)
            await self._start_children()
            self._write_addresses()
            stack.callback(_remove, services.directories.data / ADDRESSES_FILE)
            self._open = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop everything."""
        await self._open.aclose()

    def _settle_settings(self, store_url: str, database_url: str) -> None:
        wanted = self._wanted
        port, gateway_port, smtp_port, mail_port = free_ports(
            4, host=wanted.host, preferred=(wanted.port,) if wanted.port else ()
        )
        push_port = free_port(host=wanted.host, preferred=wanted.push_port if wanted.port else None)
        self.url = (wanted.public_url or f"http://{wanted.host}:{port}").rstrip("/")
        self.gateway_url = f"http://{wanted.host}:{gateway_port}"
        self._gateway_port = gateway_port
        self._mail_ports = (smtp_port, mail_port) if wanted.smtp_url is None else None
        self.mail_url = f"http://{wanted.host}:{mail_port}" if self._mail_ports else None
        kept = _secrets(self._directories, Algorithm(wanted.token_algorithm))
        set_already = wanted.model_dump(exclude_none=True)
        self.settings = Settings(
            **{
                **set_already,
                **{name: set_already.get(name) or kept.get(name) for name in SECRETS},
                "data_dir": self._directories.data,
                "store_url": store_url,
                "database_url": database_url,
                "port": port,
                "push_port": push_port,
                # Behind a proxy only its operator knows where the push process can be reached.
                "push_url": wanted.push_url
                or (None if wanted.public_url else f"http://{wanted.host}:{push_port}"),
                "public_url": self.url,
                "gateway_url": self.gateway_url,
                "smtp_url": wanted.smtp_url or f"smtp://{wanted.host}:{smtp_port}",
            }
        )
        key = self.settings.admin_key
        self.admin_key = key.get_secret_value() if key is not None else ""

    async def _start_children(self) -> None:
        settings, log = self.settings, self._directories.log
        env = _environment(settings, self._directories)
        if self._faults is not None:
            env[DIRECTORY] = str(self._faults)
        python = (sys.executable, "-m")
        children = [
            ChildSpec(
                name="gateway",
                argv=(
                    *python,
                    "fairdrop.payments.sandbox",
                    *("--host", settings.host, "--port", str(self._gateway_port)),
                    *("--data-dir", str(self._directories.gateway)),
                    *(
                        "--webhook-url",
                        f"http://{settings.host}:{settings.port}/v1/webhooks/sandbox",
                    ),
                ),
                env=env,
                log_path=log / "gateway.log",
                ready=listening(settings.host, self._gateway_port),
            ),
            ChildSpec(
                name="web",
                argv=(*python, "fairdrop", "web"),
                env=env,
                log_path=log / "web.log",
                ready=listening(settings.host, settings.port),
            ),
            ChildSpec(
                name="push",
                argv=(*python, "fairdrop", "push"),
                env=env,
                log_path=log / "push.log",
                ready=listening(settings.host, settings.push_port),
            ),
        ]
        if self._mail_ports is not None:
            children.append(self._mail_sink(*self._mail_ports, env))
        if self._with_worker:
            children.append(
                ChildSpec(
                    name="worker",
                    argv=(*python, "fairdrop", "worker"),
                    env=env,
                    log_path=log / "worker.log",
                )
            )
        await self.supervisor.start(*children)

    def _mail_sink(self, smtp_port: int, http_port: int, env: dict[str, str]) -> ChildSpec:
        return ChildSpec(
            name="mail",
            argv=(
                *(sys.executable, "-m", "fairdrop.notifications.sink"),
                *("--host", self.settings.host, "--smtp-port", str(smtp_port)),
                *(
                    "--http-port",
                    str(http_port),
                    "--data-dir",
                    str(self._directories.data / "mail"),
                ),
            ),
            env=env,
            log_path=self._directories.log / "mail.log",
            ready=listening(self.settings.host, smtp_port),
        )

    def _write_addresses(self) -> None:
        _write_private(
            self._directories.data / ADDRESSES_FILE,
            {
                "url": self.url,
                "gateway_url": self.gateway_url,
                "mail_url": self.mail_url,
                "smtp_url": self.settings.smtp_url,
                "store_url": self.settings.store_url,
                "database_url": self.settings.database_url,
            },
        )


def _environment(settings: Settings, directories: Directories) -> dict[str, str]:
    """The settings as variables for children; secrets travel this way and no other."""
    env = {
        "FAIRDROP_PARENT_DEATH": "1",
        "PROMETHEUS_MULTIPROC_DIR": str(directories.metrics),
        "PYTHONUNBUFFERED": "1",
    }
    for name, value in settings.model_dump(exclude_none=True).items():
        shown = value.get_secret_value() if name in SECRETS else value
        env[f"FAIRDROP_{name.upper()}"] = str(shown)
    return env


def _secrets(directories: Directories, algorithm: Algorithm) -> dict[str, str]:
    """The site's own secrets, made at its first start, or when a release needs one more, and kept."""
    path = directories.data / SECRETS_FILE
    kept: dict[str, str] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    ours = [name for name in SECRETS if name not in OTHERS_SECRETS]
    made = {name: secrets.token_urlsafe(32) for name in ours if name not in kept}
    if "signing_keys" in made:
        made["signing_keys"] = new_signing_key(algorithm)
    if made:
        _write_private(path, {**kept, **made})
    return {**kept, **made}


def _write_private(path: Path, content: Mapping[str, str | None]) -> None:
    """Write the file for its owner alone, whole or not at all."""
    partial = path.with_suffix(".partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=2)
    partial.replace(path)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
