"""CAPTCHAs by others: a token that the visitor's browser got, checked with the service that gave it (W18).

Turnstile and hCaptcha take the same request (``POST siteverify``, form fields ``secret``, ``response``
and ``remoteip``) and give the same answer (JSON with ``success`` and ``error-codes``); another service
needs another class with :meth:`CaptchaVerifier.verify`.

- Turnstile: https://developers.cloudflare.com/turnstile/get-started/server-side-validation/
- hCaptcha: https://docs.hcaptcha.com/#verify-the-user-response-server-side

Their widgets are alike too: a script that takes ``render=explicit`` and ``onload``, and makes a global
of the provider's name with ``render(element, {sitekey, callback, …})``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

import aiohttp
import msgspec
import structlog

if TYPE_CHECKING:
    from collections.abc import Mapping

RESPONSE_LIMIT = 8_192
"""Characters of a visitor's token; Turnstile's have at most 2,048, hCaptcha's some thousands."""
_ANSWER_LIMIT = 65_536

_log = structlog.get_logger(__name__)


class CaptchaResult(StrEnum):
    """What the service says of a visitor's token."""

    PASSED = "passed"
    MISSING = "missing"
    FAILED = "failed"
    UNAVAILABLE = "unavailable"


class CaptchaVerifier(Protocol):
    """A service that tells people from programs."""

    @property
    def provider(self) -> str:
        """Its name, for the page that has to show its widget."""

    @property
    def site_key(self) -> str:
        """The public key that its widget needs."""

    @property
    def script_url(self) -> str:
        """The script of its widget."""

    @property
    def sources(self) -> tuple[str, ...]:
        """Where the widget loads from, for a page's Content Security Policy."""

    async def verify(self, response: str, address: str) -> CaptchaResult:
        """Ask about one visitor's token; never raises for an outage, never waits for long."""

    async def close(self) -> None:
        """Close its connections."""


class SiteVerify:
    """The check that Turnstile and hCaptcha share."""

    provider: str
    default_url: str
    default_script_url: str
    default_sources: tuple[str, ...]
    _ours: frozenset[str] = frozenset(
        {
            "missing-input-secret",
            "invalid-input-secret",
            "sitekey-secret-mismatch",
            "internal-error",
            "bad-request",
        }
    )
    """Error codes that say nothing about the visitor."""

    def __init__(
        self,
        site_key: str,
        secret: str,
        *,
        url: str | None = None,
        script_url: str | None = None,
        timeout_s: float = 2.0,
    ) -> None:
        """Take the keys that the service gave; the addresses are others than the service's own."""
        self.site_key = site_key
        self.script_url = script_url or self.default_script_url
        self.sources = _origin(script_url) if script_url else self.default_sources
        self._secret = secret
        self._url = url or self.default_url
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._session: aiohttp.ClientSession | None = None

    async def verify(self, response: str, address: str) -> CaptchaResult:
        """One request. The service counts a token once, so repeating it fails."""
        if not response:
            return CaptchaResult.MISSING
        if len(response) > RESPONSE_LIMIT:
            return CaptchaResult.FAILED
        fields = {"secret": self._secret, "response": response, **self._more()}
        if address and "/" not in address:
            fields["remoteip"] = address
        try:
            answer = await self._ask(fields)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            _log.warning("captcha_unavailable", provider=self.provider, error=repr(error))
            return CaptchaResult.UNAVAILABLE
        codes = answer.get("error-codes") or []
        if answer.get("success") is True and not codes:
            return CaptchaResult.PASSED
        if self._ours.intersection(map(str, codes)):
            _log.error("captcha_refuses_us", provider=self.provider, codes=codes)
            return CaptchaResult.UNAVAILABLE
        return CaptchaResult.FAILED

    async def close(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _more(self) -> Mapping[str, str]:
        return {}

    async def _ask(self, fields: Mapping[str, str]) -> dict[str, Any]:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=self._timeout)
        async with self._session.post(self._url, data=fields, allow_redirects=False) as answer:
            if answer.status >= 500:  # noqa: PLR2004 - server errors
                raise ValueError(f"status {answer.status}")
            raw = await answer.content.read(_ANSWER_LIMIT)
        content = msgspec.json.decode(raw)
        if not isinstance(content, dict) or "success" not in content:
            raise ValueError("the answer is none of this service")
        return content


def _origin(url: str) -> tuple[str]:
    parts = urlsplit(url)
    return (f"{parts.scheme}://{parts.netloc}",)


class Turnstile(SiteVerify):
    """Cloudflare Turnstile."""

    provider = "turnstile"
    default_url = "https://challenges.cloudflare.com/turnstile/v0/siteverify"
    default_script_url = "https://challenges.cloudflare.com/turnstile/v0/api.js"
    default_sources = ("https://challenges.cloudflare.com",)


class HCaptcha(SiteVerify):
    """hCaptcha; it also wants to hear the site key, and checks that the token was made for it."""

    provider = "hcaptcha"
    default_url = "https://api.hcaptcha.com/siteverify"
    default_script_url = "https://js.hcaptcha.com/1/api.js"
    default_sources = ("https://hcaptcha.com", "https://*.hcaptcha.com")

    def _more(self) -> Mapping[str, str]:
        return {"sitekey": self.site_key}


CAPTCHAS: dict[str, type[SiteVerify]] = {"turnstile": Turnstile, "hcaptcha": HCaptcha}
"""The services that a setting can name."""
