"""Cookies are found beside those of others, whatever others put into theirs."""

from __future__ import annotations

import pytest

from fairdrop.integrations.model import Visit
from fairdrop.integrations.rules import cookies_of
from fairdrop.web.wire import cookie_of

BESIDE = [
    b"",
    b"other=1; ",
    b'prefs={"a":1}; ',
    b"a=b c; ",
    b"u[a]=1; ",
    b"flag; ",
    b"name=\xc3\xa9; ",
    b"; ;; ",
]


@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("quoted", [b"ours", b'"ours"'])
def test_an_odd_cookie_of_somebody_else_hides_none_of_ours(beside: bytes, quoted: bytes) -> None:
    header = beside + b"mine=" + quoted + b"; last=x"
    assert cookie_of({b"cookie": header}, b"mine") == "ours"
    visit = Visit("GET", "/", "", {"cookie": header.decode("latin-1")})
    assert cookies_of(visit)["mine"] == "ours"


def test_a_cookie_that_is_not_there_is_none() -> None:
    assert cookie_of({}, b"mine") is None
    assert cookie_of({b"cookie": b"mine2=x; xmine=y"}, b"mine") is None
