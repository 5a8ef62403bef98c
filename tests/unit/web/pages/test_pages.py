"""What every page and asset promises: who may keep it, what it may load, and nothing personal."""

import gzip
import posixpath
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from starlette.applications import Starlette

import fairdrop
from fairdrop.access import CAPTCHAS
from fairdrop.web.pages import Shop, routes
from tests.unit.web.pages.asking import Answer, ask

WEB = Path(fairdrop.__file__).parent / "web"
PAGES = [
    "/",
    "/s/night",
    "/s/night/draw",
    "/orders/0198c7a2-0000-7000-8000-000000000000",
    "/console",
]
SOURCES = sorted(path for folder in ("static", "templates") for path in (WEB / folder).rglob("*.*"))
SCRIPTS = [path for path in SOURCES if path.suffix == ".js"]
FOREIGN_ADDRESS = re.compile(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}", re.IGNORECASE)


class Tags(HTMLParser):
    """The start tags of a page, with their attributes, and the text inside scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.inline: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][0] in ("script", "style") and data.strip():
            self.inline.append(data)

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.found if name == tag]


def tags(html: str) -> Tags:
    parser = Tags()
    parser.feed(html)
    return parser


async def get(
    path: str, *, method: str = "GET", shop: Shop | None = None, **headers: str
) -> Answer:
    return await ask(Starlette(routes=routes(shop)), path, method=method, **headers)


async def asset_path(name: str) -> str:
    html = (await get("/")).text
    version = re.search(r"/static/([0-9a-f]{16})/style\.css", html)
    assert version is not None
    return f"/static/{version[1]}/{name}"


@pytest.mark.parametrize("path", PAGES)
async def test_any_cache_may_keep_a_page_for_five_minutes(path: str) -> None:
    """S9."""
    response = await get(path)
    assert response.status == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["cache-control"] == "public, max-age=300"
    assert "set-cookie" not in response.headers


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_that_is_still_right_is_not_sent_again(path: str) -> None:
    first = await get(path)
    again = await get(path, If_None_Match=f'"other", {first.headers["etag"]}')
    assert (again.status, again.body) == (304, b"")
    assert again.headers["cache-control"] == first.headers["cache-control"]
    assert (await get(path, If_None_Match='"other"')).status == 200


@pytest.mark.parametrize("path", PAGES)
async def test_the_policy_allows_nothing_inline_and_nothing_from_elsewhere(path: str) -> None:
    policy = dict(
        part.strip().split(" ", 1)
        for part in (await get(path)).headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'none'"
    assert policy["base-uri"] == "'none'"
    assert policy["require-trusted-types-for"] == "'script'"
    assert {policy[kind] for kind in policy if kind.endswith("-src")} == {"'none'", "'self'"}
    assert policy["form-action"] == "'self'"


@pytest.mark.parametrize("provider", sorted(CAPTCHAS))
async def test_the_widget_of_a_captcha_is_let_in_where_people_join_and_nowhere_else(
    provider: str,
) -> None:
    """W18: as the providers' manuals say; what else a page may do stays as it is."""
    sources = CAPTCHAS[provider]("site", "secret").sources
    app = Starlette(routes=routes(Shop(widgets=sources)))
    for path in PAGES:
        policy = (await ask(app, f"http://x{path}")).headers["content-security-policy"]
        if path.startswith(("/s/", "/enter/")) and not path.endswith("/draw"):
            for kind in ("script-src", "style-src", "connect-src"):
                assert f"{kind} 'self' {' '.join(sources)}" in policy
            assert f"frame-src {' '.join(sources)}" in policy
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
        else:
            assert policy == (await get(path)).headers["content-security-policy"]


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_has_no_inline_script_style_or_handler(path: str) -> None:
    page = tags((await get(path)).text)
    assert page.inline == []
    assert page.all("style") == []
    assert all(script["src"].startswith("/static/") for script in page.all("script"))
    assert [
        (tag, name)
        for tag, attributes in page.found
        for name in attributes
        if name == "style" or name.startswith("on")
    ] == []


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_is_guarded_by_the_other_headers_too(path: str) -> None:
    headers = (await get(path)).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert "camera=()" in headers["permissions-policy"]


