"""Times are entered on the clock of a zone, kept in UTC, and shown on that clock again (case 32)."""

from __future__ import annotations

import httpx
import pytest

from tests.integration.control_plane.own_parts import a_sale, created, problem

SALES = "/admin/v1/sales"
ZURICH = "Europe/Zurich"


@pytest.mark.parametrize(
    ("local", "utc"),
    [
        ("2026-01-15T08:30", "2026-01-15T07:30:00Z"),
        ("2026-07-15T08:30", "2026-07-15T06:30:00Z"),
        ("2026-07-15 08:30:15", "2026-07-15T06:30:15Z"),
    ],
)
async def test_half_past_eight_in_zurich_stays_that_after_any_number_of_saves(
    client: httpx.AsyncClient, local: str, utc: str
) -> None:
    sale = await created(client, timezone=ZURICH, opens_at=local, closes_at="2030-07-01T08:30")
    for _ in range(4):
        assert sale["opens_at"] == utc
        assert sale["opens_at_local"][:16] == local.replace(" ", "T")[:16]
        assert (sale["closes_at"], sale["closes_at_local"]) == (
            "2030-07-01T06:30:00Z",
            "2030-07-01T08:30:00",
        )
        # As a form saves it: what was shown, and one thing changed.
        body = {
            "opens_at": sale["opens_at_local"],
            "closes_at": sale["closes_at_local"],
            "timezone": sale["timezone"],
            "cap": sale["cap"] + 1,
        }
        answer = await client.patch(f"{SALES}/{sale['id']}", json=body)
        assert answer.status_code == 200, answer.text
        sale = answer.json()
    public = (await client.get(f"/v1/sales/{sale['id']}")).json()
    assert (public["opens_at"], public["timezone"]) == (utc, ZURICH)


@pytest.mark.parametrize("offset", ["+02:00", "+01:00"])
async def test_each_half_of_the_hour_that_comes_twice_survives_being_saved_as_shown(
    client: httpx.AsyncClient, offset: str
) -> None:
    sale = await created(client, timezone=ZURICH, opens_at=f"2026-10-25T02:30:00{offset}")
    assert sale["opens_at_local"] == "2026-10-25T02:30:00"
    body = {"opens_at": sale["opens_at_local"], "cap": 7}
    saved = (await client.patch(f"{SALES}/{sale['id']}", json=body)).json()
    assert saved["opens_at"] == sale["opens_at"]


async def test_an_hour_that_comes_twice_means_the_first_unless_an_offset_says_otherwise(
    client: httpx.AsyncClient,
) -> None:
    sale = await created(client, timezone=ZURICH, opens_at="2026-10-25T02:30")
    assert sale["opens_at"] == "2026-10-25T00:30:00Z"


@pytest.mark.parametrize("field", ["opens_at", "closes_at"])
@pytest.mark.parametrize(
    ("zone", "local"),
    [
        (ZURICH, "2026-03-29T02:30"),
        ("America/New_York", "2026-03-08T02:00:00"),
        ("Pacific/Apia", "2011-12-30T12:00"),
    ],
)
async def test_an_hour_that_the_clock_leaps_over_is_refused(
    client: httpx.AsyncClient, field: str, zone: str, local: str
) -> None:
    times = {"opens_at": "2000-01-01T00:00Z", field: local}
    answer = await client.post(SALES, json=a_sale(timezone=zone, **times))
    document = problem(answer, 422, "invalid_request")
    assert document["errors"][0]["field"] == f"body.{field}"
    assert "leaps" in document["detail"]


async def test_a_time_with_an_offset_is_that_moment_whatever_the_zone(
    client: httpx.AsyncClient,
) -> None:
    sale = await created(client, timezone="Asia/Kathmandu", opens_at="2026-05-01T08:30:00-03:00")
    assert (sale["opens_at"], sale["opens_at_local"]) == (
        "2026-05-01T11:30:00Z",
        "2026-05-01T17:15:00",
    )


async def test_the_closing_time_comes_after_the_opening_time(client: httpx.AsyncClient) -> None:
    times = {"opens_at": "2026-05-01T10:00Z", "closes_at": "2026-05-01T10:00Z"}
    problem(await client.post(SALES, json=a_sale(**times)), 422, "invalid_request")


async def test_a_sale_can_be_extended_and_put_off(client: httpx.AsyncClient) -> None:
    sale = await created(
        client, timezone=ZURICH, opens_at="2090-05-01T10:00", closes_at="2090-05-01T12:00"
    )
    changed = await client.patch(
        f"{SALES}/{sale['id']}",
        json={"opens_at": "2090-05-01T11:00", "closes_at": "2090-05-01T14:00"},
    )
    assert changed.json()["opens_at"] == "2090-05-01T09:00:00Z"
    assert changed.json()["closes_at"] == "2090-05-01T12:00:00Z"
