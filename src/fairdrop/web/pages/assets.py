"""Style, scripts and pictures under one address that names the content of all of them.

``/static/<version>/<name>``: the version is a hash over every asset, so a script and the modules
it imports by relative address always come from one release, without a build step and without an
import map (which would need an inline script).

During an upgrade a page that somebody keeps may ask for another version. It gets our file, because
a page without its script helps nobody, but no cache may keep that answer: it could be stored under
an address that promises other content.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from typing import TYPE_CHECKING, Final

from starlette.exceptions import HTTPException

from .documents import Document
from .headers import asset_headers

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.types import Receive, Scope, Send

_MEDIA_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".ts": "application/typescript; charset=utf-8",
}
_IMPORT: Final = re.compile(r'^(?:import|export)\b[^;]*?from "(\.\.?/[^"]+)";', re.MULTILINE)
SHARED: Final = frozenset({"fairdrop.js", "fairdrop.d.ts", "js/proof.js"})
"""What pages of other origins may load: the client module, and what it imports on demand."""


class Assets:
    """Every file of a directory, in memory; an ASGI application for the route below."""

    ROUTE: Final = "/static/{version}/{name:path}"

    def __init__(self, directory: Path) -> None:
        """Read all files. Raises ValueError for a file of a kind that we do not serve."""
        self._documents: dict[str, Document] = {}
        self._strays: dict[str, Document] = {}
        digest = hashlib.sha256()
        for path in sorted(directory.rglob("*")):
            if not path.is_file():
                continue
            name = path.relative_to(directory).as_posix()
            media_type = _MEDIA_TYPES.get(path.suffix)
            if media_type is None:
                raise ValueError(f"{path} is no asset: {', '.join(_MEDIA_TYPES)} are")
            shared = name in SHARED
            document = Document.of(
                path.read_bytes(),
                media_type=media_type,
                headers=asset_headers(stray=False, shared=shared),
            )
            digest.update(name.encode() + b"\0" + document.body + b"\0")
            self._documents[name] = document
            self._strays[name] = document.with_headers(asset_headers(stray=True, shared=shared))
        self.version = digest.hexdigest()[:16]

    def url(self, name: str) -> str:
        """The address of an asset. Raises KeyError when there is none of that name."""
        if name not in self._documents:
            raise KeyError(name)
        return f"/static/{self.version}/{name}"

    def modules(self, entry: str) -> list[str]:
        """The script and all that it imports, so that a page fetches them in one go."""
        found, todo = [], [entry]
        while todo:
            name = todo.pop(0)
            if name in found:
                continue
            found.append(name)
            source = self._documents[name].body.decode()
            folder = name.rpartition("/")[0]
            todo += [
                posixpath.normpath(f"{folder}/{imported}") for imported in _IMPORT.findall(source)
            ]
        return found

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the asset that the address names; 404 when there is none of that name."""
        version, name = scope["path_params"]["version"], scope["path_params"]["name"]
        documents = self._documents if version == self.version else self._strays
        document = documents.get(name)
        if document is None:
            raise HTTPException(404)
        await document(scope, receive, send)