async def test_nothing_of_a_request_reaches_a_page() -> None:
    plain = await get("/s/night")
    strange = await get("/s/%3Cscript%3Ealert(1)?paid=1", Cookie="fairdrop_visitor=fdv1.x.y")
    assert strange.body == plain.body
    assert (await get("/orders/one")).body == (await get("/orders/two")).body


async def test_the_shop_name_is_text_and_never_markup() -> None:
    html = (await get("/", shop=Shop(name='<b>Rock & "Roll"</b>'))).text
    assert "<b>" not in html
    assert "&lt;b&gt;Rock &amp; &#34;Roll&#34;&lt;/b&gt;" in html


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_has_what_a_screen_reader_needs(path: str) -> None:
    page = tags((await get(path)).text)
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("main")) == 1
    assert page.all("h1")
    assert {"polite", "assertive"} <= {attributes.get("aria-live") for _, attributes in page.found}
    ids = [attributes["id"] for _, attributes in page.found if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {label["for"] for label in page.all("label")} <= set(ids)
    assert all("alt" in image for image in page.all("img"))
    assert any(link["href"] == "#main" for link in page.all("a"))


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_names_every_module_it_needs_and_each_is_there(path: str) -> None:
    page = tags((await get(path)).text)
    preloaded = [link["href"] for link in page.all("link") if link["rel"] == "modulepreload"]
    modules = [script["src"] for script in page.all("script")] + preloaded
    assert len(modules) == len(set(modules))
    imported: set[str] = set()
    for module in modules:
        response = await get(module)
        assert response.status == 200, module
        assert response.headers["content-type"] == "text/javascript; charset=utf-8"
        found = re.findall(r'(?:from|import) "(\.\.?/[^"]+)"', response.text)
        imported |= {posixpath.normpath(f"{module.rpartition('/')[0]}/{name}") for name in found}
    assert imported == set(preloaded)


@pytest.mark.parametrize("name", ["style.css", "icon.svg", "js/sale.js"])
async def test_an_asset_is_kept_for_ever_under_the_address_of_its_content(name: str) -> None:
    response = await get(await asset_path(name))
    assert response.status == 200
    assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.body == (WEB / "static" / name).read_bytes()


async def test_an_asset_asked_for_by_another_releases_address_is_kept_by_no_cache() -> None:
    response = await get("/static/0123456789abcdef/style.css")
    assert response.status == 200
    assert response.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "name", ["nothing.css", "", "../templates/base.html", "%2e%2e/templates/base.html", "js"]
)
async def test_only_assets_are_served(name: str) -> None:
    assert (await get(await asset_path(name))).status == 404


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_is_only_read(path: str) -> None:
    assert (await get(path, method="POST")).status == 405
    head = await get(path, method="HEAD")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len((await get(path)).body))


@pytest.mark.parametrize(
    ("accepted", "expected"),
    [
        ("gzip", True),
        ("br, gzip;q=0.8", True),
        ("*", True),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip; q=0.0, br", False),
    ],
)
async def test_a_page_is_compressed_for_those_who_take_it(accepted: str, *, expected: bool) -> None:
    response = await get(await asset_path("style.css"), Accept_Encoding=accepted)
    assert response.headers["vary"] == "accept-encoding"
    assert (response.headers.get("content-encoding") == "gzip") == expected
    assert response.headers["content-length"] == str(len(response.body))
    body = gzip.decompress(response.body) if expected else response.body
    assert body == (WEB / "static" / "style.css").read_bytes()


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_no_source_names_an_address_of_somebody_else(source: Path) -> None:
    text = source.read_text().replace("http://www.w3.org/2000/svg", "")
    assert FOREIGN_ADDRESS.findall(text) == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_no_script_turns_text_into_markup_or_code(script: Path) -> None:
    text = script.read_text()
    for danger in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert danger not in text
    assert "new Function" not in text
