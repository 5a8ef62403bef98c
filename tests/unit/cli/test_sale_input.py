"""What people type about sales means what they mean."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from fairdrop.cli.sale_input import parse_fee, parse_price, parse_time, parse_variant, slug_of

NOW = datetime(2026, 3, 1, 8, 30, 15, 999_999, UTC)


@pytest.mark.parametrize(
    ("text", "currency", "minor"),
    [
        ("45", "EUR", 4_500),
        ("45.5", "EUR", 4_550),
        ("0.01", "EUR", 1),
        ("0", "EUR", 0),
        ("19.90", "USD", 1_990),
        ("80", "JPY", 80),
        ("1.234", "KWD", 1_234),
        ("1.2300", "EUR", 123),
    ],
)
def test_a_price_is_in_the_decimals_of_its_currency(text: str, currency: str, minor: int) -> None:
    assert parse_price(text, currency) == minor


@pytest.mark.parametrize(
    ("text", "currency"),
    [
        ("0.5", "JPY"),
        ("0.001", "EUR"),
        ("-1", "EUR"),
        ("free", "EUR"),
        ("", "EUR"),
        ("nan", "EUR"),
        ("inf", "EUR"),
        ("1,50", "EUR"),
    ],
)
def test_what_is_no_price_is_refused(text: str, currency: str) -> None:
    with pytest.raises(ValueError, match=r"price|decimals"):
        parse_price(text, currency)


@pytest.mark.parametrize(
    ("text", "product", "name"),
    [
        ("Standing:45:100", "Concert", "Standing"),
        ("Shirt/Large:45:100", "Shirt", "Large"),
        ("Block A: front row:45:100", "Concert", "Block A: front row"),
        (" Seat :45:100", "Concert", "Seat"),
        ("座席:45:100", "Concert", "座席"),
    ],
)
def test_a_variant_has_a_name_a_price_and_units(text: str, product: str, name: str) -> None:
    assert parse_variant(text, "Concert", "EUR") == {
        "product": product,
        "name": name,
        "price_minor": 4_500,
        "quantity": 100,
    }


@pytest.mark.parametrize(
    "text", ["", "Standing", "Standing:45", ":45:1", "A:45:-1", "A:45:1.5", "A:x:1"]
)
def test_what_is_no_variant_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no"):
        parse_variant(text, "Concert", "EUR")


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("now", "2026-03-01T08:30:15Z"),
        ("+30s", "2026-03-01T08:30:45Z"),
        ("+10m", "2026-03-01T08:40:15Z"),
        ("+2h", "2026-03-01T10:30:15Z"),
        ("+1d", "2026-03-02T08:30:15Z"),
        ("2026-05-01T10:00", "2026-05-01T10:00"),
    ],
)
def test_a_time_is_now_or_later_or_as_it_is(text: str, time: str) -> None:
    assert parse_time(text, NOW) == time


def test_a_time_beyond_the_calendar_is_refused() -> None:
    with pytest.raises(ValueError, match="too far"):
        parse_time("+99999999d", NOW)


@pytest.mark.parametrize(("percent", "bps"), [(10, 1_000), (0, 0), (2.5, 250), (0.01, 1)])
def test_a_fee_in_percent_is_in_basis_points(percent: float, bps: int) -> None:
    assert parse_fee(percent) == bps


def test_a_fee_finer_than_a_hundredth_of_a_percent_is_refused() -> None:
    with pytest.raises(ValueError, match="decimals"):
        parse_fee(0.005)


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Rooftop concert", "rooftop-concert"),
        ("Zürich: Öpen Air 2026!", "zurich-open-air-2026"),
        ("  --x--  ", "x"),
        ("a" * 63 + " b", "a" * 63),
    ],
)
def test_a_slug_is_made_of_the_name(name: str, slug: str) -> None:
    assert slug_of(name) == slug


def test_a_name_without_latin_letters_asks_for_a_slug() -> None:
    with pytest.raises(ValueError, match="--slug"):
        slug_of("演唱会")
