"""How a gateway process is told what to do: secrets from the environment only (SPEC S4)."""

from __future__ import annotations

import pytest

from fairdrop.errors import ConfigurationError
from fairdrop.payments.sandbox.mischief import MischiefDefaults
from fairdrop.payments.sandbox.settings import MISCHIEF, SECRET_KEY, WEBHOOK_SECRET, read_settings

ENVIRONMENT = {SECRET_KEY: "sk_0123456789abcdef", WEBHOOK_SECRET: "whsec_0123456789abcdef"}
OPTIONS = ["--port", "0", "--data-dir", "data", "--webhook-url", "http://shop.example/hook"]


def test_options_and_environment_make_the_settings() -> None:
    settings = read_settings([*OPTIONS, "--public-url", "https://pay.example/"], ENVIRONMENT)
    assert (settings.host, settings.port) == ("127.0.0.1", 0)
    assert settings.public_url == "https://pay.example"
    assert settings.secret_key == b"sk_0123456789abcdef"
    assert settings.mischief is None


def test_the_text_of_the_settings_has_no_secret() -> None:
    text = repr(read_settings(OPTIONS, ENVIRONMENT))
    for secret in ENVIRONMENT.values():
        assert secret not in text


def test_mischief_comes_as_an_option_or_from_the_environment() -> None:
    environment = {**ENVIRONMENT, MISCHIEF: '{"drop_share": 0.5}'}
    assert read_settings(OPTIONS, environment).mischief == MischiefDefaults(drop_share=0.5)
    options = [*OPTIONS, "--mischief", '{"seed": 2}']
    assert read_settings(options, environment).mischief == MischiefDefaults(seed=2)


@pytest.mark.parametrize(
    ("options", "environment", "named"),
    [
        (OPTIONS, {}, SECRET_KEY),
        (OPTIONS, {**ENVIRONMENT, WEBHOOK_SECRET: "short"}, WEBHOOK_SECRET),
        (OPTIONS, {**ENVIRONMENT, SECRET_KEY: "with a line break\n" * 2}, SECRET_KEY),
        (OPTIONS, {**ENVIRONMENT, MISCHIEF: '{"drop_share": 2}'}, "mischief"),
        (OPTIONS, {**ENVIRONMENT, MISCHIEF: "{"}, "mischief"),
        ([*OPTIONS, "--webhook-url", "ftp://shop.example"], ENVIRONMENT, "--webhook-url"),
        ([*OPTIONS, "--public-url", "pay.example"], ENVIRONMENT, "--public-url"),
    ],
)
def test_what_is_wrong_is_named(
    options: list[str], environment: dict[str, str], named: str
) -> None:
    with pytest.raises(ConfigurationError, match=named):
        read_settings(options, environment)
