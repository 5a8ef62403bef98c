"""The page on which mails can be read. Everything that a mail says is escaped here, once."""

from __future__ import annotations

from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request

    from .letters import Letters

_SHOWN = 200
_MOST = 2_000
_STYLE = (
    "body{font:1rem/1.5 system-ui,sans-serif;margin:1rem auto;max-width:60rem;padding:0 1rem;"
    "color:#1c1c1c;background:#fff}table{border-collapse:collapse;width:100%}"
    "caption{text-align:left;padding-bottom:.5rem}"
    "th,td{text-align:left;padding:.4rem .6rem;border-bottom:1px solid #ccc;overflow-wrap:anywhere}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;font:inherit;border:1px solid #ccc;padding:1rem}"
    "dt{font-weight:600}dd{margin:0 0 .4rem;overflow-wrap:anywhere}a{color:#0b5394}"
    "@media(prefers-color-scheme:dark){body{color:#eee;background:#161616}a{color:#9cc8ff}}"
)
_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


def make_application(letters: Letters) -> Starlette:
    """The list of mails, and each of them; also as JSON for programs."""

    async def index(_request: Request) -> Response:
        return _page("Mails", _list(letters))

    async def one(request: Request) -> Response:
        letter = letters.find(request.path_params["name"])
        if letter is None:
            return _page("No such mail", '<p><a href="/">All mails</a></p>', 404)
        headers = (("To", letter.to), ("From", letter.sender), ("Date", letter.date))
        rows = "".join(f"<dt>{name}</dt><dd dir=auto>{escape(text)}</dd>" for name, text in headers)
        return _page(
            letter.subject or "(no subject)",
            f'<p><a href="/">All mails</a></p><dl>{rows}</dl><pre dir=auto>{escape(letter.body)}</pre>',
        )

    async def document(_request: Request) -> Response:
        found = [asdict(letter) for letter in letters.newest(_MOST)]
        return JSONResponse(found, headers={"cache-control": "no-store"})

    return Starlette(
        routes=[
            Route("/", index),
            Route("/mails.json", document),
            Route("/mails/{name}", one),
        ]
    )


def _list(letters: Letters) -> str:
    found = letters.newest(_SHOWN)
    if not found:
        return "<p>No mail yet. This server keeps what it is sent, and sends nothing on.</p>"
    rows = "".join(
        f'<tr><td><a dir=auto href="/mails/{escape(letter.name)}">{escape(letter.subject)}</a></td>'
        f"<td dir=auto>{escape(letter.to)}</td><td>{escape(letter.date)}</td></tr>"
        for letter in found
    )
    return (
        f"<table><caption>The newest {len(found)}. None of them has left this machine.</caption>"
        "<thead><tr><th scope=col>Subject</th><th scope=col>To</th><th scope=col>Date</th></tr>"
        f"</thead><tbody>{rows}</tbody></table>"
    )


def _page(title: str, content: str, status: int = 200) -> Response:
    words = escape(title)
    return HTMLResponse(
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{words}</title><style>{_STYLE}</style>"
        f"<main><h1 dir=auto>{words}</h1>{content}</main></html>",
        status,
        _HEADERS,
    )
