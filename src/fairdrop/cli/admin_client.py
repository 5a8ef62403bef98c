"""Calling the control plane from the command line: answers as JSON, failures as one clear line."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp

from fairdrop.errors import FairdropError

TIMEOUT_S = 15.0
_PREFIX = "/admin/v1"
_SUCCESS = range(200, 300)


class RequestFailed(FairdropError):
    """The control plane did not answer, or refused; the message says what to do."""


class AdminClient:
    """One control plane and the key for it."""

    def __init__(self, url: str, key: str) -> None:
        """Remember where; each request connects anew."""
        self._url = url
        self._key = key

    def get(self, path: str, **params: Any) -> Any:
        """The document at the path. Raises RequestFailed."""
        return self.request("GET", path, params=params)

    def text(self, path: str, **params: Any) -> str:
        """The answer as it is written, for documents that are not JSON. Raises RequestFailed."""
        status, content = asyncio.run(self._ask("GET", path, None, params, {}))
        if status in _SUCCESS:
            return content.decode()
        raise RequestFailed(self._explained(status, _decoded(content)))

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: dict[str, Any] | None = None,
        key: str | None = None,
    ) -> Any:
        """The answer's document; ``key`` is the Idempotency-Key. Raises RequestFailed."""
        headers = {} if key is None else {"Idempotency-Key": key}
        status, content = asyncio.run(self._ask(method, path, body, params or {}, headers))
        document = _decoded(content)
        if status in _SUCCESS and document is not None:
            return document
        raise RequestFailed(self._explained(status, document))

    async def _ask(
        self, method: str, path: str, body: Any, params: dict[str, Any], headers: dict[str, str]
    ) -> tuple[int, bytes]:
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S, sock_connect=5)
        headers = {"Authorization": f"Bearer {self._key}", **headers}
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, headers=headers) as session,
                session.request(
                    method,
                    self._url + _PREFIX + path,
                    json=body,
                    params={name: value for name, value in params.items() if value is not None},
                    # A redirect would carry the key somewhere else.
                    allow_redirects=False,
                ) as answer,
            ):
                return answer.status, await answer.read()
        except (aiohttp.ClientConnectorError, aiohttp.ServerDisconnectedError, OSError) as error:
            raise RequestFailed(
                f"nothing answers at {self._url} ({_reason(error)}). Start `fairdrop up`, or say"
                " where it runs with --url."
            ) from None
        except TimeoutError:
            raise RequestFailed(f"{self._url} did not answer within {TIMEOUT_S:.0f} s") from None
        except (aiohttp.ClientError, ValueError) as error:
            raise RequestFailed(f"{self._url} cannot be asked: {error}") from None

    def _explained(self, status: int, document: Any) -> str:
        if not isinstance(document, dict) or "code" not in document:
            return (
                f"{self._url} answered {status}, and not as Fairdrop does. Is it the right address?"
            )
        if document["code"] == "api_key_required":
            return f"{self._url} does not accept the API key. Check FAIRDROP_ADMIN_KEY."
        errors = document.get("errors", ())
        if len(errors) > 1:
            found = (f"{each['field'].removeprefix('body.')}: {each['detail']}" for each in errors)
            return "it was refused:\n  " + "\n  ".join(found)
        detail = str(document.get("detail", "")).removeprefix("body.")
        return f"{detail} ({document['code']})"


def _decoded(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None


def _reason(error: BaseException) -> str:
    inner = getattr(error, "os_error", error)
    return getattr(inner, "strerror", None) or type(inner).__name__
